//! Scenarios made up from a number.
//!
//! Times are mostly taken from a few round ones, so that things happen in the same instant far more often than they
//! would by chance; most plans are small, because most defects need few jobs and many orders.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use containerpilot_core::command::Command as CoreCommand;
use containerpilot_core::event::{Code, Source, UserSignal};
use containerpilot_core::ids::JobIx;
use containerpilot_core::input::{ExitStatus, Instance, StartErrorKind};
use containerpilot_core::plan::{
    AtEnd, Backoff, Catalog, Check, Command, Consul, ConsulAddress, Control, EventPattern, Format, Health,
    Job, Level, Logging, OnUnhealthy, Output, Plan, Probe, Process, Repeat, Restarts, Role, Service, Signal,
    Status, Stop, Tls, Trigger, Watch, When,
};

use crate::chance::{Chance, mix};
use crate::scenario::{CheckScript, Happening, Reaction, RunScript, Scenario, Script};

const SHORT: [u64; 6] = [0, 1, 5, 10, 50, 100];
const LONG: [u64; 8] = [0, 10, 100, 200, 500, 1_000, 2_000, 5_000];
const SPAN: [u64; 6] = [10, 50, 100, 200, 500, 1_000];
const NAMES: [&str; 12] =
    ["main", "db", "app", "web", "cron", "backup", "log", "queue", "proxy", "sync", "mail", "cache"];

/// A scenario that belongs to a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed);
    let most = chance.pick(&[1, 2, 2, 3, 3, 4, 5, 6, 8, 12]);
    let count = 1 + chance.index(most);
    let mut names: Vec<String> = NAMES.iter().take(count).map(|name| (*name).to_owned()).collect();
    if count > 1 && chance.percent(6) {
        let from = chance.index(count);
        let to = chance.index(count);
        names[to] = names[from].clone();
    }
    let watches = chance.pick(&[0, 0, 1, 2]);
    let mut watches: Vec<Watch> = ["redis", "etcd"]
        .into_iter()
        .take(watches)
        .map(|name| Watch { name: name.into(), interval: Duration::from_secs(1), tag: None, dc: None })
        .collect();
    // What was thought of later has a chance of its own, so that an old seed still means the same schedule, and more.
    let mut aside = Chance::new(mix(seed));
    let embedded = aside.percent(40);
    if embedded {
        // The embedded catalog knows only the services of jobs.
        for watch in &mut watches {
            watch.name = aside.pick(&NAMES[..count.max(2)]).into();
        }
        watches.dedup_by(|one, other| one.name == other.name);
    }
    let mut maker = Maker { chance: &mut chance, names: &names, watches: &watches };
    let mut jobs: Vec<Job> = (0..count).map(|nth| maker.job(nth)).collect();
    let main = chance.percent(8);
    let pass_signals = main && count == 1 && chance.percent(70);
    if main && let Some(job) = jobs.first_mut() {
        job.role = Role::Main;
        job.exec = Some(command("main"));
        job.when.trigger = at_startup();
        job.when.timeout = None;
        job.restarts = Restarts::Limited(0);
        (job.on_failure, job.on_success) = (AtEnd::Shutdown, AtEnd::Shutdown);
    }
    if chance.percent(15) {
        let at = usize::from(main);
        for job in jobs.iter_mut().skip(at).take(2) {
            make_coprocess(job);
        }
    }
    if chance.percent(10) {
        jobs.push(telemetry_job());
    }
    let mut later = Chance::new(mix(mix(seed)));
    if later.percent(10)
        && let Some(job) = jobs.iter_mut().rfind(|job| job.role == Role::User)
    {
        make_sensor(job, later.pick(&[1, 3, 10]));
    }
    let mut scripts: Vec<Script> = jobs.iter().map(|job| script(&mut chance, job)).collect();
    for script in &mut scripts {
        script.withdrawal = withdrawal(&mut aside);
    }
    let mut happenings = happenings(&mut chance, &watches);
    if embedded {
        happenings.retain(|(_, happening)| !matches!(happening, Happening::Instances(..)));
    }
    let level = if chance.percent(5) { Level::Debug } else { Level::Warn };
    let plan = Plan {
        watches,
        catalog: if embedded { Catalog::Embedded } else { consul() },
        logging: Logging { level, format: Format::Default, output: Output::Stdout },
        stop_timeout: chance.time(&[100, 500, 1_000, 5_000]).max(Duration::from_millis(1)),
        pass_signals,
        ..plain_plan(jobs)
    };
    let ready_at = chance.time(&SHORT);
    if !pass_signals {
        // Not before the startup: in the step of the startup too much would happen at once to be told apart.
        let begun = ready_at + Duration::from_micros(1);
        let mut commands = commands(&mut aside, plan.jobs.len());
        // A job with nothing to run lives and ends in one step, which is too much at once as well.
        commands.retain(|(_, happening)| match happening {
            Happening::Command(CoreCommand::Start(job) | CoreCommand::Restart(job)) => {
                plan.jobs.get(job.index()).is_none_or(|job| job.exec.is_some() || job.health.is_some())
            }
            _ => true,
        });
        happenings.extend(commands.into_iter().map(|(at, command)| (begun + at, command)));
    }
    Scenario {
        plan,
        scripts,
        happenings,
        ready_at,
        order: chance.number(),
        late: chance.percent(10),
        patience: chance.pick(&[30, 60, 100, 150, 300]),
    }
}

