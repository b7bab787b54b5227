//! The one loop: source → [`Input`] → core → [`Effect`]s. It decides nothing and never blocks.
//!
//! It waits in one `ppoll` for signals, for children, for other threads' mail, for the connections of checks, and
//! for the core's next deadline; when nothing of that comes, it does not wake up. There is no asynchronous runtime
//! here: the loop has five sources and needs none, and whatever is built on one later (the control socket,
//! telemetry, Consul) stays on a thread of its own, where it can neither delay nor break what reaps and signals.
//!
//! Answers to effects (a process was started, or could not be) are handed to the core at the end of the turn, those to
//! what follows from them in the next. Between any two turns all sources are asked, so nothing a job does can make the
//! supervisor deaf.

pub(crate) mod channel;
pub(crate) mod effects;
pub(crate) mod failpoints;
pub(crate) mod oom;
pub(crate) mod probe;
pub(crate) mod query;
pub(crate) mod reload;
mod replan;

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use containerpilot_config::template::Environment;
use containerpilot_core::input::{StartError, StartErrorKind};
use containerpilot_core::plan::{Level, Plan, Signal};
use containerpilot_core::request::Reply;
use containerpilot_core::rules::signals::{reloads_at, reopens_log};
use containerpilot_core::{Core, Effect, Input, Time};
use std::collections::BTreeMap;

use crate::control::{Control, Means};
use crate::discovery::Discovery;
use crate::load::host;
use crate::load::source::Source;
use crate::logs::Logs;
use crate::logs::check_output::Quiet;
use crate::net::Net;
use crate::process::reaper::{Ended, Reaper};
use crate::process::signals::{Signals, Taken};
use crate::process::spawn::Spawner;
use crate::process::sys;
use crate::runtime::channel::{LoopMessage, LoopReceiver, LoopSender};
use crate::runtime::effects::EffectExecutor;
use crate::runtime::failpoints::failpoint;
use crate::runtime::oom::Memory;
use crate::runtime::probe::Probes;
use crate::runtime::query::{Query, QueryHandle, QueryHandler};
use crate::runtime::reload::{Asker, Reloads};
use crate::telemetry::{self, Metrics, Sensors, Telemetry};

/// When so many orphans end at once, or the look for them takes so long, there are many and more are on their way: it is
/// cheaper to let them gather, because the kernel walks over all living children at every look.
const STORM: usize = 16;
const LONG_LOOK: Duration = Duration::from_micros(100);
/// They gather for as long as lets a look cost a fifth of the time at most, within these bounds. No job's end is noticed
/// later than that.
const GATHERING: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(20)];
/// After a fault of the core, how long its deadlines have to wait, lest it fails without a pause.
const RECOVERY: Duration = Duration::from_secs(1);

/// In an answer to whoever asked for something that met a fault.
const FAULT: &str = "a fault of containerpilot; please report it";
/// The exit code when not even the end could be decided about (`EX_SOFTWARE`).
const FAULT_CODE: u8 = 70;

/// How long the last lines of the log may take at least, however short the stop time is.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How long after a reload all that followed from it has usually happened.
const SETTLING: Duration = Duration::from_secs(1);

/// How long the network's thread may take to put its things away.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Who decides: the core. Tests put a script in its place.
pub(crate) trait Decide {
    fn plan(&self) -> Arc<Plan>;
    fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>);
    fn next_deadline(&self) -> Option<Time>;
    /// Who knows the answers to questions; a script knows none.
    fn core(&self) -> Option<&Core> {
        None
    }
}

impl Decide for Core {
    fn plan(&self) -> Arc<Plan> {
        self.shared_plan()
    }

    fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        self.step(now, input, effects);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next_deadline()
    }

    fn core(&self) -> Option<&Core> {
        Some(self)
    }
}

