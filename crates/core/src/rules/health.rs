//! Health checks: when they run, and what their results mean (H1–H9).

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::effect::{DesiredService, Effect};
use crate::event::Code;
use crate::ids::{CheckIx, CheckRunId, JobIx};
use crate::input::CheckError;
use crate::log_entry::{Fields, LogEvent};
use crate::plan::{Check, Level, OnUnhealthy, Probe, Repeat, Role, Status};
use crate::state::health::{CheckResult, CheckRun, CheckState, HealthState};
use crate::state::journal::Origin;
use crate::state::start_queue::NewProcess;
use crate::state::timers::{JobTimer, TimerKind};
use crate::supervisor::Core;
use crate::time::{Time, fmt_duration};

/// H3: the delay after the first failed check. It doubles until a check passes.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// H9: the exit of a process so soon after it became healthy is suspicious.
const JUST_HEALTHY: Duration = Duration::from_secs(1);

impl Core {
    pub(crate) fn health_mut(&mut self, job: JobIx) -> Option<&mut HealthState> {
        self.job_mut(job).health.as_mut()
    }

    pub(crate) fn check_mut(&mut self, job: JobIx, check: CheckIx) -> Option<&mut CheckState> {
        self.health_mut(job)?.check_mut(check)
    }

    fn planned_check(&self, job: JobIx, check: CheckIx) -> Option<&Check> {
        self.planned(job).health.as_ref()?.checks.get(check.index())
    }

    pub(crate) fn checks_are_active(&self, job: JobIx) -> bool {
        self.job(job).health.as_ref().is_some_and(|health| health.active)
    }

    /// H3, H4: runs the first checks of a process, except in maintenance mode.
    pub(crate) fn begin_checks(&mut self, job: JobIx) {
        if self.maintenance || self.job(job).is_past_hooks() || self.stops_by_itself(job) {
            return;
        }
        let Some(health) = self.health_mut(job).filter(|health| !health.active) else { return };
        health.active = true;
        // All of them first: a check that passes at once must not see the results of the previous run.
        health.checks.iter_mut().for_each(CheckState::reset);
        for check in (0..health.checks.len()).map(CheckIx::at) {
            self.run_check(job, check);
        }
        self.set_watchdog(job);
    }

    pub(crate) fn run_check(&mut self, job: JobIx, check: CheckIx) {
        let now = self.now;
        let Some(planned) = self.planned_check(job, check) else { return };
        let (is_passive, is_program) = (planned.probe.is_passive(), matches!(planned.probe, Probe::Exec(_)));
        if planned.probe == Probe::Ready && !self.is_ready(job, check) {
            // Its process has not told anything else since. A notice or the watchdog changes that.
            return;
        }
        let Some(state) = self.check_mut(job, check) else { return };
        // A check without a process does not wait for the process of another check that had this index before a reload.
        if is_passive {
            state.started_at = now;
            return match self.telemetry_error.clone().filter(|_| self.planned(job).role == Role::Telemetry) {
                None => self.check_passed(job, check),
                Some(why) => self.check_failed(job, check, &why, false),
            };
        }
        match &mut state.run {
            CheckRun::None => {}
            CheckRun::Running { .. } => return,
            CheckRun::Stale { run_again, .. } => return *run_again = true,
        }
        let run = self.new_check_run(job, check);
        if let Some(state) = self.check_mut(job, check) {
            state.run = CheckRun::Running { id: run, timeout: None };
        }
        if !is_program || self.starts.request(NewProcess::Program(run), self.now) {
            self.create_check(job, check, run);
        }
    }

    /// Runs a check. Its time counts from now on.
    pub(crate) fn create_check(&mut self, job: JobIx, check: CheckIx, run: CheckRunId) {
        let now = self.now;
        let Some(timeout) = self.planned_check(job, check).map(|planned| planned.timeout) else { return };
        let timeout = self.set_timer(job, timeout, JobTimer::CheckTimeout(check));
        if let Some(state) = self.check_mut(job, check) {
            state.run = CheckRun::Running { id: run, timeout: Some(timeout) };
            state.started_at = now;
        }
        let environment = self.check_environment(job);
        self.effects.push(Effect::RunCheck { job, check, run, environment });
    }

