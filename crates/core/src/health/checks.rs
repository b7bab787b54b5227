//! Health checks: when they run, and what the result of one means (H1–H5, H9). Whether the job is healthy follows from
//! all of them, in `health.rs`.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::event::Code;
use crate::health::context::{HealthContext, HealthDecision};
use crate::health::heartbeats::heartbeat_interval;
use crate::health::state::{CheckResult, CheckRun, CheckState, JobHealth};
use crate::ids::{CheckIx, CheckRunId};
use crate::input::CheckError;
use crate::log_entry::LogEvent;
use crate::plan::{Check, Level, Probe};
use crate::state::start_queue::NewProcess;
use crate::state::timers::JobTimer;
use crate::time::fmt_duration;

/// H3: the delay after the first failed check. It doubles until a check passes.
const FIRST_DELAY: Duration = Duration::from_millis(100);

impl JobHealth {
    /// H3: the checks of a process begin.
    pub(crate) fn begin(&mut self, context: &mut HealthContext<'_>) {
        if self.active {
            return;
        }
        self.active = true;
        // All of them first: a check that passes at once must not see the results of the previous run.
        self.checks.iter_mut().for_each(CheckState::reset);
        for check in (0..self.checks.len()).map(CheckIx::at) {
            self.run_check(check, context);
        }
        self.set_watchdog(context);
    }

    pub(super) fn run_check(&mut self, check: CheckIx, context: &mut HealthContext<'_>) {
        let (Some(planned), Some(state)) = (context.planned_check(check), self.check_mut(check)) else {
            return;
        };
        if planned.probe == Probe::Ready && !(context.process.is_ready && state.failures == 0) {
            // The result stays the same until a notice arrives or the watchdog fires.
            return;
        }
        // A check without a process does not wait for the process of another check that had this index before a reload.
        if planned.probe.is_passive() {
            state.started_at = context.now;
            return match context.process.telemetry_error.clone() {
                None => self.check_passed(check, context),
                Some(why) => self.check_failed(check, &why, false, context),
            };
        }
        match &mut state.run {
            CheckRun::None => {}
            CheckRun::Running { .. } => return,
            CheckRun::Stale { run_again, .. } => return *run_again = true,
        }
        let run = context.new_check_run(check);
        state.run = CheckRun::Running { id: run, timeout: None };
        let is_program = matches!(planned.probe, Probe::Exec(_));
        if !is_program || context.starts.request(NewProcess::Program(run), context.now) {
            self.create_check(check, run, context);
        }
    }

    /// It is the turn of a check. Its time counts from now on.
    pub(crate) fn create_check(&mut self, check: CheckIx, run: CheckRunId, context: &mut HealthContext<'_>) {
        let (Some(planned), Some(state)) = (context.planned_check(check), self.check_mut(check)) else {
            return;
        };
        let timeout = context.set_timer(context.now + planned.timeout, JobTimer::CheckTimeout(check));
        state.run = CheckRun::Running { id: run, timeout: Some(timeout) };
        state.started_at = context.now;
        context.decide(HealthDecision::RunCheck(check, run));
    }

    /// T1: the job of the telemetry server is healthy only while the server listens: at its port there may be another
    /// process.
    pub(crate) fn telemetry_listens(&mut self, context: &mut HealthContext<'_>) {
        if self.active {
            self.run_check(CheckIx::at(0), context);
        }
    }

    pub(crate) fn check_due(&mut self, check: CheckIx, context: &mut HealthContext<'_>) {
        if let Some(state) = self.check_mut(check) {
            state.next = None;
        }
        if self.active {
            self.run_check(check, context);
        }
    }

    pub(crate) fn check_done(
        &mut self,
        check: CheckIx,
        run: CheckRunId,
        result: Result<(), CheckError>,
        context: &mut HealthContext<'_>,
    ) {
        let Some(state) = self.check_mut(check).filter(|state| state.run.id() == Some(run)) else { return };
        match (core::mem::take(&mut state.run), result) {
            (CheckRun::Running { mut timeout, .. }, result) => {
                context.timers.cancel(&mut timeout);
                match result {
                    Ok(()) => self.check_passed(check, context),
                    Err(CheckError::Failed(why)) => self.check_failed(check, &why, false, context),
                    Err(CheckError::NotRun(why)) => self.not_checked(check, &why, context),
                }
            }
            (CheckRun::Stale { run_again: true, .. }, _) => self.run_check(check, context),
            (CheckRun::Stale { run_again: false, .. } | CheckRun::None, _) => {}
        }
    }

    /// P5: a check has reached its timeout. It has failed now, whenever its process exits.
    pub(crate) fn check_timeout(&mut self, check: CheckIx, context: &mut HealthContext<'_>) {
        let (Some(planned), Some(state)) = (context.planned_check(check), self.check_mut(check)) else {
            return;
        };
        let CheckRun::Running { id: run, .. } = state.run else { return };
        state.run = CheckRun::Stale { id: run, run_again: false };
        // L7: the first of several failures is a warning.
        let repeats = state.last.as_ref().is_some_and(|last| last.result.is_err());
        context.decide(HealthDecision::CancelCheck(run));
        let after = fmt_duration(planned.timeout);
        let why = match &planned.probe {
            Probe::Http(target) => format!("{target}: no response within {after}"),
            Probe::Tcp { host, port } => format!("{host} port {port}: no connection within {after}"),
            Probe::Running | Probe::Ready | Probe::Exec(_) => format!("timeout after {after}"),
        };
        let fields = LogEvent::Timeout.fields().check(&planned.name).duration(planned.timeout);
        let arguments = match &planned.probe {
            Probe::Exec(command) => format!(": {}", command.arguments_in_log()),
            _ => String::new(),
        };
        let level = if repeats { Level::Debug } else { Level::Warn };
        context.log(level, fields, format!("{} timeout after {after}{arguments}", planned.name));
        self.check_failed(check, &why, true, context);
    }

