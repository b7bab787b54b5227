//! A stage for one core: plans written as users write them, processes that do as they are told.

use std::collections::VecDeque;
use std::time::Duration;

use containerpilot_config::host::Described;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{Input as File, Options, load};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::environment::Environment;
use containerpilot_core::ids::{CheckRunId, JobIx, RunId, WatchIx};
use containerpilot_core::input::{ExitStatus, Instance, StartError, StartErrorKind};
use containerpilot_core::plan::{Plan, Signal};
use containerpilot_core::{Core, Effect, Input, JobStatus, Reply, Request, RequestId, Time};

/// A core with everything that has come out of it.
pub(crate) struct Stage {
    pub(crate) core: Core,
    pub(crate) now: Time,
    /// Everything since the last look, in words: `spawn a`, `kill a 15`, `event a exitSuccess`, `advertise a Absent` …
    pub(crate) said: Vec<String>,
    /// Whether programs start at once.
    pub(crate) willing: bool,
    runs: Vec<(RunId, String)>,
    checks: VecDeque<(CheckRunId, String)>,
    seen: u64,
    next_pid: i32,
    pub(crate) environment: Environment,
    pub(crate) exit: Option<u8>,
    pub(crate) log: Vec<String>,
    pub(crate) answers: Vec<Reply>,
    /// Whether the catalog lets a service go at once.
    pub(crate) catalog_answers: bool,
}

pub(crate) fn plan(text: &str) -> Plan {
    let host = Described {
        addresses: vec![HostAddress { interface: "eth0".into(), ip: "10.0.0.1".parse().unwrap() }],
        hostname: "box".into(),
        ..Described::default()
    };
    let file = File { name: "plan".into(), text: text.into() };
    let loaded = load(vec![file], &host, Options { version: "0" });
    let problems: Vec<_> = loaded.report.problems().iter().map(|one| one.problem.message.clone()).collect();
    loaded.plan.unwrap_or_else(|| panic!("{problems:?}"))
}

impl Stage {
    /// A stage for the jobs in the text, not ready yet.
    pub(crate) fn jobs(text: &str) -> Self {
        Self::new(plan(&format!("{{ jobs: [{text}] }}")))
    }

    pub(crate) fn new(mut plan: Plan) -> Self {
        plan.logging.level = containerpilot_core::plan::Level::Debug;
        Self {
            core: Core::new(plan),
            now: Time::ZERO,
            said: Vec::new(),
            willing: true,
            runs: Vec::new(),
            checks: VecDeque::new(),
            seen: 0,
            next_pid: 100,
            environment: Environment::default(),
            exit: None,
            log: Vec::new(),
            answers: Vec::new(),
            catalog_answers: true,
        }
    }

    /// A stage for the jobs in the text, after `startup`.
    pub(crate) fn running(text: &str) -> Self {
        let mut stage = Self::jobs(text);
        stage.input(Input::Ready);
        stage
    }

    fn name(&self, job: JobIx) -> String {
        self.core.plan().jobs[job.index()].name.clone()
    }

