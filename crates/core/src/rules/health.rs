//! Health: checks, what they come to, and maintenance (H1–H8, D8).

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::{Effect, Wanted};
use crate::event::Code;
use crate::ids::{CheckIx, CheckRun, EventId, JobIx};
use crate::plan::{Check, Health, Level, OnUnhealthy, Probe, Status};
use crate::report::status::{CheckOverview, CheckResult};
use crate::rules::command::Answer;
use crate::rules::environment::Why;
use crate::rules::run::fmt_duration;
use crate::state::job::{Aim, State};
use crate::state::journal::Origin;
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::{TimerId, TimerKind};
use crate::time::Time;

/// The pace of the first checks, until one succeeds (H3).
const FIRST_PACE: Duration = Duration::from_millis(100);

/// What is known of a job's health.
#[derive(Debug)]
pub(crate) struct HealthState {
    /// Whether checks are to be made now.
    active: bool,
    /// Healthy, unhealthy, or not known.
    verdict: Option<bool>,
    checks: Vec<CheckState>,
    /// What the last check was told.
    pub(crate) told: Option<Told>,
}

/// What the checks of a run are told of why it runs.
#[derive(Debug)]
pub(crate) struct Told {
    /// Of which restart of the job, and of which cause, this speaks.
    pub(crate) of: (u64, Option<EventId>),
    pub(crate) why: Arc<Why>,
}

/// What is known of one check.
#[derive(Debug)]
struct CheckState {
    /// The run that goes on.
    running: Option<CheckRun>,
    /// Whether that run's result counts no more: the process it was for has ended, or its time is up.
    stale: bool,
    /// Whether it is to run again as soon as the stale run has ended.
    again: bool,
    began: Time,
    /// The last result that counted.
    last: Option<CheckResult>,
    /// Whether it passes; not known before the first result.
    passes: Option<bool>,
    /// How many failures in a row there were.
    failures: u32,
    /// The delay before the next try, until the first success.
    pace: Duration,
    next: Option<TimerId>,
    timeout: Option<TimerId>,
}

impl HealthState {
    pub(crate) fn new(health: &Health) -> Self {
        Self {
            active: false,
            verdict: None,
            told: None,
            checks: health.checks.iter().map(|_| CheckState::new()).collect(),
        }
    }

    /// Goes on where another life of the job has left off: with the checks that have not ended yet.
    pub(crate) fn take_over(&mut self, old: Self) {
        for (new, old) in self.checks.iter_mut().zip(old.checks) {
            (new.running, new.stale) = (old.running, old.running.is_some());
        }
    }

    /// Healthy, unhealthy, or not known.
    pub(crate) const fn verdict(&self) -> Option<bool> {
        self.verdict
    }
}

impl CheckState {
    const fn new() -> Self {
        Self {
            running: None,
            stale: false,
            again: false,
            began: Time::ZERO,
            last: None,
            passes: None,
            failures: 0,
            pace: FIRST_PACE,
            next: None,
            timeout: None,
        }
    }
}

/// What is known of one check of the plan.
pub(crate) struct CheckKnown<'a>(&'a Check, &'a CheckState);

impl CheckKnown<'_> {
    /// The same for whoever asks.
    pub(crate) fn overview(self) -> CheckOverview {
        let Self(planned, state) = self;
        CheckOverview {
            name: planned.name.clone(),
            running: state.running.is_some() && !state.stale,
            last: state.last.clone(),
            failures: state.failures,
            next: state.next.map(TimerId::at),
        }
    }
}

