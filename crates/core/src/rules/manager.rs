//! Notices to the service manager of the supervisor (H11).

use crate::effect::{Effect, ManagerNotice};
use crate::ids::JobIx;
use crate::plan::{DependencyCondition, Role};
use crate::state::job::State;
use crate::state::phase::Phase;
use crate::state::run::LastExit;
use crate::supervisor::{Core, Manager};

impl Core {
    /// Sends READY when every job that starts at startup is ready, and STOPPING at shutdown.
    pub(crate) fn report_to_manager(&mut self) {
        let notice = match (self.manager, self.phase) {
            (Manager::Silent, _) | (_, Phase::Starting) => return,
            (Manager::AwaitsReady, Phase::Running) => {
                if !self.all_jobs().all(|job| self.is_up_for_manager(job)) {
                    return;
                }
                self.manager = Manager::AwaitsStop;
                ManagerNotice::Ready
            }
            (Manager::AwaitsStop, Phase::Running) => return,
            _ => {
                self.manager = Manager::Silent;
                ManagerNotice::Stopping
            }
        };
        self.effects.push(Effect::NotifyManager(notice));
    }

    /// Returns true unless the job starts at startup and is not ready yet: one with checks is healthy, one that runs
    /// once has succeeded, any other has a process, or has had one and waits for its next event.
    fn is_up_for_manager(&self, job: JobIx) -> bool {
        let (planned, state) = (self.planned(job), self.job(job));
        if planned.role.is_secondary() || !planned.when.starts_at_startup() {
            return true;
        }
        match planned.dependency_condition() {
            DependencyCondition::Healthy => self.is_healthy(job) == Some(true),
            // The program on the command line is not expected to end.
            DependencyCondition::Succeeded if planned.role != Role::Main => {
                state.has_ended() && state.last_exit.as_ref().is_some_and(LastExit::is_success)
            }
            DependencyCondition::Succeeded | DependencyCondition::Running => {
                let waits_for_next = state.state() == State::Waiting && !self.is_deferred(job);
                state.has_run
                    && (state.state() == State::Running || waits_for_next || planned.when.is_periodic())
            }
        }
    }
}
