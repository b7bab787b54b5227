//! Signals to the processes of a run, and what remains of it (S9, P4, P6).

use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::{Effect, KillReason};
use crate::ids::{JobIx, RunId};
use crate::log_entry::{Fields, LogEvent};
use crate::plan::{Signal, StopScope};
use crate::state::phase::Phase;
use crate::state::timers::{JobTimer, TimerKind};
use crate::supervisor::Core;

/// How long a job waits for its process after SIGKILL.
pub(crate) const ABANDON_TIMEOUT: Duration = Duration::from_secs(2);

impl Core {
    /// Sends a stop signal to the processes that it is for (S9).
    pub(crate) fn send_stop_signal(&mut self, job: JobIx, signal: Signal, reason: KillReason) {
        let scope = self.planned(job).stop.scope;
        self.send_signal_to(job, signal, scope, reason);
    }

    /// The fields of an entry about a job that gets SIGKILL because it has not exited in time.
    pub(crate) fn killing(&self, job: JobIx, timeout: Duration) -> Fields {
        LogEvent::Killing.fields().pid(self.job(job).pid()).signal(Signal::KILL).duration(timeout)
    }

    /// Sends a signal to a job's process, if it has one. A process that has not executed its program is ended by it
    /// before it does.
    pub(crate) fn send_signal(&mut self, job: JobIx, signal: Signal, reason: KillReason) {
        self.send_signal_to(job, signal, StopScope::Group, reason);
    }

    fn send_signal_to(&mut self, job: JobIx, signal: Signal, scope: StopScope, reason: KillReason) {
        let Some(run) = self.job_mut(job).run_mut() else { return };
        run.signalled = true;
        let run = run.id;
        // SIGKILL is for all processes of the run.
        let scope = if signal == Signal::KILL { StopScope::Group } else { scope };
        self.effects.push(Effect::Kill { run, signal, scope, reason });
        if signal == Signal::KILL {
            self.set_abandon_timer(job);
        }
    }

    /// Has what remains of a run killed if it does not exit within the stop timeout.
    pub(crate) fn set_orphans_timer(&mut self, run: RunId) {
        let timer = self.timers.set(self.now + self.plan().stop_timeout, TimerKind::Orphans(run));
        self.orphans.insert(run, timer);
    }

    /// P4: kills what remains of a run.
    pub(crate) fn kill_orphans(&mut self, run: RunId) {
        let mut timer = self.orphans.remove(&run);
        if timer.is_some() {
            self.timers.cancel(&mut timer);
            self.effects.push(Effect::KillOrphans { run });
        }
    }

    pub(crate) fn kill_all_orphans(&mut self) {
        let runs: Vec<RunId> = self.orphans.keys().copied().collect();
        for run in runs {
            self.kill_orphans(run);
        }
    }

    /// P6: has a run abandoned if its process does not exit after SIGKILL. When all jobs are killed, the shutdown has
    /// its own timeout.
    fn set_abandon_timer(&mut self, job: JobIx) {
        let was_killed =
            self.job_mut(job).run_mut().is_none_or(|run| core::mem::replace(&mut run.killed, true));
        if was_killed || self.phase == Phase::Killing {
            return;
        }
        let timer = self.set_timer(job, ABANDON_TIMEOUT, JobTimer::Abandon);
        if let Some(run) = self.job_mut(job).run_mut() {
            run.abandon_timer = Some(timer);
        }
    }
}
