//! From the steps of the core to spans (T6).
//!
//! | span | from | to | parent |
//! | --- | --- | --- | --- |
//! | `container` | the start of the supervisor | its exit | none |
//! | `run JOB` | the decision to start it | the exit of its process | the span that caused it if that is still open, else the root |
//! | `start JOB` | the same | the job is healthy, or without checks its program is executed | the run |
//! | `stop JOB` | `stopping` | the exit of its process | the run |
//! | `drain JOB` | the start of the drain program | its exit | the stop |
//! | `check NAME` | the start of the check | its result | the run |
//! | `render NAME`, `test NAME` | the start of the rendering or its test | its result | the root, the rendering |
//! | `reload` | the new plan is known | it is in force, or refused | the root |
//! | `shutdown` | its event | the exit | the root |
//! | an event without a duration | | | the root |
//!
//! A cause that had ended before is a link, and so is the run before a restart. Of the checks of a run, only the first one and
//! those with another result than the one before are spans: a check that passes every second tells nothing.
//!
//! A span is exported when it ends. So a run that lasts for weeks is seen by its start, its checks and its log entries until
//! then, and the root when the supervisor exits.
//!
//! Memory is bounded by the plan: spans that are open, and the last two runs of each job.

use std::sync::Arc;

use std::collections::BTreeMap;

use containerpilot_core::SortedMap;
use containerpilot_core::effect::{Effect, KillReason};
use containerpilot_core::event::Code;
use containerpilot_core::ids::{CheckIx, CheckRunId, EventId, FileIx, JobIx, RenderId, RunId};
use containerpilot_core::input::{CheckError, ExitStatus, RenderedText};
use containerpilot_core::inserted;
use containerpilot_core::log_entry::LogEvent;
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Plan, Probe, Role};
use containerpilot_core::request::{Reply, Request, RequestId};
use containerpilot_core::state::journal::{Detail, EndReason, Event, Origin, Start};
use containerpilot_core::{Core, Input, Time};

use crate::ids::SpanKey;
use crate::span::{AttributeValue, SpanEvent, TraceSpan};

/// The most events of a span, as OpenTelemetry recommends.
const MAX_EVENTS: usize = 128;

/// One step of the core: what it was told, what it decided, and its state afterwards.
#[derive(Clone, Copy, Debug)]
pub struct CoreStep<'a> {
    /// When.
    pub now: Time,
    /// What happened.
    pub input: &'a Input,
    /// What was decided.
    pub effects: &'a [Effect],
    /// The state after the step.
    pub core: &'a Core,
}

/// The spans that are open.
#[derive(Debug)]
pub struct Tracer {
    /// The plan that indices refer to.
    plan: Arc<Plan>,
    runs: SortedMap<RunId, RunSpan>,
    /// The last two runs of each job, the newest last.
    recent: BTreeMap<JobIx, Vec<Recent>>,
    checks: SortedMap<CheckRunId, CheckSpan>,
    renders: SortedMap<RenderId, Render>,
    /// The last rendering of each file.
    last_render: SortedMap<FileIx, RenderId>,
    reload: Option<(RequestId, Time)>,
    shutdown: Option<Time>,
    /// What of the journal is known.
    last_event: Option<EventId>,
    starts: u64,
}

/// A run that has not ended.
#[derive(Debug)]
struct RunSpan {
    job: JobIx,
    name: String,
    start: Time,
    parent: SpanKey,
    links: Vec<SpanKey>,
    attributes: Vec<(&'static str, AttributeValue)>,
    events: Vec<SpanEvent>,
    dropped_events: u32,
    /// Whether the span of its start is open, and what ends that.
    starting: bool,
    has_checks: bool,
    stopping: Option<Time>,
    /// The last result of each check.
    checks: SortedMap<CheckIx, bool>,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    run: RunId,
    start: Time,
    end: Option<Time>,
}

#[derive(Debug)]
struct CheckSpan {
    name: String,
    start: Time,
    parent: SpanKey,
    attributes: Vec<(&'static str, AttributeValue)>,
    /// For a check of a run, which one: then only a changed result is exported.
    of: Option<(RunId, CheckIx)>,
}

#[derive(Debug)]
struct Render {
    name: String,
    start: Time,
    failure: Option<String>,
}

impl Tracer {
    /// Begins now. Runs that exist already are known from their start on.
    #[must_use]
    pub fn new(core: &Core) -> Self {
        let journal = core.journal();
        let mut tracer = Self {
            plan: core.shared_plan(),
            runs: SortedMap::new(),
            recent: BTreeMap::new(),
            checks: SortedMap::new(),
            renders: SortedMap::new(),
            last_render: SortedMap::new(),
            reload: None,
            shutdown: None,
            last_event: journal.events().next_back().map(|event| event.id),
            starts: journal.start_count(),
        };
        let overview = core.overview();
        for job in overview.jobs {
            let Some(run) = job.status.run else { continue };
            // Without a process, the start is the one that is being made.
            let start = job.status.pid.and(job.started_at).unwrap_or(overview.now);
            tracer.spawned(job.job, run, start);
            if let (Some(known), Some(pid)) = (tracer.runs.get_mut(&run), job.status.pid) {
                known.starting = false;
                known.attributes.push(("process.pid", AttributeValue::Int(pid.into())));
            }
        }
        tracer
    }