fn command(program: &str) -> Command {
    Command { program: program.into(), arguments: Vec::new() }
}

/// W1: at startup, once.
#[must_use]
pub fn at_startup() -> Trigger {
    let event = EventPattern { source: Source::Global, code: Code::Startup };
    Trigger::Event { event, repeat: Repeat::Once }
}

/// A plan of no particular kind: jobs, five seconds to stop, and warnings.
#[must_use]
pub fn plain_plan(jobs: Vec<Job>) -> Plan {
    Plan {
        jobs,
        watches: Vec::new(),
        catalog: Catalog::Embedded,
        control: Control {
            socket: "/run/containerpilot.socket".into(),
            required: false,
            mode: 0o600,
            group: None,
        },
        logging: Logging { level: Level::Warn, format: Format::Default, output: Output::Stdout },
        telemetry: None,
        stop_timeout: Duration::from_secs(5),
        pass_signals: false,
        toggle_maintenance: false,
    }
}

/// A catalog of which nobody knows what it holds.
#[must_use]
pub fn consul() -> Catalog {
    let tls = Tls {
        ca_file: None,
        ca_path: None,
        client_cert: None,
        client_key: None,
        server_name: None,
        verify: true,
    };
    let address = ConsulAddress::Network("localhost:8500".into());
    Catalog::Consul(Consul { address, https: false, token: None, token_file: None, tls })
}

/// A job of no particular kind: it runs at startup, once.
#[must_use]
pub fn plain_job(name: &str) -> Job {
    Job {
        name: name.into(),
        role: Role::User,
        exec: Some(command(name)),
        when: When { trigger: at_startup(), timeout: None },
        timeout: None,
        restarts: Restarts::Limited(0),
        backoff: Some(Backoff {
            initial: Duration::from_millis(100),
            max: Duration::from_secs(10),
            reset: Duration::from_secs(10),
        }),
        stop: Stop { signal: Signal::TERM, timeout: None, drain: Duration::ZERO },
        on_failure: AtEnd::Continue,
        on_success: AtEnd::Continue,
        health: None,
        service: None,
        process: Process::default(),
        raw_output: false,
    }
}

/// C6: a coprocess starts at startup, and is neither checked nor advertised.
fn make_coprocess(job: &mut Job) {
    job.role = Role::Coprocess;
    job.exec = Some(command("coprocess"));
    job.when = When { trigger: at_startup(), timeout: None };
    job.timeout = None;
    (job.health, job.service) = (None, None);
    (job.on_failure, job.on_success) = (AtEnd::Continue, AtEnd::Continue);
}

/// T2: a sensor measures now and then, and is neither checked nor advertised.
fn make_sensor(job: &mut Job, seconds: u64) {
    let interval = Duration::from_secs(seconds);
    job.role = Role::Sensor(0);
    job.exec = Some(command("sensor"));
    job.when = When { trigger: Trigger::Interval(interval), timeout: None };
    (job.timeout, job.restarts, job.backoff) = (Some(interval), Restarts::Unlimited, None);
    (job.health, job.service) = (None, None);
    (job.on_failure, job.on_success) = (AtEnd::Continue, AtEnd::Continue);
}

