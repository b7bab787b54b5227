//! Runs one core in virtual time, with plans written as configuration files and simulated processes.

use std::collections::VecDeque;
use std::time::Duration;

use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::effect::{DesiredService, ExitDeadlines};
use containerpilot_core::ids::{CheckRunId, FileIx, JobIx, RenderId, RunId, WatchIx};
use containerpilot_core::input::{
    Answer, CheckError, ExitStatus, Instance, Remains, RenderError, RenderedText, StartError, StartErrorKind,
};
use containerpilot_core::log_entry::{Fields, LogEntry};
use containerpilot_core::plan::{FileData, Level, Plan, Signal};
use containerpilot_core::variables::ProcessEnvironment;
use containerpilot_core::{Core, Effect, Input, JobStatus, Notice, Reply, Request, RequestId, Time};

/// A core and everything it has output.
pub(crate) struct Harness {
    pub(crate) core: Core,
    pub(crate) now: Time,
    /// Effects and events since they were last taken: `spawn a`, `kill a 15`, `event a exitSuccess`, `advertise a absent` …
    pub(crate) output: Vec<String>,
    /// True if every process starts at once.
    pub(crate) starts_succeed: bool,
    /// True if a process whose time to start is over has started, and the supervisor was only too late to read that.
    pub(crate) is_late: bool,
    runs: Vec<(RunId, String)>,
    checks: VecDeque<(CheckRunId, String)>,
    /// The renderings in progress, and then the files to install.
    pub(crate) renders: VecDeque<(RenderId, FileData)>,
    seen: u64,
    next_pid: i32,
    /// Of the last process.
    pub(crate) environment: ProcessEnvironment,
    /// Of the last check.
    pub(crate) check_environment: ProcessEnvironment,
    pub(crate) exit: Option<u8>,
    pub(crate) exit_deadlines: Option<ExitDeadlines>,
    pub(crate) log: Vec<String>,
    /// The level of each message in `log`.
    pub(crate) levels: Vec<Level>,
    /// The job of each message in `log`.
    log_jobs: Vec<Option<JobIx>>,
    fields: Vec<Fields>,
    /// The last entry of the log.
    pub(crate) last_entry: Option<LogEntry>,
    pub(crate) replies: Vec<Reply>,
    /// True if the catalog confirms every deregistration at once.
    pub(crate) catalog_confirms: bool,
}