    /// Adds the spans that a step has ended.
    pub fn step(&mut self, step: &CoreStep<'_>, spans: &mut Vec<TraceSpan>) {
        let journal = step.core.journal();
        let newer = |event: &&Event| self.last_event.is_none_or(|last| event.id > last);
        let mut events: Vec<Event> = journal.events().rev().take_while(newer).copied().collect();
        events.reverse();
        let starts = usize::try_from(journal.start_count().saturating_sub(self.starts)).unwrap_or_default();
        let mut starts: Vec<Start> = journal.starts().rev().take(starts).copied().collect();
        starts.reverse();
        self.last_event = events.last().map(|event| event.id).or(self.last_event);
        self.starts = journal.start_count();

        let ended = self.input(step, &events, spans);
        for effect in step.effects {
            self.effect(step.now, effect, spans);
        }
        for start in &starts {
            self.started(step, start, spans);
        }
        for event in &events {
            // What the run of this job has sent before its end is not about the next run.
            let is_over = ended.is_some_and(|job| event.origin == Origin::Job(job));
            self.event(step, event, is_over, spans);
        }
    }

    /// Ends everything, because the supervisor exits.
    pub fn finish(&mut self, now: Time, code: u8, spans: &mut Vec<TraceSpan>) {
        for (run, known) in std::mem::take(&mut self.runs) {
            let mut known = known;
            known.attributes.push(("containerpilot.unfinished", AttributeValue::Flag(true)));
            known.end(run, now, None, spans);
        }
        if let Some(start) = self.shutdown.take() {
            spans.push(span(SpanKey::Shutdown, SpanKey::Root, "shutdown".to_owned(), start, now));
        }
        let mut root = span(SpanKey::Root, SpanKey::Root, "container".to_owned(), Time::ZERO, now);
        root.parent = None;
        root.attributes.push(("process.exit.code", AttributeValue::Int(code.into())));
        root.failure = (code != 0).then(|| format!("exit code {code}"));
        spans.push(root);
    }

    /// Handles what happened. Returns the job whose run has ended.
    fn input(&mut self, step: &CoreStep<'_>, events: &[Event], spans: &mut Vec<TraceSpan>) -> Option<JobIx> {
        let now = step.now;
        match step.input {
            Input::Exited { run, status, .. } => {
                return self.exited(step, *run, *status, None, events, spans);
            }
            Input::StartFailed { run, why } => {
                return self.exited(step, *run, why.kind.status(), Some(&why.message), events, spans);
            }
            Input::CheckDone { check, result } => {
                self.check_done(*check, now, result.as_ref().err().map(CheckError::why), spans);
            }
            Input::FileRendered { render, result } => match result {
                Ok(RenderedText::New) => {}
                Ok(RenderedText::Same) => self.rendered(*render, now, None, false, spans),
                Err(error) => self.rendered(*render, now, Some(error.why()), false, spans),
            },
            Input::FileInstalled { render, result } => {
                self.rendered(*render, now, result.as_ref().err(), result.is_ok(), spans);
            }
            Input::Request { id, request: Request::Reload(_) } => self.reload = Some((*id, now)),
            _ => {}
        }
        None
    }

