//! Whether the deployment gives the container the time that its longest stop takes.

use std::time::Duration;

use containerpilot_core::state::longest_stop::{LongestStop, longest_stop};
use containerpilot_core::time::fmt_duration;

use super::Audit;
use crate::model::Platform;

/// `max_kill_timeout` of a Nomad client that sets none.
const MAX_KILL_TIMEOUT: Duration = Duration::from_secs(30);

impl Audit<'_> {
    pub(super) fn grace_period(&mut self) {
        let plan = self.configuration.plan;
        let stop = longest_stop(plan);
        let needed = fmt_duration(stop.time);
        let config = self.slowest(&stop);
        let config: Vec<&str> = config.iter().map(String::as_str).collect();
        for probe in &self.container.probes {
            if let Some(grace) = &probe.grace
                && grace.value < stop.time
            {
                let (given, name) = (fmt_duration(grace.value), &probe.name);
                let message = format!(
                    "after a failed {name} the container is killed within {given}, but its stop takes up to {needed}: {}",
                    stop.words(plan)
                );
                let help = format!(
                    "set `terminationGracePeriodSeconds: {}` there, or remove it",
                    seconds(stop.time)
                );
                self.warn(grace.line, message, help, &config);
            }
        }
        let Some(grace) = self.container.grace.clone() else { return };
        let hook = self.container.pre_stop.as_ref().map(|hook| hook.value).unwrap_or_default();
        let left = grace.value.saturating_sub(hook);
        if left < stop.time {
            let given = fmt_duration(grace.value);
            let default = if self.container.default_grace { " (the default)" } else { "" };
            let hook_words = match hook.is_zero() {
                true => String::new(),
                false => format!(
                    ", of which the preStop hook takes {} and leaves {}",
                    fmt_duration(hook),
                    fmt_duration(left)
                ),
            };
            let message = format!(
                "{} is killed {given}{default} after its stop begins{hook_words}, but the stop takes up to {needed}: {}",
                self.unit(),
                stop.words(plan)
            );
            let unit = if self.container.is_nomad_json { " (nanoseconds)" } else { "" };
            let setting = self.setting(stop.time + hook);
            let help = format!("set `{setting}`{unit} or more, or make the stop shorter");
            self.fault(grace.line, message, help, &config);
        }
        if self.container.platform == Platform::Nomad && left.min(stop.time) > MAX_KILL_TIMEOUT {
            let message = format!(
                "the stop takes up to {needed}, but a Nomad client limits `kill_timeout` to its `max_kill_timeout`, which is {} unless the \
                 client sets it",
                fmt_duration(MAX_KILL_TIMEOUT)
            );
            let help = format!(
                "set `max_kill_timeout = \"{}s\"` on the clients, or make the stop shorter",
                seconds(stop.time)
            );
            self.warn(grace.line, message, help, &config);
        }
    }

    fn setting(&self, time: Duration) -> String {
        let seconds = seconds(time);
        match self.container.platform {
            Platform::Kubernetes => format!("terminationGracePeriodSeconds: {seconds}"),
            Platform::Compose | Platform::Image => format!("stop_grace_period: {seconds}s"),
            Platform::Nomad if self.container.is_nomad_json => {
                format!("\"KillTimeout\": {}", u128::from(seconds) * 1_000_000_000)
            }
            Platform::Nomad => format!("kill_timeout = \"{seconds}s\""),
        }
    }

    /// The key of the configuration that takes the longest time.
    fn slowest(&self, stop: &LongestStop) -> Vec<String> {
        let plan = self.configuration.plan;
        let last = stop.steps.last().and_then(|step| plan.jobs.get(step.job.index()));
        match last {
            Some(job) if job.is_stop_hook() => {
                vec!["jobs".to_owned(), job.name.clone(), "timeout".to_owned()]
            }
            Some(job) if job.stop.kill_after.is_some() => {
                vec!["jobs".to_owned(), job.name.clone(), "killAfter".to_owned()]
            }
            _ => vec!["stopTimeout".to_owned()],
        }
    }
}

/// Whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