fn telemetry_job() -> Job {
    let five = Duration::from_secs(5);
    let check = Check {
        name: "running".into(),
        probe: Probe::Running,
        interval: five,
        timeout: five,
        failures: 1,
        raw_output: false,
    };
    Job {
        role: Role::Telemetry,
        exec: None,
        health: Some(Health {
            checks: vec![check],
            ttl: 3 * five,
            heartbeat: None,
            on_unhealthy: OnUnhealthy::Report,
        }),
        service: Some(service("containerpilot", None)),
        ..plain_job("containerpilot")
    }
}

/// A service of no particular kind.
#[must_use]
pub fn service(name: &str, initial_status: Option<Status>) -> Service {
    Service {
        name: name.into(),
        id: format!("{name}-host"),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 80,
        tags: Vec::new(),
        meta: BTreeMap::new(),
        ttl: Duration::from_secs(15),
        initial_status,
        enable_tag_override: false,
        deregister_critical_after: None,
    }
}

struct Maker<'a> {
    chance: &'a mut Chance,
    names: &'a [String],
    watches: &'a [Watch],
}

impl Maker<'_> {
    fn job(&mut self, nth: usize) -> Job {
        let mut job = plain_job(&self.names[nth]);
        job.when.trigger = self.trigger();
        if self.chance.percent(20) {
            job.when.timeout = Some(self.chance.time(&LONG));
        }
        job.timeout = self.run_timeout(&job.when.trigger);
        job.restarts = self.restarts(&job.when);
        if self.chance.percent(50) {
            job.backoff = self.backoff();
        }
        job.stop = self.stop();
        if self.chance.percent(10) {
            job.on_failure = AtEnd::Shutdown;
        }
        if self.chance.percent(5) {
            job.on_success = AtEnd::Shutdown;
        }
        if self.chance.percent(35) {
            job.health = Some(self.health());
            if self.chance.percent(70) {
                let status = if self.chance.percent(40) {
                    Some(self.chance.pick(&[Status::Passing, Status::Warning, Status::Critical]))
                } else {
                    None
                };
                job.service = Some(service(&job.name, status));
            }
        }
        let advertises = job.service.is_some();
        if self.chance.percent(if advertises { 20 } else { 1 }) {
            job.exec = None;
        }
        job
    }

    fn trigger(&mut self) -> Trigger {
        match self.chance.below(100) {
            0..30 => at_startup(),
            30..40 => Trigger::Interval(self.chance.time(&SPAN).max(Duration::from_millis(1))),
            40..66 => Trigger::Event { event: self.event(), repeat: self.repeat() },
            66..80 => {
                let code = self.chance.pick(&[Code::Stopping, Code::Stopping, Code::Stopped, Code::Shutdown]);
                let source = if code == Code::Shutdown { Source::Global } else { self.job_source() };
                Trigger::Event { event: EventPattern { source, code }, repeat: self.repeat() }
            }
            80..88 => Trigger::All { conditions: self.events(), repeat: self.repeat() },
            88..98 => Trigger::Any { conditions: self.events(), repeat: self.repeat() },
            _ => Trigger::Never,
        }
    }

    fn repeat(&mut self) -> Repeat {
        self.chance.pick(&[Repeat::Once, Repeat::Each])
    }

    fn events(&mut self) -> Vec<EventPattern> {
        let count = self.chance.pick(&[1, 2, 2, 3]);
        (0..count).map(|_| self.event()).collect()
    }

    fn job_source(&mut self) -> Source {
        if self.chance.percent(4) {
            return Source::Job("ghost".into());
        }
        Source::Job(self.names[self.chance.index(self.names.len())].clone())
    }

    fn event(&mut self) -> EventPattern {
        let (source, code) = match self.chance.below(100) {
            0..60 => {
                let code = self.chance.pick(&[
                    Code::ExitSuccess,
                    Code::ExitSuccess,
                    Code::ExitFailed,
                    Code::ExitFailed,
                    Code::Stopping,
                    Code::Stopped,
                    Code::Healthy,
                    Code::Healthy,
                    Code::Unhealthy,
                    Code::TimerExpired,
                ]);
                (self.job_source(), code)
            }
            60..75 => {
                let code = self.chance.pick(&[
                    Code::Startup,
                    Code::Startup,
                    Code::Shutdown,
                    Code::EnterMaintenance,
                    Code::ExitMaintenance,
                ]);
                (Source::Global, code)
            }
            75..88 if !self.watches.is_empty() => {
                let watch = &self.watches[self.chance.index(self.watches.len())];
                let code = self.chance.pick(&[Code::Changed, Code::Healthy, Code::Unhealthy]);
                (Source::Watch(watch.name.clone()), code)
            }
            75..78 => (Source::Watch("ghost".into()), Code::Changed),
            _ => (Source::Signal(self.chance.pick(&[UserSignal::Hup, UserSignal::Usr2])), Code::Signal),
        };
        EventPattern { source, code }
    }

    fn run_timeout(&mut self, trigger: &Trigger) -> Option<Duration> {
        let some = self.chance.percent(25);
        match trigger {
            Trigger::Interval(interval) => match self.chance.below(4) {
                0 => None,
                1 => Some(*interval * 3),
                2 => Some(self.chance.time(&SPAN).max(Duration::from_millis(1))),
                _ => Some(*interval),
            },
            _ if some => Some(self.chance.time(&LONG).max(Duration::from_millis(1))),
            _ => None,
        }
    }

    fn restarts(&mut self, when: &When) -> Restarts {
        let each = when.repeat() == Repeat::Each && !matches!(when.trigger, Trigger::Interval(_));
        match self.chance.below(10) {
            0..4 => Restarts::Limited(0),
            4..7 => Restarts::Limited(1 + self.chance.below(5)),
            // With `each` that is an error of the configuration (W6).
            _ if each => Restarts::Limited(self.chance.below(2)),
            _ => Restarts::Unlimited,
        }
    }

    fn backoff(&mut self) -> Option<Backoff> {
        if self.chance.percent(30) {
            return None;
        }
        let initial = self.chance.time(&[1, 10, 100]).max(Duration::from_millis(1));
        Some(Backoff {
            initial,
            max: initial.max(self.chance.time(&[10, 100, 1_000, 10_000])),
            reset: self.chance.time(&[10, 100, 1_000, 10_000]),
        })
    }

    fn stop(&mut self) -> Stop {
        Stop {
            signal: self.chance.pick(&[Signal::TERM, Signal::TERM, Signal::TERM, Signal(2), Signal::KILL]),
            timeout: if self.chance.percent(25) { Some(self.chance.time(&LONG)) } else { None },
            drain: if self.chance.percent(25) { self.chance.time(&LONG) } else { Duration::ZERO },
        }
    }

    fn health(&mut self) -> Health {
        let count = self.chance.pick(&[1, 1, 1, 2, 3]);
        let checks = (0..count).map(|nth| self.check(nth)).collect();
        Health {
            checks,
            ttl: Duration::from_secs(15),
            heartbeat: if self.chance.percent(15) {
                Some(self.chance.time(&SPAN).max(Duration::from_millis(1)))
            } else {
                None
            },
            on_unhealthy: self.chance.pick(&[OnUnhealthy::Report, OnUnhealthy::Report, OnUnhealthy::Restart]),
        }
    }

    fn check(&mut self, nth: usize) -> Check {
        let interval = self.chance.time(&[50, 100, 500, 1_000, 5_000]).max(Duration::from_millis(1));
        let timeout = if self.chance.percent(40) {
            self.chance.time(&LONG).max(Duration::from_millis(1))
        } else {
            interval
        };
        let probe = if self.chance.percent(6) { Probe::Running } else { Probe::Exec(command("check")) };
        let failures = self.chance.pick(&[1, 1, 1, 2, 3]);
        Check { name: format!("check{nth}"), probe, interval, timeout, failures, raw_output: false }
    }
}