    fn effect(&mut self, now: Time, effect: &Effect, spans: &mut Vec<TraceSpan>) {
        match effect {
            Effect::Spawn { job, run, .. } => self.spawned(*job, *run, now),
            Effect::CancelStart { run } | Effect::Abandon { run } => {
                if let Some(known) = self.runs.remove(run) {
                    let failure = match effect {
                        Effect::Abandon { .. } => "did not exit after SIGKILL",
                        _ => "the start was given up",
                    };
                    self.ended(known.job, *run, now);
                    known.end(*run, now, Some(failure.to_owned()), spans);
                }
            }
            Effect::Kill { run, signal, reason, .. } => {
                if let Some(run) = self.runs.get_mut(run) {
                    let attributes = vec![
                        ("containerpilot.signal", AttributeValue::Text(signal.to_string())),
                        ("containerpilot.cause", kill_reason(*reason).into()),
                    ];
                    run.event(now, "signal", attributes);
                }
            }
            Effect::RunCheck { job, check, run, .. } => self.check_started(*job, *check, *run, now),
            Effect::RunDrain { job, run, .. } => {
                if let Some((parent, known)) = self.current(*job) {
                    let parent =
                        if known.stopping.is_some() { SpanKey::Stop(parent) } else { SpanKey::Run(parent) };
                    let name = format!("drain {}", known.name);
                    self.checks.insert(*run, CheckSpan::new(name, now, parent, None));
                }
            }
            Effect::RenderFile { file, render, .. } => {
                let name = self.plan.files.get(file.index()).map_or("", |file| &file.name);
                let render_span = Render { name: name.to_owned(), start: now, failure: None };
                self.renders.insert(*render, render_span);
                self.last_render.insert(*file, *render);
            }
            Effect::TestFile { file, render, run, .. } => {
                let name = self.plan.files.get(file.index()).map_or("", |file| &file.name);
                let test = CheckSpan::new(format!("test {name}"), now, SpanKey::Render(*render), None);
                self.checks.insert(*run, test);
            }
            Effect::DiscardFile { render } => {
                if let Some(known) = self.renders.get_mut(render) {
                    let failure = known.failure.take().unwrap_or_else(|| "given up".to_owned());
                    self.rendered(*render, now, Some(&failure), false, spans);
                }
            }
            Effect::Reply { id, reply } => {
                if let Some((_, start)) = self.reload.take_if(|(reload, _)| reload == id) {
                    let mut reload =
                        span(SpanKey::Reload(id.0), SpanKey::Root, "reload".to_owned(), start, now);
                    if let Reply::Refused(why) = reply {
                        reload.failure = Some(why.to_string());
                    }
                    spans.push(reload);
                }
            }
            Effect::PlanReplaced { plan, moves } => self.replanned(plan, moves),
            _ => {}
        }
    }

    fn replanned(&mut self, plan: &Arc<Plan>, moves: &Moves) {
        self.plan = Arc::clone(plan);
        for run in self.runs.values_mut() {
            // A run of a removed job ends before the plan is replaced, unless it was abandoned.
            run.job = moves.job(run.job).unwrap_or(JobIx(u32::MAX));
        }
        let recent = std::mem::take(&mut self.recent);
        self.recent = inserted(recent.into_iter().filter_map(|(job, runs)| Some((moves.job(job)?, runs))));
        let renders = std::mem::take(&mut self.last_render);
        self.last_render =
            inserted(renders.into_iter().filter_map(|(file, render)| Some((moves.file(file)?, render))));
    }

    fn spawned(&mut self, job: JobIx, run: RunId, now: Time) {
        let Some(planned) = self.plan.jobs.get(job.index()) else { return };
        // The values of sensors are metrics.
        if matches!(planned.role, Role::Sensor(_)) {
            return;
        }
        let known = RunSpan {
            job,
            name: planned.name.clone(),
            start: now,
            parent: SpanKey::Root,
            links: Vec::new(),
            attributes: vec![("containerpilot.job", planned.name.as_str().into())],
            events: Vec::new(),
            dropped_events: 0,
            starting: true,
            has_checks: planned.health.is_some(),
            stopping: None,
            checks: SortedMap::new(),
        };
        self.runs.insert(run, known);
        let recent = self.recent.entry(job).or_default();
        if recent.len() > 1 {
            recent.remove(0);
        }
        recent.push(Recent { run, start: now, end: None });
    }

