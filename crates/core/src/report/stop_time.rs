//! The longest stop in words.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::plan::Plan;
use crate::state::stop_time::{StopStep, StopTime};
use crate::time::fmt_duration;

impl StopTime {
    /// `app gets SIGTERM after 5s and SIGKILL 10s later, then …`
    #[must_use]
    pub fn words(&self, plan: &Plan) -> String {
        let words = |step: &StopStep| {
            let job = plan.jobs.get(step.job.index())?;
            let (name, signal) = (&job.name, job.stop.signal);
            let length = fmt_duration(step.to.saturating_sub(step.from));
            let start = match step.from.is_zero() {
                true => "at once".into(),
                false => format!("after {}", fmt_duration(step.from)),
            };
            Some(match step.is_hook {
                true => format!("{name} runs {start}, for up to {length}"),
                false => format!("{name} gets {signal} {start} and SIGKILL {length} later"),
            })
        };
        let mut parts: Vec<String> = self.steps.iter().filter_map(words).collect();
        parts.push("the supervisor exits within 1s".into());
        parts.join(", then ")
    }
}
