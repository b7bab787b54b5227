//! Settings that have no effect, or less than intended (C7).

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Drain, Job, OnCompletion, RestartOn, Restarts};
use containerpilot_core::time::fmt_duration;

use crate::decode::Spanned;
use crate::diagnostics::{Problem, Severity, is_reported};
use crate::fields::JobFields;
use crate::lower::Draft;
use crate::validate::Checker;

impl Checker<'_> {
    /// Reports settings of jobs that have no effect.
    pub(super) fn no_effect(&mut self) {
        for (fields, job) in self.pairs.clone() {
            if let Some(job) = job {
                self.stop_timeout_without_hook(fields, job);
                self.completion_that_never_comes(fields, job);
            }
            self.nothing_to_do(fields);
        }
    }

    /// A job's `stopTimeout` limits how long it waits for its stop hooks (S2).
    fn stop_timeout_without_hook(&mut self, fields: &JobFields, job: &Job) {
        // A default may have an effect on other jobs.
        let own = |given: &&Spanned<i64>| fields.place.contains(given.key);
        let Some(given) = fields.stop_timeout.as_ref().filter(own) else { return };
        // What has an error may be the hook.
        let is_error = |problem: &Problem| problem.severity == Severity::Error;
        let mut jobs = self.pairs.iter().filter_map(|(_, job)| *job);
        if self.problems.iter().any(is_error) || jobs.any(|other| waits_for_stop(other, job)) {
            return;
        }
        let message =
            format!("`stopTimeout` has no effect: nothing waits for `{}` to be `stopping`", job.name);
        let help = "it is not a kill timeout: it limits how long the job waits for its stop hooks;\n\
                    SIGKILL comes after the `stopTimeout` at the top level";
        self.report(Severity::Warning, given.key, message, help);
    }

    /// A job that is always restarted neither succeeds nor fails (S5).
    fn completion_that_never_comes(&mut self, fields: &JobFields, job: &Job) {
        if job.restarts != Restarts::Unlimited {
            return;
        }
        for (key, given, failed) in
            [("onSuccess", &fields.on_success, false), ("onFailure", &fields.on_failure, true)]
        {
            // W13: a run that is not followed by a restart ends the job. W14: too many starts are a failure.
            let can_end = !job.when.is_periodic()
                && (!job.restart_on.includes(failed) || failed && job.start_limit.is_some());
            let stops = |given: &&Spanned<OnCompletion>| {
                given.value == OnCompletion::Shutdown && fields.place.contains(given.key)
            };
            let Some(given) = given.as_ref().filter(stops).filter(|_| !can_end) else { continue };
            let (why, help) = if fields.restarts.is_some() && job.restart_on != RestartOn::Exit {
                let why = if failed {
                    "the job is restarted after each failure"
                } else {
                    "the job is restarted after each success"
                };
                (why, "limit `restarts` to a number, or write another `restartOn`")
            } else if fields.restarts.is_some() {
                ("the job is restarted without limit", "remove `restarts`, or limit it to a number")
            } else {
                ("a periodic job runs without limit", "limit its runs with `restarts`")
            };
            self.fault(given.key, format!("`{key}` never stops the container: {why}"), help);
        }
    }

    /// W11: a job without `exec` only advertises and checks.
    fn nothing_to_do(&mut self, fields: &JobFields) {
        let Some(name) = &fields.name else { return };
        let is_empty = fields.exec.is_none()
            && fields.action.is_none()
            && fields.health.is_none()
            && fields.port.is_none();
        let wrong = |key| is_reported(self.problems, Some(fields.place), key);
        if is_empty && !["exec", "do", "health", "port"].into_iter().any(wrong) {
            let message =
                format!("the job `{}` has neither `exec` nor `health`, so it does nothing", name.value);
            self.report(Severity::Warning, name.place, message, "add `exec`, or remove the job");
        }
    }

    /// Warns about a `drain` that a shutdown cuts short (S4).
    pub(super) fn long_drains(&mut self, draft: &Draft) {
        let Some((limit, timeout)) = draft.drain_limit() else { return };
        for (fields, job) in self.pairs.clone() {
            let (Some(given), Some(job)) = (&fields.drain, job) else { continue };
            let drain = match &job.stop.drain {
                Drain::For(time) | Drain::Until { timeout: Some(time), .. } => *time,
                // It is cut like everything else.
                Drain::Until { timeout: None, .. } => continue,
            };
            if drain > limit {
                let message = format!(
                    "a shutdown cuts the `drain` of {} to {}",
                    fmt_duration(drain),
                    fmt_duration(limit)
                );
                let timeout = fmt_duration(timeout);
                let help = format!(
                    "raise the `stopTimeout` at the top level, which is {timeout} for drain and exit together"
                );
                self.report(Severity::Warning, given.place, message, help);
            }
        }
    }
}

impl Checker<'_> {
    /// Reports a job that takes longer to stop than the global `stopTimeout`, after which it gets SIGKILL (S9).
    pub(super) fn long_stops(&mut self, draft: &Draft) {
        let Some(timeout) = draft.stop_timeout() else { return };
        for (fields, job) in self.pairs.clone() {
            let Some(stop) = job.map(|job| &job.stop) else { continue };
            let escalation = stop.escalation.iter().map(|next| next.after).sum();
            let total = stop.kill_after.unwrap_or(escalation);
            if total <= timeout {
                continue;
            }
            let (total, timeout) = (fmt_duration(total), fmt_duration(timeout));
            let (place, what) = match (&fields.kill_after, &fields.stop_signal) {
                (Some(given), _) => (given.place, "`killAfter`"),
                (None, Some(given)) => (given.place, "the escalation of `stopSignal`"),
                (None, None) => continue,
            };
            let message = format!("{what} takes {total}, but SIGKILL comes after {timeout}");
            let help = format!("raise the `stopTimeout` at the top level to at least {total}");
            self.fault(place, message, help);
        }
    }
}

fn waits_for_stop(hook: &Job, job: &Job) -> bool {
    let is_its_stop = |source: &Source| matches!(source, Source::Job(name) if *name == job.name);
    hook.when.patterns().iter().any(|event| event.code == Code::Stopping && is_its_stop(&event.source))
}