    /// The program of a run is executed: now it is known what started it.
    fn started(&mut self, step: &CoreStep<'_>, start: &Start, spans: &mut Vec<TraceSpan>) {
        let words = step.effects.iter().find_map(|effect| match effect {
            Effect::Log(entry) if entry.fields.event == LogEvent::Started => entry.fields.cause.clone(),
            _ => None,
        });
        let trigger = start.trigger.and_then(|trigger| step.core.journal().event(trigger));
        self.caused(start.run, trigger, start.restarts);
        let Some(run) = self.runs.get_mut(&start.run) else { return };
        run.attributes.push(("process.pid", AttributeValue::Int(start.pid.into())));
        if let Some(words) = words {
            run.attributes.push(("containerpilot.cause", (&*words).into()));
        }
        if start.restarts > 0 {
            let restarts = i64::try_from(start.restarts).unwrap_or(i64::MAX);
            run.attributes.push(("containerpilot.restarts", AttributeValue::Int(restarts)));
        }
        if !run.has_checks {
            run.end_start(start.run, step.now, None, spans);
        }
    }

    /// Sets the parent and the links of a run.
    fn caused(&mut self, run: RunId, trigger: Option<&Event>, restarts: u64) {
        let cause = trigger.and_then(|event| self.cause(event)).filter(|key| *key != SpanKey::Run(run));
        let is_open = |key: SpanKey| match key {
            SpanKey::Run(run) | SpanKey::Stop(run) => self.runs.contains_key(&run),
            SpanKey::Shutdown => self.shutdown.is_some(),
            _ => false,
        };
        let parent = cause.filter(|key| is_open(*key));
        let job = self.runs.get(&run).map(|known| known.job);
        let before = job.and_then(|job| self.recent.get(&job)?.iter().rev().find(|recent| recent.run != run));
        let link = match restarts {
            0 => cause.filter(|_| parent.is_none()),
            _ => before.map(|recent| SpanKey::Run(recent.run)),
        };
        if let Some(known) = self.runs.get_mut(&run) {
            known.parent = parent.unwrap_or(SpanKey::Root);
            known.links = link.into_iter().collect();
        }
    }

    /// The span that an event belongs to.
    fn cause(&self, event: &Event) -> Option<SpanKey> {
        match event.origin {
            Origin::Global => match event.code {
                // Everything belongs to the root anyway.
                Code::Startup => None,
                Code::Shutdown => Some(SpanKey::Shutdown),
                _ => Some(SpanKey::Event(event.id)),
            },
            Origin::Watch(_) | Origin::Lock(_) | Origin::Signal(_) => Some(SpanKey::Event(event.id)),
            Origin::File(file) => self.last_render.get(&file).map(|render| SpanKey::Render(*render)),
            Origin::Job(_) if self.has_own_span(event) => Some(SpanKey::Event(event.id)),
            Origin::Job(job) => {
                let recent = self.recent.get(&job)?.iter().rev();
                let mut recent = recent.filter(|run| run.start <= event.at);
                let run = match event.code {
                    // Another run may have started in the same step.
                    Code::ExitSuccess | Code::ExitFailed | Code::Stopped => {
                        recent.find(|run| run.end.is_some_and(|end| end <= event.at))
                    }
                    _ => recent.next(),
                }?;
                let stops = event.code == Code::Stopping;
                Some(if stops { SpanKey::Stop(run.run) } else { SpanKey::Run(run.run) })
            }
            Origin::Removed(_) => None,
        }
    }

    /// True for the event of a job that no run of it contains.
    fn has_own_span(&self, event: &Event) -> bool {
        let Origin::Job(job) = event.origin else { return false };
        match event.code {
            Code::TimerExpired | Code::CrashLoop => true,
            Code::ExitSuccess | Code::ExitFailed => {
                self.plan.jobs.get(job.index()).is_some_and(|job| job.exec.action().is_some())
            }
            _ => false,
        }
    }