    /// T1: the job of the telemetry server is healthy only while the server listens: at its port there may be another
    /// process.
    pub(crate) fn telemetry_listens(&mut self, result: Result<(), String>) {
        self.telemetry_error = result.err();
        let telemetry = self.all_jobs().find(|job| self.planned(*job).role == Role::Telemetry);
        if let Some(job) = telemetry.filter(|job| self.checks_are_active(*job)) {
            self.run_check(job, CheckIx::at(0));
        }
    }

    pub(crate) fn check_due(&mut self, job: JobIx, check: CheckIx) {
        if let Some(state) = self.check_mut(job, check) {
            state.next = None;
        }
        if self.checks_are_active(job) {
            self.run_check(job, check);
        }
    }

    pub(crate) fn check_done(&mut self, run: CheckRunId, result: Result<(), CheckError>) {
        let Some((job, check)) = self.plan_state.check_runs.remove(&run) else { return };
        let (state, timers) = self.job_and_timers(job);
        let Some(state) = state.health.as_mut().and_then(|health| health.check_mut(check)) else { return };
        if state.run.id() != Some(run) {
            return;
        }
        match (core::mem::take(&mut state.run), result) {
            (CheckRun::Running { mut timeout, .. }, result) => {
                timers.cancel(&mut timeout);
                match result {
                    Ok(()) => self.check_passed(job, check),
                    Err(CheckError::Failed(why)) => self.check_failed(job, check, &why, false),
                    Err(CheckError::NotRun(why)) => self.not_checked(job, check, &why),
                }
            }
            (CheckRun::Stale { run_again: true, .. }, _) => self.run_check(job, check),
            (CheckRun::Stale { run_again: false, .. } | CheckRun::None, _) => {}
        }
    }

    /// P5: a check has reached its timeout. It has failed now, whenever its process exits.
    pub(crate) fn check_timeout(&mut self, job: JobIx, check: CheckIx) {
        let Some(state) = self.check_mut(job, check) else { return };
        let CheckRun::Running { id: run, .. } = state.run else { return };
        state.run = CheckRun::Stale { id: run, run_again: false };
        // L7: the first of several failures is a warning.
        let repeats = state.last.as_ref().is_some_and(|last| last.result.is_err());
        self.effects.push(Effect::CancelCheck { run });
        let Some(planned) = self.planned_check(job, check) else { return };
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
        let timeout = format!("{} timeout after {after}{arguments}", planned.name);
        let level = if repeats { Level::Debug } else { Level::Warn };
        self.log(level, Some(job), fields, format_args!("{timeout}"));
        self.check_failed(job, check, &why, true);
    }

    fn check_passed(&mut self, job: JobIx, check: CheckIx) {
        let now = self.now;
        let needed = match self.planned_check(job, check) {
            // It always passes, and runs again only for heartbeats.
            None | Some(Check { probe: Probe::Running | Probe::Ready, .. }) => 1,
            Some(planned) => planned.successes,
        };
        if let Some(state) = self.check_mut(job, check) {
            state.record(now, Ok(()));
            if state.successes >= needed {
                state.passes = Some(true);
            }
        }
        let Some(health) = self.health_mut(job) else { return };
        if health.checks.iter().all(|check| check.passes == Some(true)) {
            if health.healthy.replace(true) == Some(true) {
                self.send_repeat(job, Code::Healthy);
                self.heartbeat_for_check(job);
            } else {
                health.healthy_since = now;
                self.log(Level::Info, Some(job), Code::Healthy, format_args!("healthy"));
                self.send(Origin::Job(job), Code::Healthy);
                self.send(Origin::Job(job), Code::BecameHealthy);
                self.enqueue_requirers(job);
                // D4: an initial status that is passing has had no heartbeats, and may have expired.
                if !self.send_heartbeat(job) {
                    self.advertise(job, DesiredService::Present(Status::Passing));
                }
                self.set_heartbeat(job);
            }
        }
        self.schedule_check(job, check, false);
    }

