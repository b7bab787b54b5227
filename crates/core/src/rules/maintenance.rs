//! Maintenance mode (D8).

use crate::effect::DesiredService;
use crate::event::Code;
use crate::health::state::JobHealth;
use crate::ids::JobIx;
use crate::plan::Level;
use crate::request::{Refusal, Reply};
use crate::state::job::State;
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::supervisor::Core;

impl Core {
    /// Enters or leaves maintenance mode: services leave the catalog and checks are suspended, or both resume. Jobs
    /// keep running.
    pub(crate) fn set_maintenance(&mut self, on: bool) -> Reply {
        if self.maintenance == on {
            return Reply::Updated(false);
        }
        match self.phase {
            // Nothing runs yet. The event follows `startup`.
            Phase::Starting => {
                self.maintenance = on;
                return Reply::Updated(true);
            }
            Phase::Running => {}
            Phase::Stopping | Phase::Terminating | Phase::Killing | Phase::Exited => {
                return Reply::Refused(Refusal::ShuttingDown);
            }
        }
        self.maintenance = on;
        let (message, code) = if on {
            ("entering maintenance mode", Code::EnterMaintenance)
        } else {
            ("leaving maintenance mode", Code::ExitMaintenance)
        };
        self.log(Level::Info, None, code, format_args!("{message}"));
        self.send(Origin::Global, code);
        for job in self.all_jobs() {
            if on {
                self.suspend(job);
            } else if self.job(job).is_up() {
                self.advertise_initial_status(job);
                if self.job(job).state() == State::Running {
                    self.begin_checks(job);
                }
            }
        }
        if !on {
            self.resume_watches();
        }
        Reply::Updated(true)
    }

    fn suspend(&mut self, job: JobIx) {
        // A job that is past its stop hooks is not checked any more, and its health counts when it exits (H7).
        if !self.job(job).is_past_hooks() {
            self.tell_health(job, JobHealth::suspend);
        }
        self.advertise(job, DesiredService::Absent);
    }
}