    fn event(&mut self, step: &CoreStep<'_>, event: &Event, is_over: bool, spans: &mut Vec<TraceSpan>) {
        let has_span = match event.origin {
            Origin::Global if event.code == Code::Shutdown => {
                self.shutdown.get_or_insert(event.at);
                false
            }
            Origin::Global | Origin::Watch(_) | Origin::Lock(_) | Origin::Signal(_) => true,
            Origin::Job(job) => {
                if !is_over {
                    self.job_event(job, event, spans);
                }
                self.has_own_span(event)
            }
            Origin::File(_) | Origin::Removed(_) => false,
        };
        if !has_span {
            return;
        }
        let source = step.core.origin_name(event.origin);
        let name = match event.origin {
            Origin::Global => event.code.name().to_owned(),
            Origin::Signal(_) => source.clone(),
            _ => format!("{source} {}", event.code),
        };
        let mut instant = span(SpanKey::Event(event.id), SpanKey::Root, name, event.at, event.at);
        instant.attributes = vec![
            ("containerpilot.source", AttributeValue::Text(source)),
            ("containerpilot.event", event.code.name().into()),
        ];
        let cause = event.cause.and_then(|cause| self.cause(step.core.journal().event(cause)?));
        instant.links.extend(cause.filter(|key| *key != instant.key));
        instant.failure = match event.code {
            Code::ExitFailed => Some("refused".to_owned()),
            Code::CrashLoop => Some("started too often".to_owned()),
            Code::TimerExpired => Some("its event did not come in time".to_owned()),
            _ => None,
        };
        spans.push(instant);
    }

    /// An event of a job with a run.
    fn job_event(&mut self, job: JobIx, event: &Event, spans: &mut Vec<TraceSpan>) {
        let Some(run) = self.recent.get(&job).and_then(|recent| recent.last()).map(|recent| recent.run)
        else {
            return;
        };
        let Some(known) = self.runs.get_mut(&run) else { return };
        match event.code {
            Code::Stopping => known.stopping = known.stopping.or(Some(event.at)),
            Code::BecameHealthy => known.end_start(run, event.at, None, spans),
            Code::BecameUnhealthy | Code::Ready => {}
            _ => return,
        }
        known.event(event.at, event.code.name(), Vec::new());
    }

    /// The open run of a job.
    fn current(&self, job: JobIx) -> Option<(RunId, &RunSpan)> {
        let run = self.recent.get(&job)?.last()?.run;
        Some((run, self.runs.get(&run)?))
    }

    fn ended(&mut self, job: JobIx, run: RunId, now: Time) {
        let recent = self.recent.get_mut(&job).into_iter().flatten();
        recent.filter(|recent| recent.run == run).for_each(|recent| recent.end = Some(now));
    }

    fn exited(
        &mut self,
        step: &CoreStep<'_>,
        run: RunId,
        status: ExitStatus,
        start_error: Option<&String>,
        events: &[Event],
        spans: &mut Vec<TraceSpan>,
    ) -> Option<JobIx> {
        let exit = events.iter().find(|event| event.exit() == Some(status));
        if start_error.is_some() {
            // The event names what started the run.
            let trigger = exit.and_then(|exit| step.core.journal().event(exit.cause?));
            self.caused(run, trigger, 0);
        }
        let mut known = self.runs.remove(&run)?;
        let (job, now) = (known.job, step.now);
        self.ended(job, run, now);
        let ended_by = exit.and_then(|exit| match exit.detail {
            Detail::Exit { ended_by, .. } => ended_by,
            _ => None,
        });
        match status {
            _ if start_error.is_some() => {}
            ExitStatus::Code(code) => {
                known.attributes.push(("process.exit.code", AttributeValue::Int(code.into())))
            }
            ExitStatus::Signal(signal) => {
                known.attributes.push(("containerpilot.signal", AttributeValue::Text(signal.to_string())));
            }
        }
        if let Some(reason) = ended_by {
            known.attributes.push(("containerpilot.ended_by", reason.name().into()));
        }
        let succeeded = exit.is_some_and(|exit| exit.code == Code::ExitSuccess);
        // A run that the supervisor has stopped has not failed.
        let stopped =
            ended_by.is_some_and(|reason| !matches!(reason, EndReason::Timeout | EndReason::Unhealthy));
        let failure = match start_error {
            Some(why) => Some(why.clone()),
            None if succeeded || stopped => None,
            None => Some(format!("exited {status}")),
        };
        known.end(run, now, failure, spans);
        Some(job)
    }

    fn check_started(&mut self, job: JobIx, check: CheckIx, id: CheckRunId, now: Time) {
        let planned = self.plan.jobs.get(job.index()).and_then(|job| job.health.as_ref());
        let planned = planned.and_then(|health| health.checks.get(check.index()));
        let (Some((run, _)), Some(planned)) = (self.current(job), planned) else { return };
        // The others ask nothing.
        if !matches!(planned.probe, Probe::Running | Probe::Ready) {
            let name = format!("check {}", planned.name);
            let mut check = CheckSpan::new(name, now, SpanKey::Run(run), Some((run, check)));
            check.attributes.push(("containerpilot.check", planned.name.as_str().into()));
            self.checks.insert(id, check);
        }
    }

