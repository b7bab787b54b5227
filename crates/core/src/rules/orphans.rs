//! What remains of a run: processes that outlive it (P4), and a process that SIGKILL does not end (P6).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::effect::Effect;
use crate::ids::{JobIx, RunId};
use crate::input::ExitStatus;
use crate::log_entry::LogEvent;
use crate::plan::{Level, Signal};
use crate::rules::kill::ABANDON_TIMEOUT;
use crate::state::job::State;
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::state::run::LastExit;
use crate::supervisor::Core;
use crate::time::fmt_duration;

impl Core {
    /// P4: processes of a run that has ended were found, and have been sent SIGTERM.
    pub(crate) fn orphans_found(&mut self, run: RunId) {
        let outlived = self.plan_state.runs.get(&run).copied();
        let is_known = match outlived {
            Some(job) => {
                let rest = self.job_mut(job).rest_mut();
                rest.is_none_or(|rest| core::mem::replace(&mut rest.has_daemons, true))
            }
            None => self.orphans.contains_key(&run),
        };
        if is_known {
            return;
        }
        let (job, whose) = match self.journal.origin_of(run) {
            Some(Origin::Job(job)) => (Some(job), String::new()),
            Some(removed) => (None, format!("{} ", self.origin_name(removed))),
            None => (None, "an earlier run ".to_owned()),
        };
        let message = format_args!("{whose}left processes outside of its process group, sent SIGTERM");
        self.log(Level::Warn, job, LogEvent::Orphans.fields().signal(Signal::TERM), message);
        if outlived.is_some() {
            // The time of the run is theirs (S14).
            return;
        }
        if self.phase == Phase::Killing {
            return self.effects.push(Effect::KillOrphans { run });
        }
        self.set_orphans_timer(run);
    }

    /// Nothing is left of a run that has ended (P4), or whose process has exited while it was being ended (S14).
    pub(crate) fn orphans_gone(&mut self, run: RunId) {
        let mut timer = self.orphans.remove(&run);
        self.timers.cancel(&mut timer);
        let outlived = self.plan_state.runs.get(&run).copied();
        if let Some(job) = outlived.filter(|job| self.job(*job).state() == State::Outlived) {
            self.outlived_run_ended(job, run);
        }
    }

    /// P6: SIGKILL has not ended a process: it hangs in the kernel, or a debugger withholds its exit status. It
    /// executes no more code of the program, so the run ends as if it had exited on SIGKILL.
    pub(crate) fn abandon(&mut self, job: JobIx) {
        let Some(run) = self.job_mut(job).run_mut() else { return };
        run.abandon_timer = None;
        let (run, timed_out) = (run.id, run.timed_out);
        if self.job(job).state() == State::Outlived {
            return self.abandon_rest(job, run);
        }
        let pid = self.job(job).pid();
        let process = pid.map(|pid| format!(" {pid}")).unwrap_or_default();
        let waited = fmt_duration(ABANDON_TIMEOUT);
        let message = format_args!("did not exit within {waited} after SIGKILL, abandoning process{process}");
        let fields = LogEvent::Abandoned.fields().pid(pid).duration(ABANDON_TIMEOUT);
        self.log(Level::Warn, Some(job), fields, message);
        if self.job(job).state() == State::Starting {
            // It never ran, so the run counts as a short one (W8).
            self.job_mut(job).started_at = Some(self.now);
        }
        self.effects.push(Effect::Abandon { run });
        self.plan_state.runs.remove(&run);
        let status = ExitStatus::Signal(Signal::KILL);
        let ended_by = self.end_reason(job, timed_out);
        let exit =
            LastExit { timed_out, ended_by, ..LastExit::new(run, self.planned(job), status, self.now, pid) };
        self.set_failure(job, &exit);
        self.run_ended(job, exit);
    }

    /// The same for the other processes of a run.
    fn abandon_rest(&mut self, job: JobIx, run: RunId) {
        let waited = fmt_duration(ABANDON_TIMEOUT);
        let message =
            format_args!("other processes did not exit within {waited} after SIGKILL, abandoning them");
        self.log(Level::Warn, Some(job), LogEvent::Abandoned.fields().duration(ABANDON_TIMEOUT), message);
        self.effects.push(Effect::KillOrphans { run });
        self.outlived_run_ended(job, run);
    }
}
