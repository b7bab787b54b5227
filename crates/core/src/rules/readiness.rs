//! Readiness: the notices of a process (H11).

use crate::event::Code;
use crate::health::state::JobHealth;
use crate::ids::{JobIx, RunId};
use crate::notice::Notice;
use crate::plan::Level;
use crate::state::job::State;
use crate::state::journal::Origin;
use crate::state::run::{Readiness, Run};
use crate::supervisor::Core;

impl Core {
    /// A process sent a notice. After `STOPPING=1` a notice changes only the status: the process cannot become ready
    /// again. What is left of a run after the exit of its process does not report for it (S14).
    pub(crate) fn notified(&mut self, run: RunId, notice: Notice) {
        let job = self.plan_state.runs.get(&run).copied();
        let Some(job) = job.filter(|job| self.planned(*job).ready.is_some()) else { return };
        if self.job(job).state() == State::Outlived {
            return;
        }
        let Some(state) = self.job_mut(job).run_mut() else { return };
        let readiness = state.readiness();
        let next = match (notice, readiness) {
            (Notice::Status(text), _) => {
                state.notified_mut().status = (!text.is_empty()).then_some(text);
                return;
            }
            (_, Readiness::Stopping) => return,
            (Notice::Ready, Readiness::Ready) => return,
            (Notice::Ready, _) => Readiness::Ready,
            (Notice::Stopping, _) => Readiness::Stopping,
            // One that was never ready is still starting.
            (Notice::Reloading, Readiness::Ready) => Readiness::Reloading,
            (Notice::Reloading, _) => return,
            (Notice::Watchdog, _) => return self.tell_health(job, JobHealth::watchdog_received),
        };
        state.notified_mut().readiness = next;
        // E3: nothing follows from a process before its start. `Started` catches up.
        if self.job(job).state() != State::Running {
            return;
        }
        match next {
            Readiness::Ready => self.became_ready(job, readiness),
            Readiness::Stopping => self.stopping_by_itself(job),
            Readiness::Starting | Readiness::Reloading => {}
        }
    }

    /// The program of a run was executed. What its process said before counts now.
    pub(crate) fn announce_early_readiness(&mut self, job: JobIx) {
        if self.job(job).run().is_some_and(|run| run.readiness().is_ready()) {
            self.announce_readiness(job);
        }
    }

    fn announce_readiness(&mut self, job: JobIx) {
        let now = self.now;
        if !self.job_mut(job).run_mut().is_some_and(|run| run.notified_mut().may_announce(now)) {
            return;
        }
        self.log(Level::Info, Some(job), Code::Ready, format_args!("ready"));
        self.send(Origin::Job(job), Code::Ready);
    }

    fn became_ready(&mut self, job: JobIx, before: Readiness) {
        self.announce_readiness(job);
        if before == Readiness::Starting {
            self.tell_health(job, JobHealth::became_ready);
        }
    }

    /// The process stops by itself: as after its exit, its health is unknown (H7).
    fn stopping_by_itself(&mut self, job: JobIx) {
        if !self.job(job).is_past_hooks() {
            self.end_checks(job);
        }
    }

    /// Returns true if the process has said that it stops. It is not checked any more.
    pub(crate) fn stops_by_itself(&self, job: JobIx) -> bool {
        self.job(job).run().is_some_and(|run| run.readiness() == Readiness::Stopping)
    }

    /// The readiness that the process of a job has reported.
    pub(crate) fn readiness(&self, job: JobIx) -> Option<Readiness> {
        let run = self.job(job).run().filter(|_| self.planned(job).ready.is_some());
        run.map(Run::readiness)
    }
}