/// The supervisor.
pub(crate) struct Runtime<D> {
    core: D,
    /// The plan that the effects at hand speak of.
    plan: Arc<Plan>,
    began: Instant,
    signals: Signals,
    receiver: LoopReceiver,
    /// The network's thread, once something has needed it.
    net: Option<Net>,
    metrics: Metrics,
    telemetry: Option<Telemetry>,
    control: Option<Control>,
    executor: EffectExecutor,
    answers: VecDeque<Input>,
    effects: Vec<Effect>,
    /// Whether the kernel ends processes because there is too little of it.
    memory: Memory,
    /// When what a reload has needed is given back.
    spent_until: Option<Instant>,
    /// When ended children are looked for again, if they are being left to gather.
    gathering_until: Option<Instant>,
    /// Before this moment no deadline of the core counts.
    recovering_until: Option<Instant>,
}

impl<D: Decide> Runtime<D> {
    /// Prepares everything. The signals must be held already.
    pub(crate) fn new(
        core: D,
        taken: Taken,
        environment: Environment,
        source: Option<Source>,
    ) -> io::Result<Self> {
        let spawner = needed("descriptors to start programs with", Spawner::new(environment))?;
        needed("its name", sys::set_name(c"containerpilot").map_err(io::Error::from))?;
        if std::process::id() != 1 {
            needed("orphans to be given to it", sys::become_subreaper().map_err(io::Error::from))?;
        }
        let signals = needed("descriptors for signals", Signals::open(taken))?;
        let receiver = needed("a descriptor for messages", LoopReceiver::new())?;
        let probes = Probes::new(receiver.sender());
        let plan = core.plan();
        let reloads = Reloads::new(source, host::environment, receiver.sender());
        let metrics = Metrics::new(telemetry::definitions(&plan));
        let logs = Logs::start(&plan.logging)?;
        let net = Discovery::needs_network(&plan).then(Net::start).transpose();
        let net = needed("a thread for the network", net)?;
        let catalog = Discovery::new(&plan, net.as_ref().map(Net::handle), &receiver.sender());
        let loop_thread = std::thread::current().id();
        let sender = receiver.sender();
        std::panic::set_hook(Box::new(move |about| remember_panic(about, loop_thread, &sender)));
        Ok(Self {
            core,
            plan,
            began: Instant::now(),
            signals,
            receiver,
            net,
            metrics: metrics.clone(),
            telemetry: None,
            control: None,
            executor: EffectExecutor {
                spawner,
                reaper: Reaper::default(),
                probes,
                catalog,
                logs,
                quiet: Quiet::default(),
                queries: QueryHandler::new(SystemTime::now()),
                sensors: Sensors::new(metrics),
                reloads,
                pids: BTreeMap::new(),
            },
            answers: VecDeque::new(),
            effects: Vec::new(),
            memory: Memory::default(),
            spent_until: None,
            gathering_until: None,
            recovering_until: None,
        })
    }

    /// E4: whatever can be listened on is, before the startup. What stands in the way is told in words.
    pub(crate) fn open(&mut self) -> Result<(), String> {
        // First, because a port leaves nothing behind if the socket cannot be opened.
        self.open_telemetry()?;
        let plan = Arc::clone(&self.plan);
        // S7: a program that runs alone is all there is, and nothing but it is steered.
        if !plan.pass_signals {
            match Control::open(&plan.control) {
                Ok(control) => self.control = Some(control),
                Err(why) if plan.control.required => return Err(why),
                Err(why) => {
                    let message = format!("there is no control socket: {why}");
                    self.executor.logs.entry(Level::Warn, None, &message);
                }
            }
        }
        Ok(())
    }

    fn open_telemetry(&mut self) -> Result<(), String> {
        let Some(wanted) = self.plan.telemetry.clone() else { return Ok(()) };
        let (metrics, desk) = (self.metrics.clone(), QueryHandle::new(self.receiver.sender()));
        let net = self.net().map_err(|error| format!("the network's thread cannot begin: {error}"))?;
        self.telemetry = Some(Telemetry::open(&wanted, net, metrics, desk)?);
        Ok(())
    }