pub(crate) fn plan(text: &str) -> Plan {
    try_plan(text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The plan of a file, or its problems.
pub(crate) fn try_plan(text: &str) -> Result<Plan, Vec<String>> {
    let host = StaticHost {
        addresses: vec![HostAddress { interface: "eth0".into(), ip: "10.0.0.1".parse().unwrap() }],
        hostname: "box".into(),
        ..StaticHost::default()
    };
    let file = ConfigFile { name: "plan".into(), text: text.into() };
    let loaded = load(vec![file], &host, Options { version: "0" });
    let problems = loaded.report.problems().iter().map(|one| one.problem.message.clone());
    loaded.plan.ok_or_else(|| problems.collect())
}

impl Harness {
    /// The jobs in the text, before startup.
    pub(crate) fn jobs(text: &str) -> Self {
        Self::new(plan(&format!("{{ jobs: [{text}] }}")))
    }

    pub(crate) fn new(mut plan: Plan) -> Self {
        plan.logging.level = Level::Debug;
        Self {
            core: Core::new(plan),
            now: Time::ZERO,
            output: Vec::new(),
            starts_succeed: true,
            is_late: false,
            runs: Vec::new(),
            checks: VecDeque::new(),
            renders: VecDeque::new(),
            seen: 0,
            next_pid: 100,
            environment: ProcessEnvironment::default(),
            check_environment: ProcessEnvironment::default(),
            exit: None,
            exit_deadlines: None,
            log: Vec::new(),
            levels: Vec::new(),
            log_jobs: Vec::new(),
            fields: Vec::new(),
            last_entry: None,
            replies: Vec::new(),
            catalog_confirms: true,
        }
    }

    /// The jobs in the text, after startup.
    pub(crate) fn running(text: &str) -> Self {
        let mut harness = Self::jobs(text);
        harness.input(Input::Ready);
        harness
    }

    fn file_name(&self, file: FileIx) -> String {
        self.core.plan().files[file.index()].name.clone()
    }

    /// The oldest rendering is done. Returns what it was rendered with.
    pub(crate) fn rendered(&mut self, result: Result<RenderedText, &str>) -> FileData {
        let (render, data) = self.renders.pop_front().unwrap();
        let result = result.map_err(|why| RenderError::Text(why.to_owned()));
        self.input(Input::FileRendered { render, result });
        data
    }

    /// The system has refused the oldest rendering.
    pub(crate) fn refused(&mut self, why: &str) {
        let (render, _) = self.renders.pop_front().unwrap();
        self.input(Input::FileRendered { render, result: Err(RenderError::System(why.to_owned())) });
    }

    /// The oldest file to install was installed, or could not be.
    pub(crate) fn installed(&mut self, result: Result<(), &str>) {
        let (render, _) = self.renders.pop_front().unwrap();
        self.input(Input::FileInstalled { render, result: result.map_err(str::to_owned) });
    }

    fn name(&self, job: JobIx) -> String {
        self.core.plan().jobs[job.index()].name.clone()
    }

    pub(crate) fn input(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.core.step(self.now, input, &mut effects);
        let new_events: Vec<_> =
            self.core.journal().events().filter(|event| event.id.0 > self.seen).copied().collect();
        for event in new_events {
            self.seen = event.id.0;
            self.output.push(format!("event {} {}", self.core.origin_name(event.origin), event.code));
        }
        let (mut spawned, mut inspected, mut deregistered) = (Vec::new(), Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Spawn { job, run, environment } => {
                    let name = self.name(job);
                    assert!(!self.runs.iter().any(|(_, other)| *other == name), "P6: `{name}` has a process");
                    self.output.push(format!("spawn {name}"));
                    self.runs.push((run, name));
                    self.environment = environment;
                    spawned.push(run);
                }
                Effect::InspectStart { run } => inspected.push(run),
                Effect::CancelStart { run } => {
                    let at = self.runs.iter().position(|(id, _)| *id == run).unwrap();
                    let (_, name) = self.runs.remove(at);
                    self.output.push(format!("cancel {name}"));
                    spawned.retain(|spawned| *spawned != run);
                }
                Effect::Kill { run, signal, .. } => {
                    let name = self.runs.iter().find(|(id, _)| *id == run).map_or("rest", |(_, name)| name);
                    self.output.push(format!("kill {name} {}", signal.0));
                }
                Effect::KillOrphans { .. } => self.output.push("kill orphans".into()),
                Effect::Abandon { run } => {
                    let at = self.runs.iter().position(|(id, _)| *id == run);
                    let at = at.unwrap_or_else(|| panic!("P6: {run:?} has no process"));
                    let (_, name) = self.runs.remove(at);
                    self.output.push(format!("abandon {name}"));
                }
                Effect::RunCheck { job, check, run, environment } => {
                    self.check_environment = environment;
                    let name = self.core.plan().jobs[job.index()].health.as_ref().unwrap().checks
                        [check.index()]
                    .name
                    .clone();
                    assert!(!self.checks.iter().any(|(_, other)| *other == name), "H4: `{name}` runs twice");
                    self.output.push(format!("check {name}"));
                    self.checks.push_back((run, name));
                }
                Effect::RunDrain { job, run, .. } => {
                    let name = format!("drain {}", self.core.plan().jobs[job.index()].name);
                    self.output.push(name.clone());
                    self.checks.push_back((run, name));
                }
                Effect::CancelCheck { .. } => self.output.push("cancel check".into()),
                Effect::RenderFile { file, render, data, .. } => {
                    self.output.push(format!("render {}", self.file_name(file)));
                    self.renders.push_back((render, data));
                }
                Effect::TestFile { file, run, .. } => {
                    let name = self.file_name(file);
                    self.output.push(format!("test {name}"));
                    self.checks.push_back((run, name));
                }
                Effect::InstallFile { render } => {
                    self.output.push("install".into());
                    self.renders.push_back((render, FileData::new()));
                }
                Effect::DiscardFile { .. } => self.output.push("discard".into()),
                Effect::Advertise { job, desired } => {
                    if desired == DesiredService::Absent {
                        deregistered.push(job);
                    }
                    let desired = match desired {
                        DesiredService::Absent => "absent".to_owned(),
                        DesiredService::Present(status) => format!("{status:?}").to_lowercase(),
                    };
                    self.output.push(format!("advertise {} {desired}", self.name(job)));
                }
                Effect::ReleaseLock { lock } => {
                    self.output.push(format!("release {}", self.core.plan().locks[lock.index()].name));
                }
                Effect::Reload => self.output.push("reload".into()),
                Effect::PlanReplaced { .. } => self.output.push("plan replaced".into()),
                Effect::Reply { reply: answer, .. } => self.replies.push(answer),
                Effect::NotifyManager(notice) => self.output.push(format!("notify {}", notice.message())),
                Effect::Heartbeat { job } => self.output.push(format!("heartbeat {}", self.name(job))),
                Effect::Log(entry) => {
                    assert!(!entry.message.contains("bug:"), "{}", entry.message);
                    self.log.push(entry.message);
                    self.levels.push(entry.level);
                    self.log_jobs.push(entry.job);
                    self.fields.push(entry.fields);
                }
                Effect::Exit(exit) => {
                    self.output.push(format!("exit {}", exit.code));
                    (self.exit, self.exit_deadlines) = (Some(exit.code), Some(exit.deadlines));
                    self.last_entry = Some(exit.entry);
                }
            }
        }
        if self.catalog_confirms {
            for job in deregistered {
                self.input(Input::Deregistered { job });
            }
        }
        for run in inspected {
            let started = Input::Started { run, pid: 100 };
            self.input(if self.is_late { started } else { Input::StartPending { run } });
        }
        if self.starts_succeed {
            for run in spawned {
                self.next_pid += 1;
                self.input(Input::Started { run, pid: self.next_pid });
            }
        }
    }

    fn run(&mut self, name: &str) -> RunId {
        let at = self.runs.iter().position(|(_, other)| other == name);
        let at = at.unwrap_or_else(|| panic!("`{name}` has no process; {:?}", self.output));
        self.runs.remove(at).0
    }

    /// The job's process exits with a code.
    pub(crate) fn exit(&mut self, name: &str, code: u8) {
        let run = self.run(name);
        self.input(Input::Exited { run, status: ExitStatus::Code(code), remains: Remains::Nothing });
    }

    /// The job's process exits and leaves orphaned processes of its group.
    pub(crate) fn exit_with_orphans(&mut self, name: &str) -> RunId {
        self.exit_leaving(name, Remains::Group("sleep (7)".into()))
    }

    /// The job's process exits with code 0.
    pub(crate) fn exit_leaving(&mut self, name: &str, remains: Remains) -> RunId {
        let run = self.run(name);
        self.input(Input::Exited { run, status: ExitStatus::Code(0), remains });
        run
    }

    /// The job's process exits on a signal.
    pub(crate) fn exit_on(&mut self, name: &str, signal: u8) {
        let run = self.run(name);
        self.input(Input::Exited {
            run,
            status: ExitStatus::Signal(Signal(signal)),
            remains: Remains::Nothing,
        });
    }

    /// The job's process has executed its program.
    pub(crate) fn start(&mut self, name: &str) {
        let run = self.runs.iter().find(|(_, other)| other == name).map(|(run, _)| *run).unwrap();
        self.input(Input::Started { run, pid: 100 });
    }

    /// The job's process reports something about itself.
    pub(crate) fn notify(&mut self, name: &str, message: &str) {
        let run = self.runs.iter().find(|(_, other)| other == name).map(|(run, _)| *run).unwrap();
        for notice in Notice::parse(message.as_bytes()) {
            self.input(Input::Notified { run, notice });
        }
    }

    /// The job's program cannot be started.
    pub(crate) fn fail_start(&mut self, name: &str, kind: StartErrorKind) {
        let run = self.run(name);
        self.input(Input::StartFailed {
            run,
            why: StartError { kind, message: "/bin/x: No such file or directory".into() },
        });
    }

    /// The oldest running check passes or fails.
    pub(crate) fn finish_check(&mut self, passed: bool) {
        let (check, _) = self.checks.pop_front().unwrap_or_else(|| panic!("no check; {:?}", self.output));
        self.input(Input::CheckDone { check, result: if passed { Ok(()) } else { Err("it failed".into()) } });
    }

    /// The supervisor has no descriptor for the oldest running check.
    pub(crate) fn cannot_check(&mut self) {
        let (check, _) = self.checks.pop_front().unwrap_or_else(|| panic!("no check; {:?}", self.output));
        let result = Err(CheckError::NotRun("c: cannot create a pipe: Too many open files".into()));
        self.input(Input::CheckDone { check, result });
    }

    /// The program of the oldest running check was executed.
    pub(crate) fn started_check(&mut self) {
        let (check, _) = self.checks.front().unwrap();
        self.input(Input::CheckStarted { check: *check });
    }

    pub(crate) fn running_checks(&self) -> usize {
        self.checks.len()
    }

    /// Sends a request and returns its reply.
    pub(crate) fn request(&mut self, request: Request) -> Reply {
        self.input(Input::Request { id: RequestId(1), request });
        self.replies.pop().unwrap_or_else(|| panic!("no reply; {:?}", self.output))
    }

    pub(crate) fn maintenance(&mut self, on: bool) {
        self.request(Request::Maintenance(on));
    }

    pub(crate) fn signal(&mut self, number: u8) {
        self.input(Input::Signal(Signal(number)));
    }

    /// The first watch has this many healthy instances.
    pub(crate) fn instances(&mut self, count: u16) {
        let instances = (0..count).map(|nth| Instance {
            id: format!("i{nth}"),
            address: "10.0.0.9".into(),
            port: nth,
            ..Instance::default()
        });
        self.answer(Answer::Instances(instances.collect()));
    }

    /// The first watch is answered.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.input(Input::Watched { watch: WatchIx(0), answer: Ok(answer) });
    }

    /// Time passes; the core is called at each of its deadlines.
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

    /// Takes everything output since the last call.
    pub(crate) fn take_output(&mut self) -> Vec<String> {
        std::mem::take(&mut self.output)
    }

    /// Takes the effects output since the last call.
    pub(crate) fn take_effects(&mut self) -> Vec<String> {
        self.take_output().into_iter().filter(|line| !line.starts_with("event")).collect()
    }

    /// Takes the events since the last call, as `source code`.
    pub(crate) fn take_events(&mut self) -> Vec<String> {
        self.take_output().iter().filter_map(|line| line.strip_prefix("event ")).map(str::to_owned).collect()
    }

    /// The level of the last message with this text.
    pub(crate) fn level_of(&self, text: &str) -> Option<Level> {
        let at = self.log.iter().rposition(|message| message.contains(text))?;
        self.levels.get(at).copied()
    }

    /// The job of the last message with this text.
    pub(crate) fn job_of(&self, text: &str) -> Option<String> {
        let at = self.log.iter().rposition(|message| message.contains(text))?;
        self.log_jobs.get(at).copied().flatten().map(|job| self.name(job))
    }

    /// The fields of the last message with this text.
    pub(crate) fn fields_of(&self, text: &str) -> &Fields {
        let at = self.log.iter().rposition(|message| message.contains(text));
        &self.fields[at.unwrap_or_else(|| panic!("no `{text}`; {:?}", self.log))]
    }

    /// The status of a job.
    pub(crate) fn status(&self, name: &str) -> JobStatus {
        let at = self.core.plan().jobs.iter().position(|job| job.name == name).unwrap();
        self.core.status(JobIx::at(at))
    }

    pub(crate) fn has_process(&self, name: &str) -> bool {
        self.runs.iter().any(|(_, other)| other == name)
    }
}
