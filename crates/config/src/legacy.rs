//! ContainerPilot 2 files (C8): their fields and their translation.
//!
//! A version 2 file is decoded with its own table, so that messages use its own keys. A valid file is translated to a tree of
//! version 3 keys, which is decoded like any other file. `migrate` prints the same tree, so both agree.

mod check;
pub mod fields;
pub(crate) mod print;
mod program;
mod translate;
mod tree;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{EventPattern, FirstTick, Plan, Role, Trigger};

use crate::lower::PRE_START;

pub(crate) use check::{check, replace_on_start};
pub(crate) use program::MainProgram;
pub(crate) use translate::{differences, main_name, translate};
pub(crate) use tree::{TreeEntry, members};

/// Tasks and sensors of version 2 run first one interval after `preStart` or, without one, after the startup.
pub(crate) fn delay_first_ticks(plan: &mut Plan) {
    let pre_start = plan.jobs.iter().any(|job| job.name == PRE_START);
    let event = if pre_start {
        EventPattern { source: Source::Job(PRE_START.to_owned()), code: Code::ExitSuccess }
    } else {
        EventPattern { source: Source::Global, code: Code::Startup }
    };
    set_first_ticks(plan, &FirstTick::IntervalAfter(event));
}

/// Checks of version 2 have the id of the service.
pub(crate) fn name_checks(plan: &mut Plan, legacy: bool) {
    for service in plan.jobs.iter_mut().filter_map(|job| job.service.as_mut()) {
        service.legacy_check = legacy;
    }
}

fn set_first_ticks(plan: &mut Plan, tick: &FirstTick) {
    for job in &mut plan.jobs {
        if let Trigger::Interval { first, .. } = &mut job.when.trigger {
            *first = tick.clone();
        }
    }
}

/// The plan without the settings that a version 3 file cannot express: the role of the main program, the first ticks of
/// tasks and sensors, the ids of checks, and the maintenance mode of version 2.
pub(crate) fn as_version_3(mut plan: Plan) -> Plan {
    plan.legacy_maintenance = false;
    set_first_ticks(&mut plan, &FirstTick::AtStartup);
    name_checks(&mut plan, false);
    for job in plan.jobs.iter_mut().filter(|job| job.role == Role::Main) {
        job.role = Role::User;
    }
    plan
}