    pub(crate) fn input(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.core.step(self.now, input, &mut effects);
        let news: Vec<_> =
            self.core.journal().events().filter(|event| event.id.0 > self.seen).copied().collect();
        for event in news {
            self.seen = event.id.0;
            self.said.push(format!("event {} {}", self.core.origin_name(event.origin), event.code));
        }
        let (mut started, mut gone) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Spawn { job, run, environment } => {
                    let name = self.name(job);
                    assert!(!self.runs.iter().any(|(_, other)| *other == name), "P6: `{name}` has a process");
                    self.said.push(format!("spawn {name}"));
                    self.runs.push((run, name));
                    self.environment = environment;
                    started.push(run);
                }
                Effect::Kill { run, signal, .. } => {
                    let name = self.runs.iter().find(|(id, _)| *id == run).map_or("gone", |(_, name)| name);
                    self.said.push(format!("kill {name} {}", signal.0));
                }
                Effect::KillOrphans { .. } => self.said.push("kill remains".into()),
                Effect::RunCheck { job, check, run, .. } => {
                    let name = self.core.plan().jobs[job.index()].health.as_ref().unwrap().checks
                        [check.index()]
                    .name
                    .clone();
                    assert!(!self.checks.iter().any(|(_, other)| *other == name), "H4: `{name}` runs twice");
                    self.said.push(format!("check {name}"));
                    self.checks.push_back((run, name));
                }
                Effect::CancelCheck { .. } => self.said.push("cancel check".into()),
                Effect::Advertise { job, desired } => {
                    if desired == DesiredService::Absent {
                        gone.push(job);
                    }
                    let desired = match desired {
                        DesiredService::Absent => "absent".to_owned(),
                        DesiredService::Present(status) => format!("{status:?}").to_lowercase(),
                    };
                    self.said.push(format!("advertise {} {desired}", self.name(job)));
                }
                Effect::PlanReplaced { .. } => self.said.push("replanned".into()),
                Effect::Reply { reply: answer, .. } => self.answers.push(answer),
                Effect::Heartbeat { job } => self.said.push(format!("heartbeat {}", self.name(job))),
                Effect::Log(entry) => {
                    assert!(!entry.message.contains("bug:"), "{}", entry.message);
                    self.log.push(entry.message);
                }
                Effect::Exit { code } => {
                    self.said.push(format!("exit {code}"));
                    self.exit = Some(code);
                }
            }
        }
        if self.catalog_answers {
            for job in gone {
                self.input(Input::Deregistered { job });
            }
        }
        if self.willing {
            for run in started {
                self.next_pid += 1;
                self.input(Input::Started { run, pid: self.next_pid });
            }
        }
    }

    fn run(&mut self, name: &str) -> RunId {
        let at = self.runs.iter().position(|(_, other)| other == name);
        let at = at.unwrap_or_else(|| panic!("`{name}` has no process; {:?}", self.said));
        self.runs.remove(at).0
    }

    /// The job's process exits with a code.
    pub(crate) fn exit(&mut self, name: &str, code: u8) {
        let run = self.run(name);
        self.input(Input::Exited { run, status: ExitStatus::Code(code), orphans: false });
    }

    /// The job's process exits, and leaves others of its group behind.
    pub(crate) fn exit_with_orphans(&mut self, name: &str) {
        let run = self.run(name);
        self.input(Input::Exited { run, status: ExitStatus::Code(0), orphans: true });
    }

    /// The job's process is ended by a signal.
    pub(crate) fn killed(&mut self, name: &str, signal: u8) {
        let run = self.run(name);
        self.input(Input::Exited { run, status: ExitStatus::Signal(Signal(signal)), orphans: false });
    }

    /// The job's program cannot be started.
    pub(crate) fn fails_to_start(&mut self, name: &str, kind: StartErrorKind) {
        let run = self.run(name);
        self.input(Input::StartFailed {
            run,
            why: StartError { kind, message: "/bin/x: no such thing".into() },
        });
    }

    /// The oldest check that goes on passes or fails.
    pub(crate) fn checked(&mut self, passed: bool) {
        let (check, _) = self.checks.pop_front().unwrap_or_else(|| panic!("no check; {:?}", self.said));
        self.input(Input::CheckDone { check, result: if passed { Ok(()) } else { Err("it failed".into()) } });
    }

    pub(crate) fn checks_going(&self) -> usize {
        self.checks.len()
    }

    /// Somebody asks for something; the answer.
    pub(crate) fn command(&mut self, command: Request) -> Reply {
        self.input(Input::Request { id: RequestId(1), request: command });
        self.answers.pop().unwrap_or_else(|| panic!("no answer; {:?}", self.said))
    }

    pub(crate) fn maintenance(&mut self, on: bool) {
        self.command(Request::Maintenance(on));
    }

    pub(crate) fn signal(&mut self, number: u8) {
        self.input(Input::Signal(Signal(number)));
    }

    /// The healthy instances of the first watch are these many.
    pub(crate) fn instances(&mut self, count: u16) {
        let instances =
            (0..count).map(|nth| Instance { id: format!("i{nth}"), address: "10.0.0.9".into(), port: nth });
        self.input(Input::Instances { watch: WatchIx(0), instances: instances.collect() });
    }

    /// Time passes; every deadline on the way is kept.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.core.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.input(Input::Tick);
        }
        self.now = end;
    }

    pub(crate) fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    pub(crate) fn millis(&mut self, millis: u64) {
        self.pass(Duration::from_millis(millis));
    }

    /// What was said since the last look.
    pub(crate) fn look(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// What was said since the last look, but for events.
    pub(crate) fn acts(&mut self) -> Vec<String> {
        self.look().into_iter().filter(|line| !line.starts_with("event")).collect()
    }

    /// The events since the last look, as `source code`.
    pub(crate) fn events(&mut self) -> Vec<String> {
        self.look().iter().filter_map(|line| line.strip_prefix("event ")).map(str::to_owned).collect()
    }

    /// What is known of a job.
    pub(crate) fn status(&self, name: &str) -> JobStatus {
        let at = self.core.plan().jobs.iter().position(|job| job.name == name).unwrap();
        self.core.status(JobIx::at(at))
    }

    pub(crate) fn has_process(&self, name: &str) -> bool {
        self.runs.iter().any(|(_, other)| other == name)
    }
}
