//! X1, X2: commands, their answers, and the new generations that follow from them.

use containerpilot_core::effect::Effect;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::input::Input;
use containerpilot_core::plan::EventPattern;
use containerpilot_core::request::{Reply, Request};
use containerpilot_core::{JobStatus, Phase, State, StopReason};

use super::oracle::{Check, Oracle};
use super::replicas::is_named;
use super::waiting::only_reacts;

impl Oracle<'_> {
    /// A complete job gets a new generation.
    pub(super) fn see_new_generation(&mut self, job: usize, status: &JobStatus) -> Check {
        if self.jobs[job].generation >= status.generation {
            return Ok(());
        }
        if self.jobs[job].stopped.is_none() || self.jobs[job].run.is_some() {
            return self.job_violation("W9", job, "a new generation starts before the last one has ended");
        }
        if self.phase_before != Phase::Running && self.phase_before != Phase::Starting {
            return self.job_violation("S3", job, "a new generation starts during the shutdown");
        }
        self.generations += 1;
        // W18: what was stopped because a source was gone waits for it, without a start timeout (W5).
        // So does a job that is to start again, but not a hook that gets a new generation with its job.
        let reason = self.previous[job].stop_reason;
        let by_hand = reason != Some(StopReason::SourceGone);
        let is_bound = self.plan.jobs[job].requires.iter().any(|one| one.bind);
        let resumed = !by_hand || (reason == Some(StopReason::ByHand) && is_bound);
        let mut new = self.jobs[job].next_generation(&self.plan.jobs[job], self.now, self.generations);
        if resumed {
            // Starts count for the start limit (W14), until one by hand, and the last run for its exit code.
            new.starts = std::mem::take(&mut self.jobs[job].starts);
            new.last_code = self.jobs[job].last_code;
        }
        new.resumed = resumed;
        self.jobs[job] = new;
        let seen = &mut self.seen[job];
        (seen.is_new, seen.by_hand, seen.fired) = (true, by_hand, 0);
        Ok(())
    }

    /// X2, R3: a complete hook of a job gets a new generation together with the job. A hook that is still stopping
    /// (it waits for hooks of its own) does not. So this is checked in the part of the step in which the new generation of
    /// the job starts, and not later.
    pub(super) fn check_hooks_of_new_generation(&self, job: usize, after: &[JobStatus]) -> Check {
        let reloaded = self.reloading.changing && self.seen[job].reloaded;
        if after[job].generation == self.previous[job].generation && !reloaded {
            return Ok(());
        }
        let is_stop_event = |event: &EventPattern| {
            matches!(event.code, Code::Stopping | Code::Stopped)
                && matches!(&event.source, Source::Job(source) if is_named(&self.plan.jobs[job], source))
        };
        let gone = |hook: usize| {
            let ended = matches!(
                after[hook].stop_reason,
                Some(StopReason::Completed | StopReason::Failed | StopReason::Unreachable)
            );
            after[hook].state.has_ended()
                && ended
                && !self.seen[hook].is_new
                && only_reacts(&self.plan.jobs[hook])
                && self.plan.jobs[hook].when.patterns().iter().any(is_stop_event)
        };
        match (0..after.len()).find(|hook| *hook != job && gone(*hook)) {
            Some(hook) => {
                self.job_violation("X2", hook, "the hook has no new generation although its job has")
            }
            None => Ok(()),
        }
    }

    /// Returns true if a job can send its events again, because it was stopped by hand or for a reload.
    pub(super) fn will_start_again(status: &JobStatus) -> bool {
        matches!(status.stop_reason, Some(StopReason::ByHand | StopReason::Reload | StopReason::SourceGone))
    }

    /// Returns true if a `once` job runs once per generation of another job, because it waits for the stop of that job.
    pub(super) fn runs_once_per_generation(&self, job: usize) -> bool {
        let is_stop_event = |code: Code| matches!(code, Code::Stopping | Code::Stopped | Code::Shutdown);
        let patterns = self.plan.jobs[job].when.patterns();
        patterns.iter().any(|event| is_stop_event(event.code) && matches!(event.source, Source::Job(_)))
    }

    /// Every command is answered, and the answer is true.
    pub(super) fn check_answers(
        &mut self,
        input: &Input,
        effects: &[Effect],
        after: &[JobStatus],
        phase: Phase,
    ) -> Check {
        if phase != Phase::Starting && !self.open_requests.is_empty() {
            return Err(self.violation("X1", "a request has no answer"));
        }
        let Input::Request { id, request: command } = input else { return Ok(()) };
        let answer = effects.iter().find_map(|effect| match effect {
            Effect::Reply { id: answered, reply: answer } if answered == id => Some(answer),
            _ => None,
        });
        let Some(Reply::Done(_)) = answer else { return Ok(()) };
        let (Request::Start(job) | Request::Restart(job) | Request::Stop(job)) = command else {
            return Ok(());
        };
        let was = self.before.get(job.index());
        let (before, had_ended) = (was.and_then(|was| was.run), was.is_some_and(|was| was.state.has_ended()));
        // A reload may have moved or removed the job.
        let Some(job) = self.place_now(job.index()) else { return Ok(()) };
        let (planned, status) = (&self.plan.jobs[job], &after[job]);
        match command {
            Request::Start(_) | Request::Restart(_) if phase == Phase::Running => {
                let runs = status.run.is_some() || status.state == State::Running;
                let will = Self::will_start_again(status) && !status.state.has_ended();
                let empty =
                    planned.exec.action().is_some() || (planned.exec.is_none() && planned.health.is_none());
                // A reload in progress will start it.
                let reload = self.must_stop(job, status) || self.seen[job].reloaded;
                // It was starting or running already, and that was given up in the same step.
                let given_up = effects.iter().any(|effect| match effect {
                    Effect::CancelStart { run } | Effect::Abandon { run } => before == Some(*run),
                    _ => false,
                });
                // W18: it waits for a source that it is bound to, or that can never be there.
                let waits = self.misses_bound_source(job, after);
                // W19: an action has stopped it in the same step.
                let stopped = self.seen[job].stopped_by_action;
                if !runs && !will && !empty && !reload && !given_up && !waits && !stopped {
                    return self.job_violation("X2", job, "it was started by hand, and does not start");
                }
            }
            // One that had ended may be a hook of a job that a reload starts in the same step.
            Request::Stop(_)
                if phase == Phase::Running
                    && status.stop_reason.is_none()
                    && !self.seen[job].reloaded
                    // W19: an action has started it again in the same step.
                    && !(self.seen[job].is_new && self.is_started_by_action(job))
                    && !had_ended =>
            {
                return self.job_violation("X2", job, "it was stopped by hand, and does not stop");
            }
            _ => {}
        }
        Ok(())
    }
}
