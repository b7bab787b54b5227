//! B1: what is recorded has no secrets, and a core that was read from it decides the same.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use containerpilot_core::answer::{Answer, Entries, Instance};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{CheckRunId, JobIx, LockIx, RenderId, RunId, WatchIx};
use containerpilot_core::input::{
    CheckError, ExitStatus, Remains, RenderError, RenderedText, StartError, StartErrorKind,
};
use containerpilot_core::lock_report::{LockReport, LockWait};
use containerpilot_core::log_entry::LogEntry;
use containerpilot_core::plan::{
    Action, Catalog, Command, DnsRecord, Drain, Exec, FileTest, HttpMethod, HttpProbe, HttpTarget,
    JobLogging, JobOutput, Level, Metric, MetricKind, Otlp, Plan, Probe, Process, Ready, Service, Signal,
    Telemetry, Watch, WatchKind, Word,
};
use containerpilot_core::redaction::Redactor;
use containerpilot_core::rng::Rng;
use containerpilot_core::{Core, Effect, Input, Notice, Reply, Request, RequestId, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::harness::{Harness, plan};

/// Every job and part that a plan can have. Secrets are put into it by [`Secrets::fill`].
const PLAN: &str = "{
    consul: 'localhost:8500',
    locks: [{ name: 'primary', ttl: '20s' }],
    watches: [{ name: 'db', interval: 1, tag: 't' }],
    coprocesses: [{ name: 'side', command: 'side x' }],
    telemetry: { port: 9090, interfaces: 'eth0' },
    stopTimeout: '5s',
    jobs: [
        { name: 'main', exec: 'main x', port: 80, restarts: 'unlimited', tags: ['t'], meta: { k: 'v' },
          drain: { exec: 'drain x', timeout: '2s' }, env: { A: 'x' }, ready: { line: 'x' },
          health: [{ exec: 'check x', interval: 3, ttl: 10 }, { http: 'http://h/x', interval: 5, ttl: 10 }] },
        { name: 'web', exec: ['web', 'x'], replicas: 2, port: '8000-8009', restarts: 'unlimited',
          health: { exec: 'c x', interval: 5, ttl: 15 } },
        { name: 'told', exec: 'told x', ready: 'notify', restarts: 'unlimited' },
        { name: 'locked', exec: 'locked x', requires: ['lock.primary'], restarts: 'unlimited' },
        { name: 'filed', exec: 'filed x', restarts: 3 },
        { name: 'on-db', exec: 'a x', when: { source: 'watch.db', each: 'changed' } },
        { name: 'on-key', exec: 'a x' },
        { name: 'on-keys', exec: 'a x' },
        { name: 'on-file', exec: 'a x' },
        { name: 'no-file', exec: 'a x' },
        { name: 'set', do: { setEnv: { B: 'x', C: null } }, when: { source: 'watch.db', each: 'healthy' } },
        { name: 'every', exec: 'every x', when: { interval: '4s' } },
        { name: 'daily', exec: 'daily x', when: { cron: '* * * * *', timezone: 'Europe/Berlin' } },
    ],
}";

/// Random secrets: those that were made, and the last ones, which come again so that they are compared.
struct Secrets {
    rng: Rng,
    made: Vec<String>,
    last: VecDeque<String>,
}

impl Secrets {
    fn next(&mut self) -> String {
        if self.rng.percent(30) && !self.last.is_empty() {
            return self.last[self.rng.index(self.last.len())].clone();
        }
        let letter = |rng: &mut Rng| {
            char::from(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[rng.index(52)])
        };
        let secret: String = (0..16).map(|_| letter(&mut self.rng)).collect();
        self.made.push(secret.clone());
        self.last.push_back(secret.clone());
        if self.last.len() > 8 {
            self.last.pop_front();
        }
        secret
    }