    /// Runs until the core wants to leave; the exit code it leaves with.
    #[inline(never)]
    pub(crate) fn run(mut self) -> u8 {
        self.answers.push_back(Input::Ready);
        self.adopt_catalog();
        let mut more = false;
        let mut begun = false;
        let mut fds = Vec::new();
        loop {
            if !more && self.answers.is_empty() {
                let first = !std::mem::replace(&mut begun, true);
                if first {
                    // Everything is started, and now there is time.
                    self.memory = Memory::look();
                    self.executor.logs.settle();
                }
                if first || self.spent_until.is_some_and(|until| until <= Instant::now()) {
                    self.spent_until = None;
                    sys::release_memory();
                    self.urgent().release_others();
                }
            }
            fds = self.wait(more, fds);
            let mut turn = Turn { more: false };
            // The log hears of it all when the rest is done: a signal comes first.
            self.executor.logs.hold();
            match self.turn(&fds, &mut turn) {
                ControlFlow::Break(code) => return self.leave(code),
                ControlFlow::Continue(()) => more = turn.more,
            }
            self.executor.logs.release();
        }
    }

    /// What a signal asks for.
    fn urgent(&self) -> sys::Urgent {
        if self.plan.pass_signals { sys::Urgent::PassOn } else { sys::Urgent::Stop }
    }

    /// Follows the watches of the plan in its catalog; for every plan there is.
    #[inline(never)]
    fn adopt_catalog(&mut self) {
        let tasks = if Discovery::needs_network(&self.plan) {
            match self.net() {
                Ok(net) => Some(net.handle().clone()),
                Err(error) => {
                    let message =
                        format!("Consul cannot be spoken to: the network's thread cannot begin: {error}");
                    self.executor.logs.entry(Level::Error, None, &message);
                    None
                }
            }
        } else {
            None
        };
        let known = self.executor.catalog.adopt(&self.plan, tasks.as_ref(), &self.receiver.sender());
        self.answers.extend(known);
    }

    /// The network's thread; started when it is first asked for.
    fn net(&mut self) -> io::Result<&Net> {
        match &mut self.net {
            Some(net) => Ok(net),
            none => Ok(none.insert(Net::start()?)),
        }
    }

    /// S6: before the process leaves, all services are out of the catalog and the whole log is written, if Consul, and
    /// whoever reads the log, do their part in time.
    #[inline(never)]
    fn leave(self, code: u8) -> u8 {
        let Self { plan, receiver, executor, control, net, .. } = self;
        if let Some(Err(why)) = control.as_ref().map(Control::unlink) {
            executor.logs.entry(Level::Warn, None, &why);
        }
        let EffectExecutor { catalog, logs, mut quiet, queries, reloads, .. } = executor;
        quiet.follow_all(&logs);
        let stop_timeout = plan.stop_timeout;
        if net.is_some() {
            // What comes now may take a while.
            logs.release();
        }
        catalog.leave(stop_timeout);
        // The last that was said about it; nobody listens to anything else any more.
        for news in receiver.take() {
            if let LoopMessage::Said(level, message) = news {
                logs.entry(level, None, &message);
            }
        }
        // Whoever waits for an answer or for the next event is told that there will be none.
        drop(receiver);
        drop(queries);
        drop(reloads);
        logs.finish(Instant::now() + stop_timeout.max(LAST_LINES));
        let deadline = Instant::now() + LAST_WORDS;
        if let Some(control) = control {
            control.finish(deadline);
        }
        if let Some(net) = net {
            net.finish(deadline);
        }
        // All that is still open or allocated is the kernel's to clear away.
        #[cfg(not(test))]
        sys::end(code);
        #[cfg(test)]
        code
    }