    fn check_done(&mut self, id: CheckRunId, now: Time, failure: Option<&str>, spans: &mut Vec<TraceSpan>) {
        let Some(check) = self.checks.remove(&id) else { return };
        if let Some((run, which)) = check.of {
            let run = self.runs.get_mut(&run);
            let passed = failure.is_none();
            if run.is_some_and(|run| run.checks.insert(which, passed) == Some(passed)) {
                return;
            }
        }
        if let (SpanKey::Render(render), Some(why)) = (check.parent, failure)
            && let Some(render) = self.renders.get_mut(&render)
        {
            render.failure = Some(format!("the test failed: {why}"));
        }
        let mut done = span(SpanKey::Check(id), check.parent, check.name, check.start, now);
        done.attributes = check.attributes;
        done.failure = failure.map(str::to_owned);
        spans.push(done);
    }

    fn rendered(
        &mut self,
        render: RenderId,
        now: Time,
        failure: Option<&String>,
        changed: bool,
        spans: &mut Vec<TraceSpan>,
    ) {
        let Some(known) = self.renders.remove(&render) else { return };
        let name = format!("render {}", known.name);
        let mut done = span(SpanKey::Render(render), SpanKey::Root, name, known.start, now);
        done.attributes = vec![
            ("containerpilot.file", AttributeValue::Text(known.name)),
            ("containerpilot.changed", AttributeValue::Flag(changed)),
        ];
        done.failure = failure.cloned();
        spans.push(done);
    }
}

impl RunSpan {
    fn event(&mut self, at: Time, name: &'static str, attributes: Vec<(&'static str, AttributeValue)>) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(SpanEvent { at, name, attributes });
        } else {
            self.dropped_events = self.dropped_events.saturating_add(1);
        }
    }

    /// Ends the span of the start.
    fn end_start(&mut self, run: RunId, now: Time, failure: Option<String>, spans: &mut Vec<TraceSpan>) {
        if std::mem::take(&mut self.starting) {
            let name = format!("start {}", self.name);
            let mut start = span(SpanKey::Start(run), SpanKey::Run(run), name, self.start, now);
            start.attributes.push(("containerpilot.job", self.name.as_str().into()));
            start.failure = failure;
            spans.push(start);
        }
    }

    /// Ends all spans of the run.
    fn end(mut self, run: RunId, now: Time, failure: Option<String>, spans: &mut Vec<TraceSpan>) {
        let not_ready = failure.clone().unwrap_or_else(|| "ended before it was healthy".to_owned());
        self.end_start(run, now, Some(not_ready), spans);
        if let Some(start) = self.stopping {
            let name = format!("stop {}", self.name);
            let mut stop = span(SpanKey::Stop(run), SpanKey::Run(run), name, start, now);
            stop.attributes.push(("containerpilot.job", self.name.as_str().into()));
            spans.push(stop);
        }
        spans.push(TraceSpan {
            key: SpanKey::Run(run),
            parent: Some(self.parent),
            name: format!("run {}", self.name),
            start: self.start,
            end: now,
            attributes: self.attributes,
            events: self.events,
            dropped_events: self.dropped_events,
            links: self.links,
            failure,
        });
    }
}

impl CheckSpan {
    fn new(name: String, start: Time, parent: SpanKey, of: Option<(RunId, CheckIx)>) -> Self {
        Self { name, start, parent, attributes: Vec::new(), of }
    }
}

/// A span without anything special.
fn span(key: SpanKey, parent: SpanKey, name: String, start: Time, end: Time) -> TraceSpan {
    TraceSpan {
        key,
        parent: Some(parent),
        name,
        start,
        end,
        attributes: Vec::new(),
        events: Vec::new(),
        dropped_events: 0,
        links: Vec::new(),
        failure: None,
    }
}

const fn kill_reason(reason: KillReason) -> &'static str {
    match reason {
        KillReason::Stop => "stop",
        KillReason::Unhealthy => "failed checks",
        KillReason::Escalation => "escalation",
        KillReason::Timeout => "timeout",
        KillReason::StopTimeout => "stop timeout",
        KillReason::LockLost => "lost lock",
        KillReason::KillAll => "kill all",
        KillReason::ByHand => "hand",
        KillReason::Forwarded => "forwarded",
    }
}