    /// A check has failed; `logged` if the log says so already.
    pub(crate) fn check_failed(&mut self, job: JobIx, check: CheckIx, why: &str, logged: bool) {
        let Some(planned) = self.planned_check(job, check) else { return };
        let (needed, interval, name) = (planned.failures, planned.interval, planned.name.clone());
        let start_period = planned.start_period;
        let (now, started) = (self.now, self.job(job).started_at.unwrap_or(Time::ZERO));
        let (in_first_interval, in_start_period) =
            (now.since(started) < interval, now.since(started) < start_period);
        let Some(state) = self.check_mut(job, check) else { return };
        state.record(now, Err(why.into()));
        if in_start_period {
            state.failures = 0;
        }
        let never_passed = state.passes.is_none();
        let starting = never_passed && in_first_interval;
        let counts = state.failures >= needed && !starting;
        // L7: the first failure is a warning, unless `unhealthy` is one or the job is still starting.
        let warn = state.failures == 1 && !starting && !counts && !logged;
        if counts && !never_passed {
            state.passes = Some(false);
        }
        let level = if warn { Level::Warn } else { Level::Debug };
        let fields = LogEvent::CheckFailed.fields().check(&name).cause(why);
        self.log(level, Some(job), fields, format_args!("{name} failed: {why}"));
        if counts {
            self.unhealthy(job, &name, why);
        }
        self.schedule_check(job, check, never_passed);
    }

    /// H3: the supervisor had no descriptor for a check. The health stays as it is; the same reason is logged once.
    fn not_checked(&mut self, job: JobIx, check: CheckIx, why: &str) {
        let now = self.now;
        let Some(name) = self.planned_check(job, check).map(|planned| planned.name.clone()) else { return };
        let Some(state) = self.check_mut(job, check) else { return };
        let result = Err(format!("could not check: {why}"));
        let level = match &state.last {
            Some(last) if last.result == result => Level::Debug,
            _ => Level::Warn,
        };
        state.last = Some(CheckResult { at: now, took: now.since(state.started_at), result });
        let never_passed = state.passes.is_none();
        let fields = LogEvent::CheckFailed.fields().check(&name).cause(why);
        self.log(level, Some(job), fields, format_args!("{name} could not check: {why}"));
        self.schedule_check(job, check, never_passed);
    }

    /// H9: how long a job has been healthy whose process exits by itself, if that is suspiciously short.
    pub(crate) fn healthy_before_exit(&self, job: JobIx) -> Option<Duration> {
        let checks = self.planned(job).health.iter().flat_map(|health| &health.checks);
        let is_real = checks.into_iter().any(|check| !check.probe.is_passive());
        let health =
            self.job(job).health.as_ref().filter(|health| is_real && health.healthy == Some(true))?;
        let by_itself = self.job(job).run().is_some_and(|run| !run.signalled);
        let time = self.now.since(health.healthy_since);
        (by_itself && time < JUST_HEALTHY).then_some(time)
    }

    /// Returns true if a job runs at every event with this code of another job (E5).
    fn wants_repeats(&self, job: JobIx, code: Code) -> bool {
        let graph = &self.plan_state.graph;
        let runs_each_time = |job: JobIx| {
            let when = &self.planned(job).when;
            when.repeat() == Repeat::Each && !when.needs_all()
        };
        let origin = Origin::Job(job);
        let mut subscribers =
            graph.subscribers(origin, code).iter().chain(graph.group_subscribers(origin, code));
        subscribers.any(|other| runs_each_time(other.job))
    }

