//! The notices of the process as a check (H11, H12): it passes while the process is ready and alive.

use alloc::format;

use crate::health::context::HealthContext;
use crate::health::state::JobHealth;
use crate::ids::CheckIx;
use crate::plan::{Check, Probe};
use crate::state::timers::JobTimer;
use crate::time::fmt_duration;

impl JobHealth {
    /// The process has sent READY for the first time. While it reloads, it stays healthy, and its watchdog keeps
    /// running.
    pub(crate) fn became_ready(&mut self, context: &mut HealthContext<'_>) {
        if self.active {
            if let Some(check) = ready_check(context) {
                self.run_check(check, context);
            }
            self.set_watchdog(context);
        }
    }

    /// H12: starts the time for the next `WATCHDOG=1`, if the process is ready and checked.
    pub(super) fn set_watchdog(&mut self, context: &mut HealthContext<'_>) {
        let Some(time) = context.planned().ready.as_ref().and_then(|ready| ready.watchdog()) else { return };
        if context.process.is_ready && self.active {
            context.timers.cancel(&mut self.watchdog);
            self.watchdog = Some(context.set_timer(context.now + time, JobTimer::Watchdog));
        }
    }

    /// `WATCHDOG=1`: the process is alive. It passes the check again if it had failed.
    pub(crate) fn watchdog_received(&mut self, context: &mut HealthContext<'_>) {
        self.set_watchdog(context);
        let Some(check) = ready_check(context).filter(|_| self.active) else { return };
        let Some(state) = self.check_mut(check) else { return };
        if state.failures > 0 || state.passes == Some(false) {
            state.failures = 0;
            self.run_check(check, context);
        }
    }

    /// H12: no `WATCHDOG=1` came in time, which is a failed check.
    pub(crate) fn watchdog_missed(&mut self, context: &mut HealthContext<'_>) {
        self.watchdog = None;
        let time = context.planned().ready.as_ref().and_then(|ready| ready.watchdog());
        let (Some(time), Some(check)) = (time, ready_check(context)) else { return };
        // Further failures are counted at the same pace.
        self.set_watchdog(context);
        if let Some(state) = self.check_mut(check) {
            state.started_at = context.now;
        }
        let why = format!("no WATCHDOG=1 within {}", fmt_duration(time));
        self.check_failed(check, &why, false, context);
    }
}

/// The check that passes while the process is ready.
fn ready_check(context: &HealthContext<'_>) -> Option<CheckIx> {
    let checks = &context.planned().health.as_ref()?.checks;
    let is_ready = |check: &Check| check.probe == Probe::Ready;
    checks.iter().position(is_ready).map(CheckIx::at)
}