    /// A value of a watch: a line, a text, bytes that are no text, or one that is too long for a variable.
    fn value(&mut self) -> Vec<u8> {
        let mut value = self.next().into_bytes();
        match self.rng.below(12) {
            0..3 => value.push(b'\n'),
            3 => value.insert(0, 0xff),
            4 => value.push(0),
            5 => value.extend_from_slice(b"\n\n"),
            6 => value = value.repeat(64 * 1024 / value.len() + usize::from(self.rng.percent(50))),
            7 => value.clear(),
            _ => {}
        }
        value
    }

    fn words(&mut self) -> Vec<Word> {
        let option = format!("--password={}", self.next());
        let url = format!("http://user:{}@host:$CONTAINERPILOT_PORT/{}", self.next(), self.next());
        [option, url, self.next()].map(Word::from).into()
    }

    fn command(&mut self, command: &mut Command) {
        command.arguments = self.words();
    }

    fn variables(&mut self) -> BTreeMap<String, String> {
        ["A", "B_TOKEN"].map(|name| (name.to_owned(), self.next())).into()
    }

    fn headers(&mut self) -> Vec<(String, String)> {
        [("Authorization".to_owned(), format!("Bearer {}", self.next()))].into()
    }

    fn probe(&mut self) -> HttpProbe {
        let path = format!("/hooks/{}?token={}", self.next(), self.next());
        HttpProbe {
            method: HttpMethod::Post,
            headers: self.headers(),
            body: Some(self.next()),
            ..HttpProbe::get(HttpTarget { https: true, host: "api".into(), port: 443, path })
        }
    }

    fn process(&mut self, process: &mut Process) {
        (process.env, process.shared_env) = (self.variables(), self.variables().into());
        process.secrets = [("KEY".to_owned(), "/run/secrets/key".to_owned())].into();
    }

    fn service(&mut self, service: &mut Service) {
        service.tags = vec![self.next(), self.next()];
        service.meta = self.variables();
    }

    /// A plan with a secret in every place that can have one.
    fn plan(&mut self) -> Plan {
        let mut plan = plan(PLAN);
        plan.logging.level = Level::Debug;
        plan.files = vec![crate::files::tested()];
        let watch = |name: &str, kind| Watch { name: name.into(), interval: Duration::from_secs(1), kind };
        let (key, prefix) = ("k".to_owned(), "p".to_owned());
        plan.watches.extend([
            watch("key", WatchKind::Key { key, dc: None }),
            watch("keys", WatchKind::Prefix { prefix, dc: None }),
            watch("http", WatchKind::Http(self.probe())),
            watch("file", WatchKind::File { path: "/etc/x".into() }),
            watch("tcp", WatchKind::Tcp { host: "peer".into(), port: 1 }),
            watch("dns", WatchKind::Dns { name: "peer".into(), record: DnsRecord::A }),
        ]);
        if let WatchKind::Service { tag, .. } = &mut plan.watches[0].kind {
            *tag = Some(self.next());
        }
        self.fill(&mut plan);
        plan
    }

