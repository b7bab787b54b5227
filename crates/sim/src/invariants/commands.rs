//! X1, X2: what is asked by hand, and what becomes of it; and the new lives that follow from it.

use containerpilot_core::command::{Answer, Command};
use containerpilot_core::effect::Effect;
use containerpilot_core::input::Input;
use containerpilot_core::plan::Role;
use containerpilot_core::{Ending, JobStatus, Phase, State};

use super::{Check, JobModel, Witness};

impl Witness<'_> {
    /// A job that was complete begins a new life: nothing of the last one counts, but what the catalog was told and the
    /// checks that have not ended yet.
    pub(super) fn see_birth(&mut self, job: usize, status: &JobStatus) -> Check {
        if self.jobs[job].incarnation == status.incarnation {
            return Ok(());
        }
        if self.jobs[job].stopped.is_none() || self.jobs[job].run.is_some() {
            return self.broken("W9", job, "it begins a new life before the last one has ended");
        }
        if self.phase_before != Phase::Running && self.phase_before != Phase::Beginning {
            return self.broken("S3", job, "it begins a new life while everything is being stopped");
        }
        let mut new = JobModel::new(&self.plan.jobs[job]);
        let old = &self.jobs[job];
        (new.incarnation, new.born, new.wanted) = (status.incarnation, self.now, old.wanted);
        for (new, old) in new.checks.iter_mut().zip(&old.checks) {
            (new.running, new.cut_short, new.began) = (old.running, old.cut_short, old.began);
        }
        // What has come in this step may have come before or after the birth.
        new.fires = u64::from(self.seen[job].fired);
        self.jobs[job] = new;
        (self.seen[job].born, self.seen[job].by_hand) = (true, true);
        Ok(())
    }

    /// Whether what a job has done can be done again, because it was stopped by hand (or is, to be started again)
    /// or for a reload.
    pub(super) fn comes_again(status: &JobStatus) -> bool {
        matches!(status.ending, Some(Ending::ByHand | Ending::Reload))
    }

    /// Whether a job that runs once at the end of another may do so again, because that has had, or may have, more lives.
    pub(super) fn outlives_its_source(&self, job: usize, after: &[JobStatus]) -> bool {
        use containerpilot_core::event::{Code, Source};
        let farewell = |code: Code| matches!(code, Code::Stopping | Code::Stopped | Code::Shutdown);
        let mut patterns = self.plan.jobs[job].when.patterns().iter().filter(|event| farewell(event.code));
        patterns.any(|event| {
            let mut jobs = self.plan.jobs.iter().zip(after);
            jobs.any(|(source, status)| {
                matches!(&event.source, Source::Job(name) if *name == source.name)
                    && (status.incarnation > 0 || Self::comes_again(status))
            })
        })
    }

    /// Every command is answered, and what was answered is so.
    pub(super) fn check_answers(
        &mut self,
        input: &Input,
        effects: &[Effect],
        after: &[JobStatus],
        phase: Phase,
    ) -> Check {
        if phase != Phase::Beginning && !self.open.is_empty() {
            return Err(self.says("X1", "somebody waits for an answer"));
        }
        let Input::Command { id, command } = input else { return Ok(()) };
        let answer = effects.iter().find_map(|effect| match effect {
            Effect::Reply { id: answered, answer } if answered == id => Some(answer),
            _ => None,
        });
        let Some(Answer::Done(_)) = answer else { return Ok(()) };
        let told = |job: usize| (&self.plan.jobs[job], &after[job]);
        match command {
            Command::Start(job) | Command::Restart(job) if phase == Phase::Running => {
                let (planned, status) = told(job.index());
                let runs = status.run.is_some() || status.state == State::Running;
                let will = Self::comes_again(status) && status.state != State::Complete;
                let empty = planned.exec.is_none() && planned.health.is_none();
                let reload = self.is_reloading(phase) && planned.role == Role::Coprocess;
                if !runs && !will && !empty && !reload {
                    return self.broken("X2", job.index(), "it was to be started, and is not");
                }
            }
            Command::Stop(job) if phase == Phase::Running && told(job.index()).1.ending.is_none() => {
                return self.broken("X2", job.index(), "it was to be stopped, and is not");
            }
            _ => {}
        }
        Ok(())
    }
}