impl Core {
    /// What is known of a job's checks.
    pub(crate) fn checks_known(&self, job: JobIx) -> Vec<CheckKnown<'_>> {
        let planned = self.planned(job).health.iter().flat_map(|health| &health.checks);
        let states = self.job(job).health.iter().flat_map(|health| &health.checks);
        planned.zip(states).map(|(planned, state)| CheckKnown(planned, state)).collect()
    }

    fn check_state(&mut self, job: JobIx, check: CheckIx) -> Option<&mut CheckState> {
        self.job_mut(job).health.as_mut()?.checks.get_mut(check.index())
    }

    fn planned_check(&self, job: JobIx, check: CheckIx) -> Option<&Check> {
        self.planned(job).health.as_ref()?.checks.get(check.index())
    }

    fn checks_of(&self, job: JobIx) -> impl Iterator<Item = CheckIx> + use<> {
        let count = self.job(job).health.as_ref().map_or(0, |health| health.checks.len());
        (0..count).map(CheckIx::at)
    }

    /// H3, H4: the process is there, so the first checks are made at once; in maintenance they wait for its end.
    pub(crate) fn begin_checks(&mut self, job: JobIx) {
        let running = self.job(job).state() == State::Running;
        if self.maintenance || !running || self.job(job).aim() > Aim::Hooks {
            return;
        }
        match &mut self.job_mut(job).health {
            Some(health) if !health.active => {
                health.active = true;
                // All of them first: a check that passes at once must not meet what was known of the run before.
                for state in &mut health.checks {
                    (state.passes, state.failures, state.pace) = (None, 0, FIRST_PACE);
                }
            }
            _ => return,
        }
        for check in self.checks_of(job) {
            self.make_check(job, check);
        }
    }

    fn make_check(&mut self, job: JobIx, check: CheckIx) {
        let now = self.now;
        let Some(planned) = self.planned_check(job, check) else { return };
        let (timeout, needs_nothing) = (planned.timeout, planned.probe == Probe::Running);
        let Some(state) = self.check_state(job, check) else { return };
        // One that needs no process waits for none, not even for that of another check in this place, before a reload.
        if state.running.is_some() && !needs_nothing {
            state.again = true;
            return;
        }
        (state.began, state.again) = (now, false);
        if needs_nothing {
            return self.check_passed(job, check);
        }
        let run = self.new_check_run(job, check);
        let environment = self.check_environment(job);
        let timer = self.timers.set(now + timeout, TimerKind::CheckTimeout(job, check));
        if let Some(state) = self.check_state(job, check) {
            (state.running, state.stale, state.timeout) = (Some(run), false, Some(timer));
        }
        self.effects.push(Effect::RunCheck { job, check, run, environment });
    }

    pub(crate) fn check_due(&mut self, job: JobIx, check: CheckIx) {
        if let Some(state) = self.check_state(job, check) {
            state.next = None;
        }
        if self.job(job).health.as_ref().is_some_and(|health| health.active) {
            self.make_check(job, check);
        }
    }

    #[inline(never)]
    pub(crate) fn check_done(&mut self, run: CheckRun, result: Result<(), String>) {
        let Some((job, check)) = self.check_runs.remove(&run) else { return };
        let state = &mut self.jobs[job.index()];
        let Some(state) = state.health.as_mut().and_then(|health| health.checks.get_mut(check.index()))
        else {
            return;
        };
        if state.running != Some(run) {
            return;
        }
        self.timers.cancel(&mut state.timeout);
        state.running = None;
        if state.stale {
            state.stale = false;
            if state.again {
                self.make_check(job, check);
            }
            return;
        }
        match result {
            Ok(()) => self.check_passed(job, check),
            Err(why) => self.check_failed(job, check, &why),
        }
    }

    /// P5: a check has used up its time. It has failed now, whenever its process ends.
    pub(crate) fn check_timeout(&mut self, job: JobIx, check: CheckIx) {
        let Some(state) = self.check_state(job, check) else { return };
        state.timeout = None;
        let Some(run) = state.running else { return };
        state.stale = true;
        self.effects.push(Effect::CancelCheck { run });
        let (name, timeout) = self
            .planned_check(job, check)
            .map(|check| (check.name.clone(), check.timeout))
            .unwrap_or_default();
        let why = format!("{name} timeout after {}", fmt_duration(timeout));
        self.log(Level::Warn, Some(job), format_args!("{why}"));
        self.check_failed(job, check, &why);
    }

    fn check_passed(&mut self, job: JobIx, check: CheckIx) {
        let now = self.now;
        if let Some(state) = self.check_state(job, check) {
            state.last = Some(CheckResult { at: now, took: now.since(state.began), result: Ok(()) });
            (state.passes, state.failures) = (Some(true), 0);
        }
        let Some(health) = &mut self.job_mut(job).health else { return };
        let all = health.checks.iter().all(|check| check.passes == Some(true));
        if all && health.verdict != Some(true) {
            health.verdict = Some(true);
            self.log(Level::Info, Some(job), format_args!("is healthy"));
            self.send(Origin::Job(job), Code::Healthy, None);
            self.advertise(job, Wanted::Present(Status::Passing));
            self.begin_heartbeat(job);
        } else if all {
            self.beat(job);
        }
        self.schedule(job, check, false);
    }

    /// H6: a pass is a heartbeat, unless the heartbeats have a pace of their own.
    fn beat(&mut self, job: JobIx) {
        let own_pace = self.planned(job).health.as_ref().is_some_and(|health| health.heartbeat.is_some());
        if !own_pace && self.job(job).wanted == Wanted::Present(Status::Passing) {
            self.effects.push(Effect::Heartbeat { job });
        }
    }

    fn begin_heartbeat(&mut self, job: JobIx) {
        let pace = self.planned(job).health.as_ref().and_then(|health| health.heartbeat);
        if let Some(pace) = pace
            && self.planned(job).service.is_some()
        {
            let timer = self.timers.set(self.now + pace, TimerKind::Heartbeat(job));
            let state = &mut self.jobs[job.index()];
            self.timers.cancel(&mut state.heartbeat);
            state.heartbeat = Some(timer);
        }
    }

    pub(crate) fn heartbeat_due(&mut self, job: JobIx) {
        self.job_mut(job).heartbeat = None;
        if self.job(job).wanted == Wanted::Present(Status::Passing) {
            self.effects.push(Effect::Heartbeat { job });
            self.begin_heartbeat(job);
        }
    }

    fn check_failed(&mut self, job: JobIx, check: CheckIx, why: &str) {
        let Some(planned) = self.planned_check(job, check) else { return };
        let (needed, interval, name) = (planned.failures, planned.interval, planned.name.clone());
        let begun = self.job(job).started_at;
        let (now, young) = (self.now, self.now.since(begun) < interval);
        let Some(state) = self.check_state(job, check) else { return };
        state.last = Some(CheckResult { at: now, took: now.since(state.began), result: Err(why.into()) });
        state.failures = state.failures.saturating_add(1);
        let first_try = state.passes.is_none();
        let counts = state.failures >= needed && !(first_try && young);
        if counts {
            // Before the first success a failure says nothing about what was.
            state.passes = if first_try { None } else { Some(false) };
        }
        self.log(Level::Debug, Some(job), format_args!("{name} failed: {why}"));
        if counts {
            self.unhealthy(job, &name, why);
        }
        self.schedule(job, check, first_try);
    }

    /// E5: `unhealthy` is sent when the job becomes so, and again at every further failed check.
    fn unhealthy(&mut self, job: JobIx, check: &str, why: &str) {
        let Some(health) = &mut self.job_mut(job).health else { return };
        let news = health.verdict != Some(false);
        health.verdict = Some(false);
        if news {
            self.log(Level::Warn, Some(job), format_args!("is unhealthy: {check}: {why}"));
        }
        self.send(Origin::Job(job), Code::Unhealthy, None);
        self.advertise_critical(job);
        let restart = self
            .planned(job)
            .health
            .as_ref()
            .is_some_and(|health| health.on_unhealthy == OnUnhealthy::Restart);
        if news && restart && self.phase == Phase::Running && self.job(job).aim() == Aim::Up {
            self.replace(job);
        }
    }

    /// The next check: soon, until the first success; then at every interval.
    fn schedule(&mut self, job: JobIx, check: CheckIx, first_try: bool) {
        let now = self.now;
        let Some(planned) = self.planned_check(job, check) else { return };
        let (interval, idle) = (planned.interval, planned.probe == Probe::Running);
        // A job that is healthy while it runs needs no looking after, unless somebody wants to hear of it.
        if idle
            && (self.planned(job).service.is_none()
                || self.planned(job).health.as_ref().is_some_and(|health| health.heartbeat.is_some()))
        {
            return;
        }
        if !self.job(job).health.as_ref().is_some_and(|health| health.active) {
            return;
        }
        let Some(state) = self.check_state(job, check) else { return };
        let at = if first_try {
            let pace = state.pace.min(interval);
            state.pace = state.pace.saturating_mul(2).min(interval);
            now + pace
        } else {
            (state.began + interval).max(now)
        };
        let timer = self.timers.set(at, TimerKind::Check(job, check));
        let state = &mut self.jobs[job.index()];
        if let Some(state) = state.health.as_mut().and_then(|health| health.checks.get_mut(check.index())) {
            self.timers.cancel(&mut state.next);
            state.next = Some(timer);
        }
    }

    /// H7: the process has ended, so nothing is known any more; if it was healthy, that is news.
    pub(crate) fn end_checks(&mut self, job: JobIx) {
        self.stop_checks(job);
        let Some(health) = &mut self.job_mut(job).health else { return };
        let was = health.verdict.take();
        if was == Some(true) {
            self.send(Origin::Job(job), Code::Unhealthy, None);
        }
        self.advertise_critical(job);
    }

    /// No more checks are made; those that go on are cut short, and count for nothing.
    pub(crate) fn stop_checks(&mut self, job: JobIx) {
        let state = &mut self.jobs[job.index()];
        self.timers.cancel(&mut state.heartbeat);
        let Some(health) = &mut state.health else { return };
        health.active = false;
        for check in &mut health.checks {
            self.timers.cancel(&mut check.next);
            self.timers.cancel(&mut check.timeout);
            check.again = false;
            if let Some(run) = check.running
                && !check.stale
            {
                check.stale = true;
                self.effects.push(Effect::CancelCheck { run });
            }
        }
    }

    /// D8: services leave the catalog and checks stop; or both come back. Jobs go on.
    pub(crate) fn set_maintenance(&mut self, on: bool) -> Answer {
        if self.maintenance == on {
            return Answer::Updated(false);
        }
        match self.phase {
            // Nothing runs yet, so nothing changes; that it is so is said after the startup.
            Phase::Beginning => {
                self.maintenance = on;
                return Answer::Updated(true);
            }
            Phase::Running => {}
            Phase::Stopping | Phase::Killing | Phase::Left => {
                return Answer::Refused("the supervisor is stopping".into());
            }
        }
        self.maintenance = on;
        let message = if on { "maintenance begins" } else { "maintenance is over" };
        self.log(Level::Info, None, format_args!("{message}"));
        self.send(Origin::Global, if on { Code::EnterMaintenance } else { Code::ExitMaintenance }, None);
        for job in self.all_jobs() {
            if on {
                // Who leaves already is not checked any more, and has something to say of its health at its end (H7).
                if self.job(job).aim() <= Aim::Hooks {
                    self.stop_checks(job);
                    if let Some(health) = &mut self.job_mut(job).health {
                        health.verdict = None;
                    }
                }
                self.advertise(job, Wanted::Absent);
            } else if self.job(job).state() == State::Running && self.job(job).aim() == Aim::Up {
                let status = self.planned(job).service.as_ref().and_then(|service| service.initial_status);
                if let Some(status) = status {
                    self.advertise(job, Wanted::Present(status));
                }
                self.begin_checks(job);
            }
        }
        Answer::Updated(true)
    }
}