    /// Waits for news; what there is to look at afterwards, in the place of the last time's. The first four are signals,
    /// mail, children and the control socket.
    fn wait(&self, more: bool, mut fds: Vec<sys::Awaited>) -> Vec<sys::Awaited> {
        fds.clear();
        // A negative number is passed over.
        let children = if self.gathering_until.is_none() { self.signals.children().as_raw_fd() } else { -1 };
        let control = self.control.as_ref().map_or(-1, Control::awaited);
        for fd in [self.signals.news().as_raw_fd(), self.receiver.as_fd().as_raw_fd(), children, control] {
            fds.push(sys::awaited(fd, sys::POLLIN));
        }
        self.executor.probes.await_all(&mut fds);
        let timeout = if more || !self.answers.is_empty() { Some(Duration::ZERO) } else { self.until_next() };
        if sys::poll(&mut fds, timeout).is_err() {
            // Interrupted, or out of memory: nothing is known to be ready.
            fds.iter_mut().for_each(|fd| fd.revents = 0);
        }
        fds
    }

    /// How long nothing has to be done unless something happens.
    fn until_next(&self) -> Option<Duration> {
        let deadline = self.core.next_deadline().map(|deadline| {
            let due = self.began.checked_add(Duration::from_nanos(deadline.as_nanos()));
            // Sooner than a moment too far away to be named.
            let due = due.unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400));
            self.recovering_until.map_or(due, |recovered| recovered.max(due))
        });
        let next = [deadline, self.gathering_until, self.executor.quiet.next_due(), self.spent_until]
            .into_iter()
            .flatten()
            .min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    #[inline(never)]
    fn turn(&mut self, fds: &[sys::Awaited], turn: &mut Turn) -> ControlFlow<u8> {
        let ready = |place: usize| fds.get(place).is_some_and(|fd| fd.revents != 0);
        // What was answered while the last turn was carried out comes first: a start before its end (E3).
        self.tell_answers()?;
        if ready(0) {
            self.urgent().fetch();
            while let Some(signal) = self.signals.next() {
                // L1: whoever has moved the log's file away says so with SIGUSR1.
                if reopens_log(signal) {
                    self.executor.logs.reopen();
                }
                self.tell(Input::Signal(signal))?;
                if reloads_at(&self.plan, signal) {
                    self.executor.logs.entry(Level::Info, None, "SIGHUP asks for a reload");
                    self.reload(Asker { dry: false, answer: None });
                }
            }
        }
        if ready(1) {
            let all: Vec<LoopMessage> = self.receiver.take().collect();
            if all.iter().any(|news| matches!(news, LoopMessage::Query(_))) {
                // What the core says is true of its last step, and that may be long ago. Once for all who ask now.
                self.tell(Input::Tick)?;
            }
            for news in all {
                self.hear(news)?;
            }
        }
        if ready(2) || self.gathering_until.is_some_and(|until| until <= Instant::now()) {
            self.collect(turn)?;
        }
        if ready(3) {
            self.serve_control();
        }
        for (check, result) in self.executor.probes.ready(fds.get(4..).unwrap_or_default()) {
            self.tell(Input::CheckDone { check, result })?;
        }
        self.executor.quiet.follow_due(&self.executor.logs);
        let recovering = self.recovering_until.is_some_and(|until| until > Instant::now());
        if !recovering && self.core.next_deadline().is_some_and(|deadline| deadline <= self.now()) {
            self.tell(Input::Tick)?;
        }
        // Once, and without another look at all sources; what is answered to these waits for its turn.
        self.tell_answers()
    }

    /// EffectExecutor over the answers that are there now.
    fn tell_answers(&mut self) -> ControlFlow<u8> {
        for _ in 0..self.answers.len() {
            let Some(input) = self.answers.pop_front() else { break };
            self.tell(input)?;
        }
        ControlFlow::Continue(())
    }

    /// Somebody has connected to the control socket for the first time.
    #[inline(never)]
    fn serve_control(&mut self) {
        let Some(mut control) = self.control.take() else { return };
        let means = Means {
            desk: QueryHandle::new(self.receiver.sender()),
            metrics: self.metrics.clone(),
            tails: self.executor.logs.tails(),
        };
        if let Err(error) = control.serve(self.net(), means) {
            let message = format!("the control socket cannot be served: {error}");
            self.executor.logs.entry(Level::Error, None, &message);
        }
        self.control = Some(control);
    }

    /// Takes what another thread has to say.
    #[inline(never)]
    fn hear(&mut self, news: LoopMessage) -> ControlFlow<u8> {
        match news {
            LoopMessage::Resolved(run, found) => {
                let outcome = self.executor.probes.resolved(run, found);
                self.answers.extend(outcome.map(|result| Input::CheckDone { check: run, result }));
            }
            LoopMessage::Seen(watch, ix, instances) => {
                if let Some(input) = Discovery::seen(&self.plan, &watch, ix, instances) {
                    self.tell(input)?;
                }
            }
            LoopMessage::Withdrawn(id, job) => {
                if let Some(input) = Discovery::withdrawn(&self.plan, &id, job) {
                    self.tell(input)?;
                }
            }
            LoopMessage::Query(Query::Reload(asker)) => self.reload(asker),
            LoopMessage::Loaded(loaded) => self.loaded(*loaded)?,
            LoopMessage::Said(level, message) => self.executor.logs.entry(level, None, &message),
            LoopMessage::Query(question) => self.asked(question)?,
        }
        ControlFlow::Continue(())
    }

    /// Answers a question, or has the core answer it.
    fn asked(&mut self, question: Query) -> ControlFlow<u8> {
        let now = self.now();
        let Some(core) = self.core.core() else { return ControlFlow::Continue(()) };
        match self.executor.queries.hear(core, now, question) {
            Some(input) => self.tell(input),
            None => ControlFlow::Continue(()),
        }
    }

    /// Collects the children that have ended.
    #[inline(never)]
    fn collect(&mut self, turn: &mut Turn) -> ControlFlow<u8> {
        // First the note and then the look, so that an end in between is noted again.
        self.signals.children_seen();
        let mut ended: Vec<Ended> = Vec::new();
        let began = Instant::now();
        let round = self.executor.reaper.collect(&mut ended);
        let took = began.elapsed();
        let storm = round.orphans >= STORM || round.orphans > 0 && took > LONG_LOOK;
        let [least, most] = GATHERING;
        self.gathering_until = storm.then(|| Instant::now() + (took * 4).clamp(least, most));
        if round.failed || round.far {
            self.gathering_until = Some(Instant::now() + most);
        }
        if round.more {
            self.gathering_until = Some(Instant::now());
            turn.more = true;
        }
        // E3: one of them may have been started in this very turn, and the core must hear of that first.
        self.tell_answers()?;
        for ended in ended {
            if let Some(processes) = self.memory.explains(&ended) {
                self.tell(Input::OutOfMemory { processes })?;
            }
            let input = self.executor.ended(ended);
            self.tell(input)?;
        }
        ControlFlow::Continue(())
    }

    /// Tells the core what has happened, and does what it wants.
    ///
    /// A panic is a fault of ours that must not end the container: it is logged, what was wanted before it is done,
    /// and life goes on.
    fn tell(&mut self, input: Input) -> ControlFlow<u8> {
        let mut effects = std::mem::take(&mut self.effects);
        let decided = self.decide(input, &mut effects);
        if let Some(core) = self.core.core() {
            self.executor.queries.happened(core);
        }
        for effect in effects.drain(..) {
            let instead = unstarted(&effect);
            let done = catch_unwind(AssertUnwindSafe(|| {
                failpoint("effect");
                if let Effect::PlanReplaced { plan, moves } = &effect {
                    self.replanned(plan, moves);
                }
                self.executor.carry_out(&self.plan, effect, &mut self.answers)
            }));
            match done {
                Ok(flow) => flow?,
                Err(panic) => {
                    self.survive("carrying out a decision", panic.as_ref());
                    self.answers.extend(instead);
                }
            }
        }
        self.effects = effects;
        decided
    }

    /// Has the core decide. What has happened in the world is told once more after a fault, for it cannot be undone, and
    /// the core knows what it has heard already; a command is refused. A core that twice fails to decide about the end is not
    /// waited for.
    #[inline(never)]
    fn decide(&mut self, input: Input, effects: &mut Vec<Effect>) -> ControlFlow<u8> {
        let now = self.now();
        let (mut refused, again) = match &input {
            Input::Request { id, .. } => (Some(*id), Input::Tick),
            news => (None, news.clone()),
        };
        for input in [input, again.clone()] {
            let told = catch_unwind(AssertUnwindSafe(|| {
                failpoint("step");
                self.core.step(now, input, effects);
            }));
            let Err(panic) = told else { return ControlFlow::Continue(()) };
            self.survive("deciding", panic.as_ref());
            if let Some(id) = refused.take() {
                effects
                    .push(Effect::Reply { id, reply: Reply::Refused(format!("{FAULT}; the log says more")) });
            }
        }
        match again {
            Input::Signal(Signal::TERM | Signal(2)) => {
                let message = "the end cannot be decided about: everything is killed";
                self.executor.logs.entry(Level::Panic, None, message);
                self.executor.reaper.kill_all();
                ControlFlow::Break(FAULT_CODE)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    #[inline(never)]
    fn survive(&mut self, during: &str, panic: &(dyn Any + Send)) {
        let known = PANIC.lock().ok().and_then(|mut message| message.take());
        let words = known.unwrap_or_else(|| words_of(panic));
        let message = format!("a fault of containerpilot while {during}: {words}; please report it");
        self.executor.logs.entry(Level::Panic, None, &message);
        self.recovering_until = Some(Instant::now() + RECOVERY);
    }

    /// Now, on a clock that neither jumps nor goes back.
    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Says what is missing when the supervisor cannot begin.
fn needed<T>(what: &str, had: io::Result<T>) -> io::Result<T> {
    had.map_err(|error| io::Error::new(error.kind(), format!("it needs {what}: {error}")))
}

/// What is to be heard of an effect that could not be carried out, if the core waits for it.
fn unstarted(effect: &Effect) -> Option<Input> {
    match effect {
        Effect::Spawn { run, .. } => {
            let why = StartError { kind: StartErrorKind::Other, message: FAULT.to_owned() };
            Some(Input::StartFailed { run: *run, why })
        }
        Effect::RunCheck { run, .. } => Some(Input::CheckDone { check: *run, result: Err(FAULT.to_owned()) }),
        _ => None,
    }
}

/// What a turn found out about the next one.
struct Turn {
    /// Whether the next must not wait.
    more: bool,
}

/// The last panic of the loop, with its place, until it is logged.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the loop's panics for the log, and sends it those of other threads; at the very end there is only standard error.
fn remember_panic(
    about: &std::panic::PanicHookInfo<'_>,
    loop_thread: std::thread::ThreadId,
    sender: &LoopSender,
) {
    let place = about.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
    let message = format!("{}{}", words_of(about.payload()), place.unwrap_or_default());
    if std::thread::current().id() == loop_thread {
        if let Ok(mut last) = PANIC.lock() {
            *last = Some(message);
        }
    } else {
        let thread = std::thread::current().name().unwrap_or("helper").to_owned();
        let message =
            format!("a fault of containerpilot on its {thread} thread: {message}; please report it");
        if !sender.send(LoopMessage::Said(Level::Panic, message.clone())) {
            eprintln!("containerpilot: {message}");
        }
    }
}

fn words_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".to_owned())
}

#[cfg(test)]
mod tests;
