//! Random schedules: times of day, schedules that an event starts, and jobs that only a user starts (W15–W17).

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Cron, CronFields, EventPattern, Exec, FirstTick, Job, Plan, Role, Trigger, Zone,
};
use containerpilot_core::rng::Rng;

use super::times::{SPAN, time};

/// Changes the triggers of some jobs that have a program.
pub(super) fn change(rng: &mut Rng, plan: &mut Plan) {
    let names: Vec<String> = plan.jobs.iter().map(|job| job.name.clone()).collect();
    let has_program = |job: &Job| matches!(job.exec, Exec::Program(_)) && job.role == Role::User;
    for job in plan.jobs.iter_mut().filter(|job| has_program(job)) {
        if !rng.percent(40) {
            continue;
        }
        job.when.trigger = match rng.below(5) {
            0..2 => Trigger::Manual,
            2 => Trigger::Interval {
                every: time(rng, &SPAN).max(Duration::from_millis(1)),
                first: FirstTick::AtEvent(event(rng, &names)),
            },
            3 => Trigger::Cron { cron: every_minute(), after: Some(event(rng, &names)) },
            _ => Trigger::Cron { cron: every_minute(), after: None },
        };
        // W5: only an event can be late.
        if matches!(job.when.trigger, Trigger::Manual | Trigger::Cron { after: None, .. }) {
            job.when.timeout = None;
        }
    }
}

/// An event that may start a schedule: no stop event.
fn event(rng: &mut Rng, names: &[String]) -> EventPattern {
    let code = rng.pick(&[Code::ExitSuccess, Code::ExitFailed, Code::Healthy]);
    EventPattern { source: Source::Job(names[rng.index(names.len())].clone()), code }
}

/// The virtual time is short, so that the shortest schedule is the most useful one.
pub(crate) fn every_minute() -> Box<Cron> {
    let all = CronFields {
        minutes: u64::MAX >> 4,
        hours: u64::MAX >> 40,
        days: (u64::MAX >> 32) - 1,
        months: (u64::MAX >> 51) - 1,
        weekdays: u64::MAX >> 57,
        both_days: true,
    };
    Box::new(Cron { text: "* * * * *".into(), fields: all, zone: Zone::utc() })
}