    /// E5: repeats `healthy` or `unhealthy`, if a job runs each time. Otherwise the repeats would fill the journal.
    fn send_repeat(&mut self, job: JobIx, code: Code) {
        if self.wants_repeats(job, code) {
            self.send(Origin::Job(job), code);
        }
    }

    /// E5: sends `unhealthy` at every failed check that counts.
    fn unhealthy(&mut self, job: JobIx, check: &str, why: &str) {
        let Some(health) = self.health_mut(job) else { return };
        let became_unhealthy = health.healthy.replace(false) != Some(false);
        if became_unhealthy {
            let fields = Fields::from(Code::Unhealthy).check(check).cause(why);
            self.log(Level::Warn, Some(job), fields, format_args!("unhealthy: {check}: {why}"));
            self.send(Origin::Job(job), Code::Unhealthy);
            self.send(Origin::Job(job), Code::BecameUnhealthy);
            self.enqueue_requirers(job);
        } else {
            self.send_repeat(job, Code::Unhealthy);
        }
        self.advertise_critical(job);
        let planned = self.planned(job).health.as_ref();
        let restarts = planned.is_some_and(|health| health.on_unhealthy == OnUnhealthy::Restart);
        if became_unhealthy && restarts {
            self.plan_state.unhealthy.push_back(job);
        }
    }

    /// Schedules the next check: at growing delays until the first one passes, then every interval.
    fn schedule_check(&mut self, job: JobIx, check: CheckIx, never_passed: bool) {
        let now = self.now;
        let Some(planned) = self.planned_check(job, check) else { return };
        let interval = planned.interval;
        // A job that is healthy while it runs needs checks only for the heartbeats of its service, and for its events.
        let is_idle = planned.probe.is_passive() && !self.wants_repeats(job, Code::Healthy);
        if is_idle && (self.planned(job).service.is_none() || self.has_heartbeat_interval(job)) {
            return;
        }
        if !self.checks_are_active(job) {
            return;
        }
        let Some(state) = self.check_mut(job, check) else { return };
        let at = if never_passed {
            let delay = state.delay.unwrap_or(FIRST_DELAY).min(interval);
            state.delay = Some(delay.saturating_mul(2));
            now + delay
        } else {
            (state.started_at + interval).max(now)
        };
        let timer = self.timers.set(at, TimerKind::Job(job, JobTimer::Check(check)));
        let (state, timers) = self.job_and_timers(job);
        if let Some(state) = state.health.as_mut().and_then(|health| health.check_mut(check)) {
            timers.cancel(&mut state.next);
            state.next = Some(timer);
        }
    }

    /// H7: the process has exited, so the health is unknown. Sends `unhealthy` if it was healthy.
    pub(crate) fn end_checks(&mut self, job: JobIx) {
        self.stop_checks(job);
        let Some(health) = self.health_mut(job) else { return };
        if health.healthy.take() == Some(true) {
            self.send(Origin::Job(job), Code::Unhealthy);
            self.send(Origin::Job(job), Code::BecameUnhealthy);
            self.enqueue_requirers(job);
        }
        self.advertise_critical(job);
    }

    /// Suspends the checks and cancels those that run; their results are ignored.
    pub(crate) fn stop_checks(&mut self, job: JobIx) {
        let state = &mut self.plan_state.jobs[job.index()];
        let Some(health) = &mut state.health else { return };
        self.timers.cancel(&mut health.heartbeat);
        self.timers.cancel(&mut health.watchdog);
        health.active = false;
        for check in &mut health.checks {
            self.timers.cancel(&mut check.next);
            if let CheckRun::Running { id: run, mut timeout } = check.run {
                self.timers.cancel(&mut timeout);
                if self.starts.withdraw(NewProcess::Program(run)) {
                    self.plan_state.check_runs.remove(&run);
                    check.run = CheckRun::None;
                } else {
                    self.effects.push(Effect::CancelCheck { run });
                }
            }
            if let Some(id) = check.run.id() {
                check.run = CheckRun::Stale { id, run_again: false };
            }
        }
    }
}