    fn fill(&mut self, plan: &mut Plan) {
        use containerpilot_core::event::{Code, Source};
        use containerpilot_core::plan::{EventPattern, Repeat, RequiredSource, Requirement, Trigger};

        let sources = [
            ("on-key", Source::Watch("key".into()), Code::Changed),
            ("on-keys", Source::Watch("keys".into()), Code::Changed),
            ("on-file", Source::File("f".into()), Code::Changed),
            ("no-file", Source::File("f".into()), Code::Failed),
        ];
        for group in &mut plan.replicas {
            if let Exec::Program(command) = &mut group.template.exec {
                self.command(command);
            }
            self.process(&mut group.template.process);
        }
        let replicas: Vec<_> = plan.replicas.iter().flat_map(|group| group.jobs()).collect();
        let mut replicas = replicas.into_iter();
        for job in &mut plan.jobs {
            if job.replica.is_some() {
                *job = replicas.next().unwrap();
                continue;
            }
            match &mut job.exec {
                Exec::Program(command) => self.command(command),
                Exec::Action(Action::SetEnv(variables)) => {
                    variables[0].1 = Some(self.next());
                }
                _ => {}
            }
            if let Drain::Until { program, .. } = &mut job.stop.drain {
                self.command(program);
            }
            for check in job.health.iter_mut().flat_map(|health| &mut health.checks) {
                match &mut check.probe {
                    Probe::Exec(command) => self.command(command),
                    Probe::Http(probe) => *probe = self.probe(),
                    _ => {}
                }
            }
            if let Some(service) = &mut job.service {
                self.service(service);
            }
            if let Some(Ready::Line(pattern)) = &mut job.ready {
                *pattern = self.next();
            }
            self.process(&mut job.process);
            job.output = JobOutput::Logged(JobLogging { join: Some(self.next()), ..JobLogging::default() });
            if job.name == "side" {
                // C6: the default name of a coprocess.
                job.name = job.exec.program().unwrap().line();
            }
            if let Some((_, source, code)) = sources.iter().find(|(name, ..)| *name == job.name) {
                let event = EventPattern { source: source.clone(), code: *code };
                job.when.trigger = Trigger::Event { event, repeat: Repeat::Each };
            }
            if job.name == "filed" {
                job.requires = vec![Requirement { source: RequiredSource::File("f".into()), bind: false }];
            }
        }
        self.process(&mut plan.process);
        for file in &mut plan.files {
            file.template = Some(self.value().into());
            file.watches = vec!["db".into(), "key".into()];
            let command = Command { program: "test".into(), arguments: self.words() };
            file.test = Some(FileTest { command, timeout: Duration::from_secs(2) });
            file.secrets = [("key".to_owned(), "/run/secrets/key".to_owned())].into();
        }
        if let Catalog::Consul(consul) = &mut plan.catalog {
            consul.token = Some(self.next());
        }
        if let Some(Telemetry { tags, metrics, .. }) = &mut plan.telemetry {
            *tags = vec![self.next()];
            let name = "count".to_owned();
            *metrics =
                vec![Metric { legacy_key: name.clone(), name, help: self.next(), kind: MetricKind::Counter }];
        }
        plan.otlp = Some(Otlp {
            endpoint: HttpTarget {
                https: true,
                host: "o".into(),
                port: 1,
                path: format!("/{}", self.next()),
            },
            logs: true,
            traces: true,
            metrics: true,
            headers: self.headers(),
            tls: None,
            timeout: Duration::from_secs(1),
            interval: Duration::from_secs(1),
            resource: self.variables(),
        });
    }

    /// An answer that a watch of this kind can have.
    fn answer(&mut self, kind: &WatchKind) -> Result<Answer, String> {
        let other = self.rng.below(10);
        Ok(match kind {
            _ if other == 0 => return Err(format!("dial: {}", self.next())),
            WatchKind::Service { .. } | WatchKind::Dns { .. } => {
                let instance = |port: u16, secrets: &mut Self| Instance {
                    id: format!("i{port}"),
                    address: "10.0.0.9".into(),
                    port,
                    tags: vec![secrets.next()],
                    meta: secrets.variables(),
                };
                let ports = 0..self.rng.below(3) as u16;
                Answer::Instances(ports.map(|port| instance(port, self)).collect())
            }
            WatchKind::Tcp { .. } if other < 6 => Answer::Up,
            WatchKind::Tcp { .. } => Answer::Down(self.next()),
            WatchKind::Prefix { .. } => {
                let names = ["a", "b", "c"].into_iter().take(self.rng.index(4));
                Answer::Entries(names.map(|name| (name.to_owned(), self.value().into())).collect::<Entries>())
            }
            _ if other == 1 => Answer::Absent,
            WatchKind::Http(_) if other == 2 => Answer::Down(self.next()),
            WatchKind::File { .. } if other == 3 => {
                Answer::Entries([("a".to_owned(), self.value().into())].into())
            }
            _ => Answer::Value(self.value().into()),
        })
    }
}

/// What the effects of a core wait for.
#[derive(Default)]
struct World {
    starting: Vec<RunId>,
    running: Vec<RunId>,
    programs: Vec<CheckRunId>,
    renders: Vec<RenderId>,
    installs: Vec<RenderId>,
    absent: Vec<JobIx>,
    orphans: Vec<RunId>,
    reloads: usize,
    exited: bool,
}