fn script(chance: &mut Chance, job: &Job) -> Script {
    let count = chance.pick(&[1, 1, 2, 3, 4]);
    let runs = (0..count).map(|_| run_script(chance)).collect();
    let checks = job.health.iter().flat_map(|health| &health.checks).map(|_| check_scripts(chance)).collect();
    Script { runs, checks, withdrawal: None }
}

/// Most catalogs answer at once, some take a while, and some never do.
fn withdrawal(chance: &mut Chance) -> Option<Duration> {
    match chance.below(10) {
        0..6 => Some(Duration::ZERO),
        6..9 => Some(chance.time(&LONG)),
        _ => None,
    }
}

fn run_script(chance: &mut Chance) -> RunScript {
    let kinds = [
        StartErrorKind::NotFound,
        StartErrorKind::NotExecutable,
        StartErrorKind::NoResources,
        StartErrorKind::Other,
    ];
    RunScript {
        latency: if chance.percent(50) { Duration::ZERO } else { chance.time(&SHORT) },
        fails: if chance.percent(10) { Some(chance.pick(&kinds)) } else { None },
        ends_after: if chance.percent(25) { None } else { Some(chance.time(&LONG)) },
        status: match chance.below(10) {
            0..6 => ExitStatus::Code(0),
            6..9 => ExitStatus::Code(1 + u8::try_from(chance.below(9)).unwrap_or(0)),
            _ => ExitStatus::Signal(Signal(11)),
        },
        asked: if chance.percent(20) {
            Reaction::Ignores
        } else {
            let code = if chance.percent(50) { Some(chance.pick(&[0, 0, 3])) } else { None };
            Reaction::Ends(chance.time(&SHORT), code)
        },
        dies_after: if chance.percent(4) { None } else { Some(chance.time(&SHORT)) },
        leftovers: chance.percent(10),
    }
}

