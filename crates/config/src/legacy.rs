//! ContainerPilot 2 files (C8): their fields and their translation.
//!
//! A version 2 file is decoded with its own table, so that messages use its own keys. A valid file is translated to a tree of
//! version 3 keys, which is decoded like any other file. `migrate` prints the same tree, so both agree.

mod check;
pub mod fields;
pub(crate) mod print;
mod translate;
mod tree;

use containerpilot_core::plan::{Plan, Role};

pub(crate) use check::check;
pub(crate) use translate::{Program, differences, main_name, translate};
pub(crate) use tree::{Entry, members};

/// The plan without the settings that a version 3 file cannot express: the role of the main program, and SIGUSR1 for
/// maintenance.
pub(crate) fn as_version_3(mut plan: Plan) -> Plan {
    plan.toggle_maintenance = false;
    for job in plan.jobs.iter_mut().filter(|job| job.role == Role::Main) {
        job.role = Role::User;
    }
    plan
}
