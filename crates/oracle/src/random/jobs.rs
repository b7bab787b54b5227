//! Random jobs.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::exit_status::ExitStatus;
use containerpilot_core::plan::{
    Backoff, Check, Command, Drain, Escalation, EventPattern, Exec, Health, Job, OnCompletion, OnStartLimit,
    OnUnhealthy, Probe, Ready, Repeat, RestartOn, Restarts, Signal, StartLimit, Status, Stop, StopScope,
    Trigger, Watch, When,
};

use super::plain::{command, plain_job, service};
use super::times::{LONG, SPAN, time};
use containerpilot_core::rng::Rng;

/// Generates jobs.
pub(super) struct JobGenerator<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) names: &'a [String],
    pub(super) watches: &'a [Watch],
}

impl JobGenerator<'_> {
    pub(super) fn job(&mut self, name: &str) -> Job {
        let mut job = plain_job(name);
        job.when.trigger = self.trigger();
        if self.rng.percent(20) {
            job.when.timeout = Some(time(self.rng, &LONG));
        }
        job.timeout = self.run_timeout(&job.when.trigger);
        job.restarts = self.restarts(&job.when);
        if self.rng.percent(50) {
            job.backoff = self.backoff();
        }
        job.stop = self.stop();
        job.restart_on = self.restart_on();
        job.success_codes = self.success_codes();
        if self.rng.percent(20) {
            job.start_limit = Some(self.start_limit());
        }
        if self.rng.percent(10) {
            job.on_failure = OnCompletion::Shutdown;
        }
        if self.rng.percent(5) {
            job.on_success = OnCompletion::Shutdown;
        }
        if self.rng.percent(35) {
            job.health = Some(self.health());
            if self.rng.percent(70) {
                let status = if self.rng.percent(40) {
                    Some(self.rng.pick(&[Status::Passing, Status::Warning, Status::Critical]))
                } else {
                    None
                };
                job.service = Some(service(&job.name, status));
                self.set_ttl(&mut job);
            }
        }
        let advertises = job.service.is_some();
        if self.rng.percent(if advertises { 20 } else { 1 }) {
            job.exec = Exec::Nothing;
        } else if self.rng.percent(15) {
            self.make_ready(&mut job);
        }
        job
    }

    /// H11, H12: the job says when it is ready, with the check that its configuration would give it.
    fn make_ready(&mut self, job: &mut Job) {
        let watchdog = self.rng.percent(60).then(|| time(self.rng, &SPAN).max(Duration::from_millis(1)));
        job.ready = Some(match self.rng.below(4) {
            0 => Ready::Descriptor(3),
            1 => Ready::Line("listening".into()),
            _ => Ready::Notify { watchdog },
        });
        let mut check = self.check(9);
        (check.probe, check.successes) = (Probe::Ready, 1);
        let mut health = job.health.take().unwrap_or_else(|| Health { checks: Vec::new(), ..self.health() });
        health.checks.retain(|check| check.probe != Probe::Running);
        health.checks.push(check);
        job.health = Some(health);
        self.set_ttl(job);
    }

    /// The TTL: always longer than the time to the next heartbeat (C7), even if a canceled check takes a while to end.
    pub(super) fn set_ttl(&mut self, job: &mut Job) {
        let (Some(health), Some(service)) = (&mut job.health, &mut job.service) else { return };
        let slow = Duration::from_millis(LONG[LONG.len() - 1]);
        let longest =
            health.checks.iter().map(|check| (check.interval + check.timeout + slow) * check.failures).max();
        let least = longest.unwrap_or_default() + health.heartbeat.unwrap_or_default();
        let ttl = (least + least / 4).max(Duration::from_secs(self.rng.pick(&[1, 5, 15])));
        (health.ttl, service.ttl) = (ttl, ttl);
        service.deregister_critical_after = self.rng.percent(20).then_some(ttl * 2);
    }

    fn trigger(&mut self) -> Trigger {
        match self.rng.below(100) {
            0..30 => When::at_startup().trigger,
            30..40 => Trigger::every(time(self.rng, &SPAN).max(Duration::from_millis(1))),
            40..66 => Trigger::Event { event: self.event(), repeat: self.repeat() },
            66..80 => {
                let code = self.rng.pick(&[Code::Stopping, Code::Stopping, Code::Stopped, Code::Shutdown]);
                let source = if code == Code::Shutdown { Source::Global } else { self.job_source() };
                Trigger::Event { event: EventPattern { source, code }, repeat: self.repeat() }
            }
            80..88 => Trigger::All { conditions: self.events(), repeat: self.repeat() },
            88..98 => Trigger::Any { conditions: self.events(), repeat: self.repeat() },
            _ => Trigger::Never,
        }
    }

    fn repeat(&mut self) -> Repeat {
        self.rng.pick(&[Repeat::Once, Repeat::Each])
    }

    fn events(&mut self) -> Vec<EventPattern> {
        let count = self.rng.pick(&[1, 2, 2, 3]);
        (0..count).map(|_| self.event()).collect()
    }

    fn job_source(&mut self) -> Source {
        if self.rng.percent(4) {
            return Source::Job("missing".into());
        }
        Source::Job(self.names[self.rng.index(self.names.len())].clone())
    }

    fn event(&mut self) -> EventPattern {
        let (source, code) = match self.rng.below(100) {
            0..60 => {
                let code = self.rng.pick(&[
                    Code::ExitSuccess,
                    Code::ExitSuccess,
                    Code::ExitFailed,
                    Code::ExitFailed,
                    Code::Stopping,
                    Code::Stopped,
                    Code::Healthy,
                    Code::Healthy,
                    Code::BecameHealthy,
                    Code::BecameUnhealthy,
                    Code::Ready,
                    Code::Unhealthy,
                    Code::TimerExpired,
                    Code::CrashLoop,
                ]);
                (self.job_source(), code)
            }
            60..75 => {
                let code = self.rng.pick(&[
                    Code::Startup,
                    Code::Startup,
                    Code::Shutdown,
                    Code::EnterMaintenance,
                    Code::ExitMaintenance,
                ]);
                (Source::Global, code)
            }
            75..88 if !self.watches.is_empty() => {
                let watch = &self.watches[self.rng.index(self.watches.len())];
                let code = self.rng.pick(&[Code::Changed, Code::Healthy, Code::Unhealthy]);
                (Source::Watch(watch.name.clone()), code)
            }
            75..78 => (Source::Watch("missing".into()), Code::Changed),
            _ => (Source::Signal(self.rng.pick(&[Signal::HUP, Signal::USR2])), Code::Signal),
        };
        EventPattern { source, code }
    }

    fn run_timeout(&mut self, trigger: &Trigger) -> Option<Duration> {
        let some = self.rng.percent(25);
        match trigger {
            Trigger::Interval { every: interval, .. } => match self.rng.below(4) {
                0 => None,
                1 => Some(*interval * 3),
                2 => Some(time(self.rng, &SPAN).max(Duration::from_millis(1))),
                _ => Some(*interval),
            },
            _ if some => Some(time(self.rng, &LONG).max(Duration::from_millis(1))),
            _ => None,
        }
    }

    pub(super) fn restarts(&mut self, when: &When) -> Restarts {
        let each = when.repeat() == Repeat::Each && !matches!(when.trigger, Trigger::Interval { .. });
        match self.rng.below(10) {
            0..4 => Restarts::Limited(0),
            4..7 => Restarts::Limited(1 + self.rng.below(5)),
            // `each` with unlimited restarts is an error of the configuration (W6).
            _ if each => Restarts::Limited(self.rng.below(2)),
            _ => Restarts::Unlimited,
        }
    }

    pub(super) fn restart_on(&mut self) -> RestartOn {
        if self.rng.percent(25) {
            return self.rng.pick(&[RestartOn::Failure, RestartOn::Success]);
        }
        RestartOn::Exit
    }

    pub(super) fn success_codes(&mut self) -> Vec<ExitStatus> {
        if self.rng.percent(15) {
            let signal = ExitStatus::Signal(Signal::TERM);
            return vec![self.rng.pick(&[ExitStatus::Code(0), ExitStatus::Code(1), signal]), signal];
        }
        Vec::new()
    }

    pub(super) fn start_limit(&mut self) -> StartLimit {
        StartLimit {
            count: self.rng.pick(&[1, 2, 3, 5]),
            within: time(self.rng, &LONG).max(Duration::from_millis(1)),
            then: self.rng.pick(&[OnStartLimit::Fail, OnStartLimit::Fail, OnStartLimit::Shutdown]),
        }
    }

    pub(super) fn backoff(&mut self) -> Option<Backoff> {
        if self.rng.percent(30) {
            return None;
        }
        let initial = time(self.rng, &[1, 10, 100]).max(Duration::from_millis(1));
        Some(Backoff {
            initial,
            max: initial.max(time(self.rng, &[10, 100, 1_000, 10_000])),
            reset: time(self.rng, &[10, 100, 1_000, 10_000]),
        })
    }

    pub(super) fn stop(&mut self) -> Stop {
        let signal = self.rng.pick(&[Signal::TERM, Signal::TERM, Signal::TERM, Signal::INT, Signal::KILL]);
        let mut escalation = Vec::new();
        if signal != Signal::KILL && self.rng.percent(20) {
            let count = self.rng.pick(&[1, 1, 2]);
            escalation = (0..count).map(|_| self.escalation()).collect();
        }
        Stop {
            signal,
            escalation,
            kill_after: if self.rng.percent(20) {
                Some(time(self.rng, &LONG).max(Duration::from_millis(1)))
            } else {
                None
            },
            scope: self.rng.pick(&[StopScope::Group, StopScope::Group, StopScope::Process]),
            hook_timeout: if self.rng.percent(25) { Some(time(self.rng, &LONG)) } else { None },
            drain: self.drain(),
        }
    }

    fn drain(&mut self) -> Drain {
        if !self.rng.percent(25) {
            return Drain::NONE;
        }
        let time = time(self.rng, &LONG);
        // The choice uses up no random number, so that a seed means the same plan otherwise.
        let (has_program, has_timeout) = (time.as_millis() % 3 == 2, time.as_millis() != 5_000);
        if !has_program {
            return Drain::For(time);
        }
        let program = Command { program: "drain".into(), arguments: Vec::new() };
        let timeout = has_timeout.then_some(time.max(Duration::from_millis(1)));
        Drain::Until { program, timeout }
    }

    fn escalation(&mut self) -> Escalation {
        let after = time(self.rng, &LONG).max(Duration::from_millis(1));
        Escalation { after, signal: self.rng.pick(&[Signal::TERM, Signal::QUIT, Signal::HUP]) }
    }

    pub(super) fn health(&mut self) -> Health {
        let count = self.rng.pick(&[1, 1, 1, 2, 3]);
        let checks = (0..count).map(|nth| self.check(nth)).collect();
        Health {
            checks,
            ttl: Duration::from_secs(15),
            heartbeat: if self.rng.percent(15) {
                Some(time(self.rng, &SPAN).max(Duration::from_millis(1)))
            } else {
                None
            },
            on_unhealthy: self.rng.pick(&[OnUnhealthy::Report, OnUnhealthy::Report, OnUnhealthy::Restart]),
        }
    }

    pub(super) fn check(&mut self, nth: usize) -> Check {
        let interval = time(self.rng, &[50, 100, 500, 1_000, 5_000]).max(Duration::from_millis(1));
        let timeout =
            if self.rng.percent(40) { time(self.rng, &LONG).max(Duration::from_millis(1)) } else { interval };
        let probe = if self.rng.percent(6) { Probe::Running } else { Probe::Exec(command("check")) };
        let failures = self.rng.pick(&[1, 1, 1, 2, 3]);
        let successes = self.rng.pick(&[1, 1, 1, 2, 3]);
        let start_period = if self.rng.percent(20) { time(self.rng, &SPAN) } else { Duration::ZERO };
        let name = format!("check{nth}");
        Check { name, probe, interval, timeout, failures, successes, start_period, raw_output: false }
    }
}