    fn check_passed(&mut self, check: CheckIx, context: &mut HealthContext<'_>) {
        let now = context.now;
        let needed = match context.planned_check(check) {
            // It always passes, and runs again only for heartbeats.
            None | Some(Check { probe: Probe::Running | Probe::Ready, .. }) => 1,
            Some(planned) => planned.successes,
        };
        if let Some(state) = self.check_mut(check) {
            state.record(now, Ok(()));
            if state.successes >= needed {
                state.passes = Some(true);
            }
        }
        self.passed(context);
        self.schedule_check(check, false, context);
    }

    /// A check has failed; `logged` if that was logged already.
    pub(super) fn check_failed(
        &mut self,
        check: CheckIx,
        why: &str,
        logged: bool,
        context: &mut HealthContext<'_>,
    ) {
        let (Some(planned), Some(state)) = (context.planned_check(check), self.check_mut(check)) else {
            return;
        };
        let running = context.now.since(context.process.started_at);
        let (in_first_interval, in_start_period) =
            (running < planned.interval, running < planned.start_period);
        state.record(context.now, Err(why.into()));
        if in_start_period {
            state.failures = 0;
        }
        let never_passed = state.passes.is_none();
        let starting = never_passed && in_first_interval;
        let counts = state.failures >= planned.failures && !starting;
        // L7: the first failure is a warning, unless `unhealthy` is one or the job is still starting.
        let warn = state.failures == 1 && !starting && !counts && !logged;
        if counts && !never_passed {
            state.passes = Some(false);
        }
        let level = if warn { Level::Warn } else { Level::Debug };
        let fields = LogEvent::CheckFailed.fields().check(&planned.name).cause(why);
        context.log(level, fields, format!("{} failed: {why}", planned.name));
        if counts {
            self.unhealthy(&planned.name, why, context);
        }
        self.schedule_check(check, never_passed, context);
    }

    /// H3: the supervisor had no descriptor for a check. The health stays as it is; the same reason is logged once.
    fn not_checked(&mut self, check: CheckIx, why: &str, context: &mut HealthContext<'_>) {
        let now = context.now;
        let (Some(planned), Some(state)) = (context.planned_check(check), self.check_mut(check)) else {
            return;
        };
        let result = Err(format!("could not check: {why}"));
        let level = match &state.last {
            Some(last) if last.result == result => Level::Debug,
            _ => Level::Warn,
        };
        state.last = Some(CheckResult { at: now, took: now.since(state.started_at), result });
        let never_passed = state.passes.is_none();
        let fields = LogEvent::CheckFailed.fields().check(&planned.name).cause(why);
        context.log(level, fields, format!("{} could not check: {why}", planned.name));
        self.schedule_check(check, never_passed, context);
    }

    /// Schedules the next check: at growing delays until the first one passes, then every interval.
    fn schedule_check(&mut self, check: CheckIx, never_passed: bool, context: &mut HealthContext<'_>) {
        let now = context.now;
        let Some(planned) = context.planned_check(check) else { return };
        // A job that is healthy while it runs needs checks only for the heartbeats of its service, and for its events.
        let is_idle = planned.probe.is_passive() && !context.wants_repeats(Code::Healthy);
        let needs_heartbeats =
            context.planned().service.is_some() && heartbeat_interval(context.planned()).is_none();
        if !self.active || is_idle && !needs_heartbeats {
            return;
        }
        let Some(state) = self.check_mut(check) else { return };
        let at = if never_passed {
            let delay = state.delay.unwrap_or(FIRST_DELAY).min(planned.interval);
            state.delay = Some(delay.saturating_mul(2));
            now + delay
        } else {
            (state.started_at + planned.interval).max(now)
        };
        context.timers.cancel(&mut state.next);
        state.next = Some(context.set_timer(at, JobTimer::Check(check)));
    }

    /// Suspends the checks and cancels those that run; their results are ignored.
    pub(crate) fn stop(&mut self, context: &mut HealthContext<'_>) {
        context.timers.cancel(&mut self.heartbeat);
        context.timers.cancel(&mut self.watchdog);
        self.active = false;
        for check in &mut self.checks {
            context.timers.cancel(&mut check.next);
            if let CheckRun::Running { id: run, mut timeout } = check.run {
                context.timers.cancel(&mut timeout);
                if context.starts.withdraw(NewProcess::Program(run)) {
                    context.check_runs.remove(&run);
                    check.run = CheckRun::None;
                } else {
                    context.decide(HealthDecision::CancelCheck(run));
                }
            }
            if let Some(id) = check.run.id() {
                check.run = CheckRun::Stale { id, run_again: false };
            }
        }
    }
}