fn take<T>(rng: &mut Rng, from: &mut Vec<T>) -> Option<T> {
    (!from.is_empty()).then(|| from.swap_remove(rng.index(from.len())))
}

impl World {
    fn see(&mut self, effect: &Effect) {
        match effect {
            Effect::Spawn { run, .. } => self.starting.push(*run),
            Effect::CancelStart { run } | Effect::Abandon { run } => {
                self.starting.retain(|other| other != run);
                self.running.retain(|other| other != run);
            }
            Effect::RunCheck { run, .. } | Effect::RunDrain { run, .. } | Effect::TestFile { run, .. } => {
                self.programs.push(*run);
            }
            Effect::RenderFile { render, .. } => self.renders.push(*render),
            Effect::InstallFile { render } => self.installs.push(*render),
            Effect::Advertise { job, desired: DesiredService::Absent } => self.absent.push(*job),
            Effect::Reload => self.reloads += 1,
            Effect::Exit(_) => self.exited = true,
            _ => {}
        }
    }

    /// An input that is possible now.
    fn input(&mut self, secrets: &mut Secrets, core: &Core, versions: &mut Vec<Plan>) -> Input {
        let jobs = core.plan().jobs.len();
        let rng = &mut secrets.rng;
        let kind = rng.below(27);
        let percent = rng.below(100);
        let input = match kind {
            0..3 => take(rng, &mut self.starting).map(|run| {
                if percent < 15 {
                    let message = format!("/bin/x: {}", secrets.next());
                    Input::StartFailed { run, why: StartError { kind: StartErrorKind::Other, message } }
                } else {
                    self.running.push(run);
                    Input::Started { run, pid: 100 + i32::try_from(run.0).unwrap() }
                }
            }),
            3..5 => take(rng, &mut self.running).map(|run| {
                let status = ExitStatus::Code(u8::from(percent < 50));
                let remains = match percent % 4 {
                    0 => {
                        self.orphans.push(run);
                        Remains::Group(format!("{} (7)", secrets.next()))
                    }
                    _ => Remains::Nothing,
                };
                Input::Exited { run, status, remains }
            }),
            5..9 => take(rng, &mut self.programs).map(|check| {
                let result = match percent {
                    0..50 => Ok(()),
                    50..75 => Err(CheckError::Failed(format!("exit code 1: {}", secrets.next()))),
                    _ => Err(CheckError::NotRun(secrets.next())),
                };
                Input::CheckDone { check, result }
            }),
            9..11 if !self.running.is_empty() => {
                let run = self.running[rng.index(self.running.len())];
                let notice = match percent % 4 {
                    0 => Notice::Ready,
                    1 => Notice::Reloading,
                    _ => Notice::Status(secrets.next()),
                };
                Some(Input::Notified { run, notice })
            }
            11..15 => {
                let watch = rng.index(core.plan().watches.len());
                let answer = secrets.answer(&core.plan().watches[watch].kind);
                Some(Input::Watched { watch: WatchIx::at(watch), answer })
            }
            15 | 16 => take(rng, &mut self.renders).map(|render| {
                let result = match percent {
                    0..50 => Ok(RenderedText::New),
                    50..60 => Ok(RenderedText::Same),
                    60..80 => Err(RenderError::System(secrets.next())),
                    _ => Err(RenderError::Text(secrets.next())),
                };
                Input::FileRendered { render, result }
            }),
            17 => take(rng, &mut self.installs).map(|render| {
                let result = if percent < 50 { Ok(()) } else { Err(secrets.next()) };
                Input::FileInstalled { render, result }
            }),
            18 => Some(Input::Lock {
                lock: LockIx(0),
                report: match percent {
                    0..60 => {
                        let until = Time::from_nanos(core.overview().now.as_nanos() + 20_000_000_000);
                        LockReport::Held { fencing: percent, until }
                    }
                    _ => LockReport::NotHeld(LockWait::Taken(Some("other".into()))),
                },
            }),
            19 => take(rng, &mut self.absent).map(|job| Input::Deregistered { job }),
            20 => take(rng, &mut self.orphans).map(|run| Input::OrphansGone { run }),
            21 => Some(Input::TelemetryListens(if percent < 50 { Ok(()) } else { Err(secrets.next()) })),
            22 | 23 => {
                let job = JobIx::at(rng.index(jobs));
                let request = match percent {
                    0..30 => {
                        let value = if percent < 5 { String::new() } else { secrets.next() };
                        let name = ["A", "B", "D"][usize::try_from(percent % 3).unwrap()].to_owned();
                        Request::SetVariables(vec![(name, Some(value))])
                    }
                    30..40 => Request::Scale("web".into(), 1 + (percent % 4) as u16),
                    40..55 => {
                        // The same plan, one with other secrets, or an earlier one.
                        if percent < 45 {
                            versions.push(secrets.plan());
                        }
                        let nth = secrets.rng.index(versions.len());
                        Request::Reload(Box::new(versions[nth].clone()))
                    }
                    55..65 => Request::Restart(job),
                    65..75 => Request::Start(job),
                    75..82 => Request::Stop(job),
                    82..86 => Request::Maintenance(percent.is_multiple_of(2)),
                    86..90 => Request::Several(vec![Request::Restart(job)]),
                    90..95 => Request::RollingRestart(vec![job]),
                    _ => Request::Signal(job, Signal::HUP),
                };
                Some(Input::Request { id: RequestId(kind), request })
            }
            24 => Some(match percent {
                0..30 => Input::Signal(Signal::USR1),
                30..60 => Input::OutOfMemory { processes: 1 },
                _ => Input::OrphansFound { run: RunId(percent) },
            }),
            25 => Some(match percent {
                0..30 => Input::Clock { unix: Duration::from_secs(1_800_000_000), asleep: Duration::ZERO },
                30..50 => Input::CheckStarted { check: *self.programs.first().unwrap_or(&CheckRunId(0)) },
                50..60 => Input::StartDelayed { run: *self.starting.first().unwrap_or(&RunId(0)) },
                60..65 => Input::StartPending { run: *self.starting.first().unwrap_or(&RunId(0)) },
                _ => Input::Tick,
            }),
            _ => None,
        };
        input.unwrap_or(Input::Tick)
    }
}