fn check_scripts(chance: &mut Chance) -> Vec<CheckScript> {
    let mood = chance.pick(&[5, 50, 80, 95]);
    let count = 1 + chance.index(6);
    let one = |chance: &mut Chance| CheckScript {
        takes: if chance.percent(8) { None } else { Some(chance.time(&SHORT)) },
        passes: chance.percent(mood),
        cancel: if chance.percent(70) { Duration::ZERO } else { chance.time(&LONG) },
    };
    (0..count).map(|_| one(chance)).collect()
}

/// What people ask for.
fn commands(chance: &mut Chance, jobs: usize) -> Vec<(Duration, Happening)> {
    let count = chance.pick(&[0, 0, 0, 1, 2, 4, 8]);
    let one = |chance: &mut Chance| {
        let at = chance.time(&[0, 1, 10, 50, 100, 101, 200, 500, 1_000, 2_000, 5_000]);
        // Now and then there is no such job.
        let bound = if chance.percent(3) { jobs + 1 } else { jobs };
        let job = JobIx::at(chance.index(bound));
        let command = match chance.below(10) {
            0..3 => CoreCommand::Start(job),
            3..6 => CoreCommand::Stop(job),
            6..9 => CoreCommand::Restart(job),
            9 if chance.percent(30) => return (at, Happening::Reload),
            _ => CoreCommand::Signal(job, chance.pick(&[Signal::TERM, Signal::KILL, Signal(10)])),
        };
        (at, Happening::Command(command))
    };
    (0..count).map(|_| one(chance)).collect()
}

fn happenings(chance: &mut Chance, watches: &[Watch]) -> Vec<(Duration, Happening)> {
    let count = chance.pick(&[0, 1, 2, 4, 8]);
    let mut list = Vec::new();
    for _ in 0..count {
        let at = chance.time(&[0, 1, 10, 50, 100, 200, 500, 1_000, 1_500, 2_000, 3_000, 5_000]);
        let what = match chance.below(100) {
            0..30 => Happening::Signal(chance.pick(&[Signal(1), Signal(12)])),
            30..50 => Happening::Signal(chance.pick(&[Signal(2), Signal::TERM])),
            50..75 => Happening::Command(CoreCommand::Maintenance(chance.percent(50))),
            75..95 if !watches.is_empty() => {
                let count = chance.below(3);
                let one =
                    |nth: u64| Instance { id: format!("i{nth}"), address: "127.0.0.1".into(), port: 80 };
                let first = chance.below(2);
                Happening::Instances(
                    chance.index(watches.len()),
                    (first..first + count).rev().map(one).collect(),
                )
            }
            _ => Happening::Nothing,
        };
        list.push((at, what));
    }
    list
}
