//! X1, X2: what is asked by hand, and what becomes of it; and the new lives that follow from it.

use containerpilot_core::effect::Effect;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::input::Input;
use containerpilot_core::plan::EventPattern;
use containerpilot_core::request::{Reply, Request};
use containerpilot_core::{JobStatus, Phase, State, StopReason};

use super::waiting::works;
use super::{Check, Witness};

impl Witness<'_> {
    /// A job that was complete begins a new life: nothing of the last one counts, but what the catalog was told and the
    /// checks that have not ended yet.
    pub(super) fn see_birth(&mut self, job: usize, status: &JobStatus) -> Check {
        if self.jobs[job].generation >= status.generation {
            return Ok(());
        }
        if self.jobs[job].stopped.is_none() || self.jobs[job].run.is_some() {
            return self.broken("W9", job, "it begins a new life before the last one has ended");
        }
        if self.phase_before != Phase::Running && self.phase_before != Phase::Starting {
            return self.broken("S3", job, "it begins a new life while everything is being stopped");
        }
        self.births += 1;
        let new = self.jobs[job].reborn(&self.plan.jobs[job], self.now, self.births);
        self.jobs[job] = new;
        let seen = &mut self.seen[job];
        (seen.born, seen.by_hand, seen.fired) = (true, true, 0);
        Ok(())
    }

    /// X2, R3: what runs only at the end of a job that begins a new life is there for its next end, too, if it was complete
    /// by then. One that is on its way there (it waits for hooks of its own) goes its way: only what is complete can be
    /// brought back. So this is looked at in the part of the step in which the new life begins, and not later.
    pub(super) fn check_hooks_of_the_newborn(&self, job: usize, after: &[JobStatus]) -> Check {
        let reloaded = self.reloading.changing && self.seen[job].reloaded;
        if after[job].generation == self.between[job].generation && !reloaded {
            return Ok(());
        }
        let name = &self.plan.jobs[job].name;
        let farewell = |event: &EventPattern| {
            matches!(event.code, Code::Stopping | Code::Stopped)
                && matches!(&event.source, Source::Job(source) if source == name)
        };
        let gone = |hook: usize| {
            let ended = matches!(
                after[hook].stop_reason,
                Some(StopReason::Completed | StopReason::Failed | StopReason::Unreachable)
            );
            after[hook].state == State::Complete
                && ended
                && !self.seen[hook].born
                && !works(&self.plan.jobs[hook])
                && self.plan.jobs[hook].when.patterns().iter().any(farewell)
        };
        match (0..after.len()).find(|hook| *hook != job && gone(*hook)) {
            Some(hook) => self.broken("X2", hook, "it does not live again with the one at whose end it runs"),
            None => Ok(()),
        }
    }

    /// Whether what a job has done can be done again, because it was stopped by hand (or is, to be started again)
    /// or for a reload.
    pub(super) fn comes_again(status: &JobStatus) -> bool {
        matches!(status.stop_reason, Some(StopReason::ByHand | StopReason::Reload))
    }

    /// Whether a job that runs once may do so more than once, because it waits for the end of another.
    pub(super) fn has_many_lives_before_it(&self, job: usize) -> bool {
        let farewell = |code: Code| matches!(code, Code::Stopping | Code::Stopped | Code::Shutdown);
        let patterns = self.plan.jobs[job].when.patterns();
        patterns.iter().any(|event| farewell(event.code) && matches!(event.source, Source::Job(_)))
    }

    /// Every command is answered, and what was answered is so.
    pub(super) fn check_answers(
        &mut self,
        input: &Input,
        effects: &[Effect],
        after: &[JobStatus],
        phase: Phase,
    ) -> Check {
        if phase != Phase::Starting && !self.open.is_empty() {
            return Err(self.says("X1", "somebody waits for an answer"));
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
        // It may have another place by now, or none.
        let Some(job) = self.place_now(job.index()) else { return Ok(()) };
        let (planned, status) = (&self.plan.jobs[job], &after[job]);
        match command {
            Request::Start(_) | Request::Restart(_) if phase == Phase::Running => {
                let runs = status.run.is_some() || status.state == State::Running;
                let will = Self::comes_again(status) && status.state != State::Complete;
                let empty = planned.exec.is_none() && planned.health.is_none();
                // A reload under way sees to it.
                let reload = self.must_go(job, status) || self.seen[job].reloaded;
                if !runs && !will && !empty && !reload {
                    return self.broken("X2", job, "it was to be started, and is not");
                }
            }
            Request::Stop(_)
                if phase == Phase::Running && status.stop_reason.is_none() && !self.seen[job].reloaded =>
            {
                return self.broken("X2", job, "it was to be stopped, and is not");
            }
            _ => {}
        }
        Ok(())
    }
}