/// What a recording is written and read with.
fn written(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap()
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).unwrap()
}

fn keyed(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    ("the key", bytes).hash(&mut hasher);
    hasher.finish()
}

/// An effect without texts that may be secret.
fn shape(effect: &Effect) -> String {
    let names = |environment: &containerpilot_core::variables::ProcessEnvironment| {
        // The pid of a coprocess has a name that is made of its command.
        let names: BTreeSet<&str> = environment.iter().map(|(name, _)| name).collect();
        names.into_iter().filter(|name| !name.ends_with("_PID")).collect::<Vec<_>>().join(" ")
    };
    let log = |entry: &LogEntry| {
        let LogEntry { level, job, message: _, fields, with_output } = entry;
        let (event, pid, code) = (fields.event, fields.pid, fields.code);
        let (signal, duration) = (fields.signal, fields.duration);
        format!("log {level:?} {job:?} {event:?} {pid:?} {code:?} {signal:?} {duration:?} {with_output}")
    };
    match effect {
        Effect::Spawn { job, run, environment } => format!("spawn {job:?} {run:?} {}", names(environment)),
        Effect::RunCheck { job, check, run, environment } => {
            format!("check {job:?} {check:?} {run:?} {}", names(environment))
        }
        Effect::RunDrain { job, run, environment } => format!("drain {job:?} {run:?} {}", names(environment)),
        Effect::TestFile { file, render, run, environment } => {
            format!("test {file:?} {render:?} {run:?} {}", names(environment))
        }
        Effect::RenderFile { file, render, data, .. } => {
            let found: Vec<_> = data.iter().map(|(name, answer)| (name, answer.is_healthy())).collect();
            format!("render {file:?} {render:?} {found:?}")
        }
        Effect::Reply { id, reply } => match reply {
            Reply::Reloaded(changes) => {
                let lists = [&changes.kept, &changes.adjusted, &changes.restarted, &changes.waiting];
                let counts = lists.map(Vec::len);
                format!("reply {id:?} {counts:?} {} {}", changes.started.len(), changes.stopped.len())
            }
            Reply::Jobs(jobs) => {
                format!("reply {id:?} {:?}", jobs.iter().map(|job| job.result.is_ok()).collect::<Vec<_>>())
            }
            Reply::Updated(_) | Reply::Done(_) | Reply::Refused(_) => {
                format!("reply {id:?} {:?}", std::mem::discriminant(reply))
            }
        },
        Effect::PlanReplaced { plan, moves } => format!("plan {} {moves:?}", plan.jobs.len()),
        Effect::Log(entry) => log(entry),
        Effect::Exit(exit) => format!("exit {} {:?} {}", exit.code, exit.deadlines, log(&exit.entry)),
        Effect::InspectStart { .. }
        | Effect::CancelStart { .. }
        | Effect::Kill { .. }
        | Effect::KillOrphans { .. }
        | Effect::Abandon { .. }
        | Effect::CancelCheck { .. }
        | Effect::InstallFile { .. }
        | Effect::DiscardFile { .. }
        | Effect::Advertise { .. }
        | Effect::Heartbeat { .. }
        | Effect::ReleaseLock { .. }
        | Effect::NotifyManager(_)
        | Effect::Reload => format!("{effect:?}"),
    }
}

