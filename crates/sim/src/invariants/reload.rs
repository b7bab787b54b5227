//! R3, R4, C6: a reload to the same plan stops and starts the coprocesses, gives a new hope to whoever had given it up,
//! and touches nobody else.

use containerpilot_core::command::{Answer, Command};
use containerpilot_core::effect::Effect;
use containerpilot_core::input::Input;
use containerpilot_core::plan::Role;
use containerpilot_core::reload::Moves;
use containerpilot_core::{Ending, JobStatus, Phase, State};

use super::{Check, Witness};

impl Witness<'_> {
    /// Somebody asks for a reload. Those that come while one is waited for share its time (R4).
    pub(super) fn see_reload(&mut self, input: &Input, phase: Phase) {
        if let Input::Command { id, command: Command::Reload(_) } = input {
            self.reloads.push(*id);
            // Before the startup it waits for that.
            self.reload_asked = true;
        }
        if phase != Phase::Beginning && std::mem::take(&mut self.reload_asked) && self.reload_due.is_none() {
            self.reload_due = Some(self.now + self.plan.stop_timeout);
        }
    }

    fn is_coprocess(&self, job: usize) -> bool {
        self.plan.jobs[job].role == Role::Coprocess
    }

    /// R3: `startup` for those who begin with a reload.
    pub(super) fn see_startup_again(&mut self, after: &[JobStatus]) -> Check {
        if self.reloads.is_empty() || std::mem::replace(&mut self.reloaded, true) {
            return Err(self.says("E4", "a second startup"));
        }
        for (job, status) in after.iter().enumerate() {
            if self.is_coprocess(job) && self.jobs[job].stopped.is_none() {
                return self.broken("C6", job, "the reload goes on before it has stopped");
            }
            if self.is_coprocess(job) && self.jobs[job].incarnation >= status.incarnation {
                return self.broken("C6", job, "the reload does not begin it anew");
            }
            if self.jobs[job].stopped.is_some() && self.jobs[job].incarnation < status.incarnation {
                self.see_birth(job, status)?;
                self.seen[job].reloaded = true;
                self.jobs[job].told = !self.is_coprocess(job);
            }
        }
        Ok(())
    }

    /// The plans have changed places, and they are the same.
    pub(super) fn see_replanned(&self, moves: &Moves) -> Check {
        if !self.reloaded {
            return Err(self.says("R3", "another plan is in force, and nobody has asked for one"));
        }
        let same = moves.jobs.iter().enumerate().all(|(nth, to)| to.is_some_and(|to| to.index() == nth))
            && moves.watches.iter().enumerate().all(|(nth, to)| to.is_some_and(|to| to.index() == nth));
        if same { Ok(()) } else { Err(self.says("R3", "what is the same has another place")) }
    }

    /// Whether a reload waits for the end of a job: of coprocesses, and of whoever has given up hope and gets a new one.
    fn is_awaited(&self, job: usize, status: &JobStatus) -> bool {
        let some = self.plan.jobs.iter().any(|job| job.role == Role::Coprocess);
        self.is_coprocess(job) || (some && status.ending == Some(Ending::Hopeless))
    }

    /// Whether a job has had all the time that a reload gives it.
    pub(super) fn is_late_for_reload(&self, job: usize, status: &JobStatus) -> bool {
        let late = self.reload_late || self.reload_due.is_some_and(|due| due <= self.now);
        late && self.is_awaited(job, status)
    }

    /// Whether a reload is waited for.
    pub(super) fn is_reloading(&self, phase: Phase) -> bool {
        phase == Phase::Running && !self.reloads.is_empty()
    }

    /// Every reload is answered, as soon as it can be.
    pub(super) fn check_reloads(&mut self, effects: &[Effect], after: &[JobStatus], phase: Phase) -> Check {
        for effect in effects {
            let Effect::Reply { id, answer } = effect else { continue };
            let Some(place) = self.reloads.iter().position(|open| open == id) else { continue };
            self.reloads.remove(place);
            let names = |coprocess: bool| {
                let jobs = self.plan.jobs.iter();
                let jobs = jobs.filter(move |job| (job.role == Role::Coprocess) == coprocess);
                jobs.map(|job| job.name.clone()).collect::<Vec<_>>()
            };
            match answer {
                Answer::Reloaded(changes) => {
                    let right = changes.restarted == names(true)
                        && changes.kept == names(false)
                        && changes.started.is_empty()
                        && changes.stopped.is_empty();
                    if !right || (self.reloaded == names(true).is_empty()) {
                        return Err(self.says("R3", format!("{changes:?} is not what a reload did")));
                    }
                }
                Answer::Refused(_) if phase != Phase::Running => {}
                other => return Err(self.says("R1", format!("{other:?} is no answer to a reload"))),
            }
        }
        if self.reloads.is_empty() {
            self.reload_due = None;
        }
        let waits = |job: usize| self.is_awaited(job, &after[job]) && after[job].state != State::Complete;
        match phase {
            Phase::Beginning => return Ok(()),
            Phase::Running if self.reloads.is_empty() || (0..after.len()).any(waits) => {}
            _ if self.reloads.is_empty() => {}
            _ => return Err(self.says("X1", "somebody waits for an answer to a reload")),
        }
        if self.reload_due.is_some_and(|due| due <= self.now) {
            let alive = |job: usize| {
                let run = self.jobs[job].run.as_ref();
                self.is_coprocess(job) && run.is_some_and(|run| run.started.is_some() && run.killed.is_none())
            };
            if let Some(job) = (0..after.len()).find(|job| alive(*job)) {
                return self.broken("R3", job, "the reload has waited long enough, and does not kill it");
            }
            self.reload_due = None;
            self.reload_late = true;
        }
        self.reload_late &= !self.reloads.is_empty();
        for (job, status) in after.iter().enumerate() {
            if !self.reloads.is_empty() && self.is_coprocess(job) && self.jobs[job].stopping.is_none() {
                let what = format!("a reload waits, and it is {:?}", status.state);
                return self.broken("C6", job, &what);
            }
        }
        Ok(())
    }
}