fn shapes(effects: &[Effect]) -> Vec<String> {
    effects.iter().map(shape).collect()
}

/// Everything that a recording has in it, and the events of both cores.
struct Recorded {
    secrets: Vec<String>,
    bytes: Vec<Vec<u8>>,
    kinds: BTreeSet<String>,
}

/// Steps a core and one that was read from redacted checkpoints, and compares them.
fn schedule(seed: u64, steps: usize) -> Recorded {
    let mut secrets = Secrets { rng: Rng::from_seed(seed), made: Vec::new(), last: VecDeque::new() };
    let mut versions = vec![secrets.plan()];
    let mut core = Core::new(versions[0].clone());
    let (mut redactor, mut hiding) = (Redactor::new(keyed), Redactor::hiding());
    let mut bytes = vec![written(&redactor.state(&core))];
    let mut twin: Core = read(&bytes[0]);
    let (mut world, mut now, mut kinds) = (World::default(), Time::ZERO, BTreeSet::new());
    for step in 0..steps {
        let input = match step {
            3 => Input::Ready,
            _ if world.exited => break,
            _ if step + 60 == steps => Input::Signal(Signal::TERM),
            _ if world.reloads > 0 => {
                world.reloads -= 1;
                let request = Request::Reload(Box::new(versions[0].clone()));
                Input::Request { id: RequestId(9), request }
            }
            _ => world.input(&mut secrets, &core, &mut versions),
        };
        now = match core.next_deadline() {
            Some(due) if secrets.rng.percent(30) => now.max(due),
            _ => Time::from_nanos(now.as_nanos() + secrets.rng.below(50_000_000)),
        };
        let recorded = written(&redactor.input(&input));
        kinds.insert(kind(&input));
        let (mut effects, mut of_twin) = (Vec::new(), Vec::new());
        let words = format!("seed {seed}, step {step}: {input:?}");
        core.step(now, input, &mut effects);
        twin.step(now, read(&recorded), &mut of_twin);
        bytes.push(recorded);
        assert_eq!(shapes(&effects), shapes(&of_twin), "{words}");
        assert_eq!(core.next_deadline(), twin.next_deadline(), "{words}");
        let events = |core: &Core| core.journal().events().copied().collect::<Vec<_>>();
        assert_eq!(events(&core), events(&twin), "{words}");
        for effect in &effects {
            world.see(effect);
            if matches!(effect, Effect::PlanReplaced { .. }) {
                world.absent.clear();
            }
        }
        if secrets.rng.percent(10) {
            let checkpoint = written(&redactor.state(&core));
            let again: Core = read(&checkpoint);
            if written(&hiding.state(&again)) != written(&hiding.state(&twin)) {
                panic!(
                    "{words}: the states are {} and {}",
                    difference(&again, &twin),
                    difference(&twin, &again)
                );
            }
            if secrets.rng.percent(50) {
                twin = again;
            }
            bytes.push(checkpoint);
        }
    }
    Recorded { secrets: secrets.made, bytes, kinds }
}

/// Where a state begins to be another one.
fn difference(state: &Core, other: &Core) -> String {
    let (state, other) = (format!("{state:?}"), format!("{other:?}"));
    let same = state.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    state.chars().skip(same.saturating_sub(80)).take(240).collect()
}

/// The kind of an input.
fn kind(input: &Input) -> String {
    let text = format!("{input:?}");
    text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// How long a part of a secret is that must not be found.
const PART: usize = 6;

#[test]
fn b1_no_part_of_a_secret_is_recorded_and_the_recorded_core_decides_the_same() {
    let (mut made, mut kinds, mut searched) = (0, BTreeSet::new(), 0);
    for seed in 0..20 {
        let recorded = schedule(seed, 600);
        let parts: HashSet<&[u8]> =
            recorded.secrets.iter().flat_map(|secret| secret.as_bytes().windows(PART)).collect();
        for bytes in &recorded.bytes {
            let found = bytes.windows(PART).find(|part| parts.contains(part));
            assert_eq!(
                found.map(String::from_utf8_lossy),
                None,
                "seed {seed}: {}",
                String::from_utf8_lossy(bytes)
            );
            searched += bytes.len();
        }
        made += recorded.secrets.len();
        kinds.extend(recorded.kinds);
    }
    println!("{made} secrets, {searched} bytes, inputs {kinds:?}");
    assert!(made > 1000, "{made}");
    assert_eq!(kinds.len(), 22, "every kind of input: {kinds:?}");
}

/// B2: after a job has failed for good, and before an exit with a failure, the log names the file.
#[test]
fn b2_a_failure_names_the_file_of_the_recording() {
    let named = |log: &[String]| log.iter().filter(|line| line.contains("is recorded in /rec")).count();
    let config = |record: &str| {
        plan(&format!(
            "{{ {record} jobs: [
                {{ name: 'a', exec: 'a', restarts: 1, restartBackoff: false }},
                {{ name: 'b', exec: 'b' }},
                {{ name: 'c', exec: 'c', restarts: 'unlimited' }}] }}"
        ))
    };
    for (record, times) in [("record: { file: '/rec' },", [0, 1, 1]), ("", [0; 3])] {
        let mut harness = Harness::new(config(record));
        harness.input(Input::Ready);
        let mut found = Vec::new();
        harness.exit("a", 1);
        found.push(named(&harness.log));
        harness.exit("a", 1);
        found.push(named(&harness.log));
        // A success is not one, and neither is a stop by hand.
        harness.exit("b", 0);
        let request = Request::Stop(JobIx(2));
        harness.input(Input::Request { id: RequestId(1), request });
        harness.exit("c", 1);
        found.push(named(&harness.log));
        assert_eq!(found, times, "{:?}", harness.log);
    }
    let mut harness = Harness::new(plan("{ record: { file: '/rec' }, jobs: [{ name: 'a', exec: 'a' }] }"));
    harness.input(Input::Ready);
    harness.exit("a", 3);
    // The job and the container.
    assert_eq!(named(&harness.log), 2, "{:?}", harness.log);
    let mut harness = Harness::new(plan("{ record: { file: '/rec' }, jobs: [{ name: 'a', exec: 'a' }] }"));
    harness.input(Input::Ready);
    harness.exit("a", 0);
    assert_eq!(named(&harness.log), 0);
}
