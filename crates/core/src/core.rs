//! The core: one queue of events, one way in, one way out.
//!
//! A step takes one input, and then the deadlines that have passed: whoever is late must not kill a process whose end
//! it is just being told. Each may queue events, and the queue is drained before the next. When it is empty, whatever has become hopeless is given up (W10), jobs that wait for
//! hooks go on (S2), and the whole ends when the last job is complete. Nothing waits for anything outside.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::command::Command;
use crate::effect::{Effect, Entry, Wanted};
use crate::environment::JobVariables;
use crate::event::{Code, Source, UserSignal};
use crate::ids::{CheckIx, CheckRun, EventId, JobIx, RunId, WatchIx};
use crate::input::{ExitStatus, Input};
use crate::job::{Ending, JobState, State};
use crate::journal::{Event, Journal, Origin};
use crate::plan::{EventPattern, Job, Level, Plan, Role, Signal, Trigger};
use crate::reload::{Moves, Pending};
use crate::time::Time;
use crate::timers::{Alarm, TimerId, Timers};
use crate::watch::WatchState;

/// One request to stop may come as two signals: `timeout` signals its child and then its whole process group, and so do
/// terminals and scripts that kill a group and a process of it. A person who means it a second time takes longer.
const ONE_REQUEST: Duration = Duration::from_millis(100);

/// How far the supervisor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not ready yet: `startup` has not been sent.
    Beginning,
    /// The ordinary course.
    Running,
    /// Everything is being stopped.
    Stopping,
    /// Everything was killed.
    Killing,
    /// It has left.
    Left,
}

/// Where an event that is waited for comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Global,
    /// The jobs of one name.
    Name(u32),
    Watch(WatchIx),
    Signal(u8),
    /// Nobody has this name.
    Nobody,
}

/// A job that waits for an event.
#[derive(Clone, Copy, Debug)]
struct Subscription {
    job: JobIx,
    /// Which condition of `all` or `any` it is.
    condition: usize,
    /// Whether the event makes that condition untrue (W12: `healthy` is true while healthy).
    undoes: bool,
}

/// The core of a supervisor: a plan, and what has become of it.
#[derive(Debug)]
pub struct Core {
    pub(crate) plan: Arc<Plan>,
    pub(crate) now: Time,
    pub(crate) phase: Phase,
    pub(crate) maintenance: bool,
    pub(crate) jobs: Vec<JobState>,
    /// What every process is told of all jobs (P7).
    pub(crate) variables: Arc<JobVariables>,
    pub(crate) watches: Vec<WatchState>,
    pub(crate) timers: Timers,
    pub(crate) stop_time: Option<TimerId>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) runs: BTreeMap<RunId, JobIx>,
    /// The runs that are over and have left something of their process group behind (P4).
    pub(crate) remains: BTreeMap<RunId, TimerId>,
    pub(crate) check_runs: BTreeMap<CheckRun, (JobIx, CheckIx)>,
    /// The code to leave with, where a job has said so.
    pub(crate) exit_code: Option<u8>,
    /// The code of the first job that ended in failure for good (S5).
    pub(crate) first_failure: Option<u8>,
    /// The same of those that only react to an end, a signal or maintenance: it counts where all work went well.
    pub(crate) first_hook_failure: Option<u8>,
    /// The signal that asked for the shutdown, and when (S1).
    asked: Option<(Signal, Time)>,
    /// What came before the startup, and counts after it (E7).
    early: Vec<Input>,
    journal: Journal,
    /// How many events there were of each kind; no more kinds than there are sources.
    pub(crate) counts: BTreeMap<(Origin, Code), u64>,
    queue: VecDeque<Event>,
    /// The event that is being handled, which causes whatever follows.
    pub(crate) handling: Option<EventId>,
    names: Vec<u32>,
    subscriptions: BTreeMap<(Key, Code), Vec<Subscription>>,
    /// For each name, the jobs of that name.
    pub(crate) namesakes: Vec<Vec<JobIx>>,
    /// For each job, where the events that it waits for come from, in the order of its patterns.
    pub(crate) keys: Vec<Vec<Key>>,
    /// For each name, the jobs that wait for any of its events.
    pub(crate) dependents: Vec<Vec<JobIx>>,
    /// For each watch of the embedded catalog, the jobs whose services it sees; of Consul nobody knows who is there.
    pub(crate) advertisers: Option<Vec<Vec<JobIx>>>,
    /// For each watch, the jobs that wait for its events.
    pub(crate) watchers: Vec<Vec<JobIx>>,
    /// Whether somebody may have come to wait in vain since that was last looked at (W10).
    pub(crate) doubtful: bool,
    /// For each name, the jobs that run at its `stopping` (S2).
    hooks: Vec<Vec<JobIx>>,
    /// The jobs that begin a new life when the queue is empty, and how many have.
    pub(crate) revivals: VecDeque<JobIx>,
    pub(crate) births: u64,
    /// The jobs to look at again when the queue is empty.
    recheck: Vec<JobIx>,
    /// How many jobs hold the supervisor open (W10), and how many are not complete.
    holders: Vec<bool>,
    holding: usize,
    incomplete: usize,
    next_run: u64,
    next_check: u64,
    next_event: u64,
    /// The reload that is under way.
    pub(crate) pending: Option<Pending>,
    /// Who alone sees the next `startup` (R3).
    pub(crate) audience: Option<Vec<JobIx>>,
    /// The names of sources that are no more, of which the journal still speaks.
    former: Vec<String>,
}

impl Core {
    /// A supervisor that has not begun.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let mut ids: BTreeMap<&str, u32> = BTreeMap::new();
        let mut names = Vec::with_capacity(plan.jobs.len());
        let mut namesakes: Vec<Vec<JobIx>> = Vec::new();
        for (nth, job) in plan.jobs.iter().enumerate() {
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            let id = *ids.entry(&job.name).or_insert(next);
            names.push(id);
            if id as usize == namesakes.len() {
                namesakes.push(Vec::new());
            }
            if let Some(list) = namesakes.get_mut(id as usize) {
                list.push(JobIx::at(nth));
            }
        }
        let watch_ids: BTreeMap<&str, WatchIx> = plan
            .watches
            .iter()
            .enumerate()
            .map(|(nth, watch)| (watch.name.as_str(), WatchIx::at(nth)))
            .collect();
        let key = |source: &Source| match source {
            Source::Global => Key::Global,
            Source::Job(name) => ids.get(name.as_str()).map_or(Key::Nobody, |id| Key::Name(*id)),
            Source::Watch(name) => watch_ids.get(name.as_str()).map_or(Key::Nobody, |id| Key::Watch(*id)),
            Source::Signal(UserSignal::Hup) => Key::Signal(1),
            Source::Signal(UserSignal::Usr2) => Key::Signal(12),
        };
        let mut subscriptions: BTreeMap<(Key, Code), Vec<Subscription>> = BTreeMap::new();
        let mut dependents = vec![Vec::new(); namesakes.len()];
        let mut hooks = vec![Vec::new(); namesakes.len()];
        let mut keys = Vec::with_capacity(plan.jobs.len());
        let mut watchers = vec![Vec::new(); plan.watches.len()];
        for (nth, planned) in plan.jobs.iter().enumerate() {
            let job = JobIx::at(nth);
            let lasting = matches!(planned.when.trigger, Trigger::All { .. });
            for event in planned.when.patterns() {
                if let Key::Watch(watch) = key(&event.source)
                    && let Some(list) = watchers.get_mut(watch.index())
                    && list.last() != Some(&job)
                {
                    list.push(job);
                }
            }
            keys.push(planned.when.patterns().iter().map(|event| key(&event.source)).collect());
            for (condition, event) in planned.when.patterns().iter().enumerate() {
                let key = key(&event.source);
                let subscription = Subscription { job, condition, undoes: false };
                let list = subscriptions.entry((key, event.code)).or_default();
                // Whoever names an event twice still runs once for it; a condition of `all` is each its own.
                if lasting || list.last().is_none_or(|last| last.job != job) {
                    list.push(subscription);
                }
                if lasting && event.code == Code::Healthy {
                    // What comes to an end with an event does so before anything begins with it.
                    let undoing = Subscription { undoes: true, ..subscription };
                    subscriptions.entry((key, Code::Unhealthy)).or_default().insert(0, undoing);
                }
                if let Key::Name(id) = key {
                    let add = |lists: &mut Vec<Vec<JobIx>>| {
                        if let Some(list) = lists.get_mut(id as usize)
                            && list.last() != Some(&job)
                        {
                            list.push(job);
                        }
                    };
                    add(&mut dependents);
                    if event.code == Code::Stopping {
                        add(&mut hooks);
                    }
                }
            }
        }
        let works: Vec<bool> = plan.jobs.iter().map(does_work).collect();
        // Where nobody does work, whoever there is holds the supervisor open (W10).
        let holders = if works.contains(&true) { works } else { vec![true; plan.jobs.len()] };
        Self {
            now: Time::ZERO,
            phase: Phase::Beginning,
            maintenance: false,
            jobs: plan.jobs.iter().map(JobState::new).collect(),
            variables: Arc::new(JobVariables::new(&plan.jobs)),
            watches: plan.watches.iter().map(|_| WatchState::default()).collect(),
            timers: Timers::default(),
            stop_time: None,
            effects: Vec::new(),
            runs: BTreeMap::new(),
            remains: BTreeMap::new(),
            check_runs: BTreeMap::new(),
            exit_code: None,
            first_failure: None,
            first_hook_failure: None,
            asked: None,
            early: Vec::new(),
            journal: Journal::default(),
            counts: BTreeMap::new(),
            queue: VecDeque::new(),
            handling: None,
            names,
            subscriptions,
            namesakes,
            keys,
            dependents,
            advertisers: crate::hope::advertisers(&plan),
            watchers,
            doubtful: true,
            hooks,
            revivals: VecDeque::new(),
            births: 0,
            recheck: Vec::new(),
            holding: holders.iter().filter(|holds| **holds).count(),
            holders,
            incomplete: plan.jobs.len(),
            next_run: 0,
            next_check: 0,
            next_event: 0,
            pending: None,
            audience: None,
            former: Vec::new(),
            plan: Arc::new(plan),
        }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan, for whoever wants to keep it.
    #[must_use]
    pub fn shared_plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// How far the supervisor is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The record of what happened.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// How many deadlines are ahead.
    #[must_use]
    pub fn deadlines(&self) -> usize {
        self.timers.len()
    }

    /// When the core must be called again even if nothing happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        if self.phase == Phase::Left { None } else { self.timers.next() }
    }

    /// Takes note of something that has happened, and says what is to be done about it.
    pub fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Left {
            return;
        }
        core::mem::swap(&mut self.effects, effects);
        self.now = self.now.max(now);
        self.handling = None;
        if self.phase == Phase::Beginning && self.can_wait(&input) {
            self.early.push(input);
        } else {
            self.input(input);
            if self.phase != Phase::Beginning {
                // Before anything is concluded from there being nothing to do.
                for input in core::mem::take(&mut self.early) {
                    self.drain_events();
                    self.input(input);
                }
            }
            self.drain();
        }
        while self.phase != Phase::Left
            && let Some(alarm) = self.timers.due(self.now)
        {
            self.handling = None;
            self.alarm(alarm);
            self.drain();
        }
        core::mem::swap(&mut self.effects, effects);
    }

    /// Whether an input means something only after the startup.
    fn can_wait(&self, input: &Input) -> bool {
        match input {
            Input::Instances { .. } => true,
            Input::Command { command, .. } => {
                !matches!(command, Command::Maintenance(_) | Command::SetVariables(_))
            }
            Input::Signal(signal) => !self.plan.pass_signals && matches!(signal.0, 1 | 12),
            Input::Ready
            | Input::Started { .. }
            | Input::StartFailed { .. }
            | Input::Exited { .. }
            | Input::CheckDone { .. }
            | Input::Withdrawn { .. }
            | Input::Tick => false,
        }
    }

    fn input(&mut self, input: Input) {
        match input {
            Input::Ready => self.ready(),
            Input::Started { run, pid } => self.started(run, pid),
            Input::StartFailed { run, why } => self.start_failed(run, &why),
            Input::Exited { run, status, leftovers } => self.exited(run, status, leftovers),
            Input::CheckDone { check, result } => self.check_done(check, result),
            Input::Instances { watch, instances } => self.instances(watch, instances),
            Input::Signal(signal) => self.signal(signal),
            Input::Withdrawn { job } => self.withdrawn(job),
            Input::Command { id, command } => self.command(id, command),
            Input::Tick => {}
        }
    }

    fn alarm(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::GiveUp(job) => self.give_up(job),
            Alarm::Turn(job) => self.turn(job),
            Alarm::RunTimeout(job) => self.run_timeout(job),
            Alarm::Restart(job) => self.restart_now(job),
            Alarm::Hooks(job) => self.hooks_late(job),
            Alarm::Withdrawn(job) => self.withdrawn_late(job),
            Alarm::Drained(job) => self.terminate(job),
            Alarm::Stubborn(job) => self.stubborn(job),
            Alarm::Check(job, check) => self.check_due(job, check),
            Alarm::CheckTimeout(job, check) => self.check_timeout(job, check),
            Alarm::Heartbeat(job) => self.heartbeat_due(job),
            Alarm::Remains(run) => self.kill_remains(run),
            Alarm::Reload => self.reload_late(),
            Alarm::StopTime => self.kill_everything("the stop time has passed"),
            Alarm::LastWait => self.leave(),
        }
    }

    /// E4: `startup`, once.
    fn ready(&mut self) {
        if self.phase != Phase::Beginning {
            return;
        }
        self.phase = Phase::Running;
        for job in self.all_jobs() {
            self.set_give_up(job);
            self.look_again(job);
        }
        self.send(Origin::Global, Code::Startup, None);
        if self.maintenance {
            self.send(Origin::Global, Code::EnterMaintenance, None);
        }
    }

    fn signal(&mut self, signal: Signal) {
        if self.plan.pass_signals {
            return self.pass_on(signal);
        }
        match signal.0 {
            10 if self.plan.toggle_maintenance => {
                self.set_maintenance(!self.maintenance);
            }
            1 | 12 if self.phase == Phase::Running => {
                self.send(Origin::Signal(signal.0), Code::Signal, None);
            }
            2 | 15 => match self.phase {
                Phase::Beginning | Phase::Running => {
                    let name = if signal.0 == 2 { "SIGINT" } else { "SIGTERM" };
                    self.log(Level::Info, None, format!("{name}: everything is stopped"));
                    self.exit_code = Some(0);
                    self.asked = Some((signal, self.now));
                    self.shut_down();
                }
                Phase::Stopping => self.asked_again(signal),
                Phase::Killing | Phase::Left => {}
            },
            _ => {}
        }
    }

    /// S1: the second request cuts the wait short. What is the first one, because the supervisor was stopping by
    /// itself, or the same one twice, is not the second.
    fn asked_again(&mut self, signal: Signal) {
        match self.asked {
            None => {
                self.log(Level::Info, None, "everything is being stopped already".into());
                self.asked = Some((signal, self.now));
            }
            Some((first, at)) if first == signal && self.now.since(at) < ONE_REQUEST => {
                self.log(Level::Debug, None, "the signal came twice at once, and counts once".into());
            }
            Some(_) => self.kill_everything("it was asked a second time"),
        }
    }

    /// Whether a job holds the supervisor open as long as it is not complete.
    pub(crate) fn holds_open(&self, job: JobIx) -> bool {
        self.holders.get(job.index()).copied().unwrap_or(false)
    }

    /// Queues an event. What is being handled is its cause.
    pub(crate) fn send(&mut self, origin: Origin, code: Code, exit: Option<ExitStatus>) {
        self.next_event += 1;
        let event =
            Event { id: EventId(self.next_event), cause: self.handling, at: self.now, origin, code, exit };
        self.journal.write(event);
        *self.counts.entry((origin, code)).or_default() += 1;
        self.queue.push_back(event);
    }

    /// Handles everything that is queued.
    fn drain_events(&mut self) {
        while let Some(event) = self.queue.pop_front() {
            self.handling = Some(event.id);
            self.dispatch(event);
        }
        self.handling = None;
    }

    /// Handles everything that is queued, and everything that follows from there being nothing more.
    fn drain(&mut self) {
        loop {
            self.drain_events();
            if let Some(job) = self.revivals.pop_front() {
                self.live_again(job);
            } else if let Some(job) = self.recheck.pop() {
                self.settle(job);
            } else if !self.conclude() {
                return;
            }
        }
    }

    fn dispatch(&mut self, event: Event) {
        self.log_event(&event);
        let key = match event.origin {
            Origin::Global => Key::Global,
            Origin::Job(job) => Key::Name(self.name(job)),
            Origin::Watch(watch) => Key::Watch(watch),
            Origin::Signal(number) => Key::Signal(number),
            Origin::Former(_) => Key::Nobody,
        };
        let audience = if event.code == Code::Startup { self.audience.clone() } else { None };
        let sees = |job: JobIx| audience.as_ref().is_none_or(|audience| audience.contains(&job));
        let mut subscribers = self.subscriptions.get(&(key, event.code)).cloned().unwrap_or_default();
        subscribers.retain(|one| sees(one.job));
        let is_first = |one: &Subscription| self.planned(one.job).role == Role::Coprocess;
        let (first, then): (Vec<_>, Vec<_>) = subscribers.into_iter().partition(is_first);
        for Subscription { job, condition, undoes } in first {
            self.matched(job, condition, undoes, event);
        }
        // Periodic jobs run at startup, too (W4), and are started with all the others.
        if event.code == Code::Startup {
            for job in self.all_jobs() {
                if matches!(self.planned(job).when.trigger, Trigger::Interval(_)) && sees(job) {
                    self.first_turn(job, event);
                }
            }
        }
        for Subscription { job, condition, undoes } in then {
            self.matched(job, condition, undoes, event);
        }
        for job in audience.unwrap_or_default() {
            self.tell_what_holds(job, event);
        }
        if event.code == Code::Startup {
            self.audience = None;
        }
    }

    /// A job sees an event that it waits for.
    pub(crate) fn matched(&mut self, job: JobIx, condition: usize, undoes: bool, event: Event) {
        let lasting = matches!(self.planned(job).when.trigger, Trigger::All { .. });
        if lasting {
            let held = self.job(job).holds.iter().all(|holds| *holds);
            if let Some(holds) = self.job_mut(job).holds.get_mut(condition) {
                *holds = !undoes;
            }
            let holds = self.job(job).holds.iter().all(|holds| *holds);
            if held || !holds {
                return;
            }
        }
        self.trigger(job, event);
    }

    fn trigger(&mut self, job: JobIx, event: Event) {
        let spent = self.is_spent(job);
        let late = self.phase == Phase::Stopping;
        let state = self.job(job);
        if !state.is_up() || spent || self.phase == Phase::Killing {
            return;
        }
        // S3: during a shutdown only what belongs to it still runs, and once.
        if late && (!is_farewell(event.code) || state.ran_at_shutdown) {
            return;
        }
        let busy = state.state();
        let births = self.births;
        let state = self.job_mut(job);
        state.triggered = true;
        state.triggered_after = births;
        state.ran_at_shutdown |= late;
        match busy {
            // An event that comes between two runs need not wait, and takes no restart from anybody.
            State::Waiting | State::Delaying => self.start(job, Some(event)),
            State::Starting | State::Running => self.job_mut(job).remembered = Some(event),
            State::Complete => {}
        }
    }

    /// Whether the nth event that a job waits for can still come.
    pub(crate) fn pattern_can_come(&self, job: JobIx, nth: usize) -> bool {
        let key = self.keys.get(job.index()).and_then(|keys| keys.get(nth));
        let event = self.planned(job).when.patterns().get(nth);
        key.zip(event).is_some_and(|(key, event)| self.can_come(*key, event.code, &|_| true))
    }

    /// The jobs that can send the nth event that a job waits for.
    pub(crate) fn jobs_behind(&self, job: JobIx, nth: usize) -> Vec<JobIx> {
        match self.keys.get(job.index()).and_then(|keys| keys.get(nth)) {
            Some(Key::Name(id)) => self.namesakes.get(*id as usize).cloned().unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Who sends the nth event that a job waits for; nobody if nobody has that name.
    pub(crate) fn origin_behind(&self, job: JobIx, nth: usize) -> Option<Origin> {
        match self.keys.get(job.index())?.get(nth)? {
            Key::Global => Some(Origin::Global),
            Key::Name(id) => self.namesakes.get(*id as usize)?.first().map(|job| Origin::Job(*job)),
            Key::Watch(watch) => Some(Origin::Watch(*watch)),
            Key::Signal(number) => Some(Origin::Signal(*number)),
            Key::Nobody => None,
        }
    }

    /// A job is looked at again, when the queue is empty.
    pub(crate) fn look_again(&mut self, job: JobIx) {
        self.recheck.push(job);
    }

    /// Whoever waits for a job is looked at again.
    pub(crate) fn look_at_dependents(&mut self, job: JobIx) {
        let name = self.name(job) as usize;
        let dependents = self.dependents.get(name).cloned().unwrap_or_default();
        self.recheck.extend(dependents);
        self.look_at_hooked(job);
    }

    /// A job may be a hook that others wait for (S2); they are looked at again.
    fn look_at_hooked(&mut self, job: JobIx) {
        let patterns = self.planned(job).when.patterns().iter().map(|event| event.code);
        let keys = self.keys.get(job.index()).into_iter().flatten();
        let sources = patterns.zip(keys).filter_map(|(code, key)| match key {
            Key::Name(id) if code == Code::Stopping => self.namesakes.get(*id as usize),
            _ => None,
        });
        let waiting: Vec<JobIx> = sources.flatten().copied().collect();
        self.recheck.extend(waiting);
    }

    fn settle(&mut self, job: JobIx) {
        if self.is_hopeless(job) {
            self.give_up_hope(job);
        }
        self.hooks_progress(job);
    }

    /// Ends the whole when there is nothing left to do. Says whether something more follows.
    fn conclude(&mut self) -> bool {
        match self.phase {
            Phase::Running if self.pending.is_some() => self.reload_progress(),
            Phase::Running if self.holding == 0 => {
                self.log(Level::Info, None, "all jobs are complete".into());
                self.shut_down();
                true
            }
            Phase::Stopping | Phase::Killing if self.incomplete == 0 => {
                self.leave();
                false
            }
            Phase::Running if core::mem::take(&mut self.doubtful) => self.give_up_rings(),
            Phase::Stopping => self.stop_coprocesses() || (self.runs.is_empty() && self.let_go()),
            _ => false,
        }
    }

    /// A job has become complete.
    pub(crate) fn count_complete(&mut self, job: JobIx) {
        self.incomplete = self.incomplete.saturating_sub(1);
        // Whoever has stopped it by hand may want to start it again, and must find somebody to ask.
        if self.holds_open(job) && !self.job(job).comes_again() {
            self.holding = self.holding.saturating_sub(1);
        }
    }

    /// A job that is complete begins a new life. What runs at its end lives again with it.
    pub(crate) fn revive(&mut self, job: JobIx) {
        let counted = self.job(job).comes_again();
        self.incomplete += 1;
        if self.holds_open(job) && !counted {
            self.holding += 1;
        }
        self.births += 1;
        let state = &mut self.jobs[job.index()];
        *state = state.reborn(&self.plan.jobs[job.index()]);
        state.born = self.births;
        self.doubtful = true;
        for hook in self.farewells_of(job) {
            let ended =
                matches!(self.job(hook).ending, Some(Ending::Done | Ending::Failed | Ending::Hopeless));
            if self.job(hook).state() == State::Complete && ended && !does_work(self.planned(hook)) {
                self.revive(hook);
                self.set_give_up(hook);
            }
        }
    }

    /// The jobs that wait for the end of this one.
    fn farewells_of(&self, job: JobIx) -> Vec<JobIx> {
        let name = self.name(job);
        let dependents = self.dependents.get(name as usize).into_iter().flatten().copied();
        dependents.filter(|hook| self.farewells(*hook).any(|id| id == name)).collect()
    }

    /// The names whose end a job waits for.
    pub(crate) fn farewells(&self, job: JobIx) -> impl Iterator<Item = u32> + '_ {
        let keys = self.keys.get(job.index()).into_iter().flatten();
        let patterns = self.planned(job).when.patterns().iter().zip(keys);
        patterns.filter_map(|(event, key)| match key {
            Key::Name(id) if is_farewell(event.code) => Some(*id),
            _ => None,
        })
    }

    /// W5: from now on it has its time to be started.
    pub(crate) fn set_give_up(&mut self, job: JobIx) {
        if let Some(timeout) = self.planned(job).when.timeout {
            let timer = self.timers.set(self.now + timeout, Alarm::GiveUp(job));
            self.job_mut(job).give_up = Some(timer);
        }
    }

    /// Leaves.
    pub(crate) fn leave(&mut self) {
        self.kill_all_remains();
        let code = self.exit_code.or(self.first_failure).or(self.first_hook_failure).unwrap_or(0);
        self.phase = Phase::Left;
        self.effects.push(Effect::Exit { code });
    }

    /// The jobs that run at the `stopping` of this one (S2).
    pub(crate) fn hooks_of(&self, job: JobIx) -> &[JobIx] {
        self.hooks.get(self.name(job) as usize).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn name(&self, job: JobIx) -> u32 {
        self.names.get(job.index()).copied().unwrap_or(u32::MAX)
    }

    /// The definition of a job. A `JobIx` is only ever made from the plan's own list.
    pub(crate) fn planned(&self, job: JobIx) -> &Job {
        &self.plan.jobs[job.index()]
    }

    /// The state of a job; see [`Core::planned`].
    pub(crate) fn job(&self, job: JobIx) -> &JobState {
        &self.jobs[job.index()]
    }

    /// The state of a job; see [`Core::planned`].
    pub(crate) fn job_mut(&mut self, job: JobIx) -> &mut JobState {
        &mut self.jobs[job.index()]
    }

    pub(crate) fn all_jobs(&self) -> impl Iterator<Item = JobIx> + use<> {
        (0..self.plan.jobs.len()).map(JobIx::at)
    }

    pub(crate) fn new_run(&mut self, job: JobIx) -> RunId {
        self.next_run += 1;
        let run = RunId(self.next_run);
        self.runs.insert(run, job);
        run
    }

    pub(crate) fn new_check_run(&mut self, job: JobIx, check: CheckIx) -> CheckRun {
        self.next_check += 1;
        let run = CheckRun(self.next_check);
        self.check_runs.insert(run, (job, check));
        run
    }

    /// Changes what a job is doing; what the table does not know is a defect, and is said.
    pub(crate) fn change(&mut self, job: JobIx, state: State, aim: crate::job::Aim) {
        if state == State::Waiting {
            // A hook has done its work.
            self.look_at_hooked(job);
        }
        self.doubtful |= matches!(state, State::Waiting | State::Complete) || aim != self.job(job).aim();
        if !self.job_mut(job).transition(state, aim) {
            let from = (self.job(job).state(), self.job(job).aim());
            let message =
                format!("defect: a job cannot go from {from:?} to {:?}; please report it", (state, aim));
            self.log(Level::Error, Some(job), message);
        }
    }

    /// Tells the catalog what is wanted of a job's service, if that is something else than before.
    pub(crate) fn advertise(&mut self, job: JobIx, wanted: Wanted) {
        let wanted = if self.maintenance { Wanted::Absent } else { wanted };
        if self.planned(job).service.is_some() && self.job(job).wanted != wanted {
            self.job_mut(job).wanted = wanted;
            self.effects.push(Effect::Advertise { job, wanted });
        }
    }

    pub(crate) fn log(&mut self, level: Level, job: Option<JobIx>, message: String) {
        // A sensor runs every few seconds, and nobody wants to read that it has.
        let is_sensor = |job| matches!(self.planned(job).role, Role::Sensor(_));
        let level = if level == Level::Info && job.is_some_and(is_sensor) { Level::Debug } else { level };
        if level >= self.plan.logging.level {
            self.effects.push(Effect::Log(Entry { level, job, message, with_output: false }));
        }
    }

    fn log_event(&mut self, event: &Event) {
        // Spelling it out costs more than everything else in a step.
        if self.plan.logging.level > Level::Debug {
            return;
        }
        let mut message = format!("event {} {}", self.origin_name(event.origin), event.code);
        if let Some(cause) = event.cause.and_then(|cause| self.journal.event(cause)) {
            message += &format!(", because of {} {}", self.origin_name(cause.origin), cause.code);
        }
        self.log(Level::Debug, None, message);
    }

    /// The name of an event's source, as a configuration writes it.
    #[must_use]
    pub fn origin_name(&self, origin: Origin) -> String {
        match origin {
            Origin::Global => "global".into(),
            Origin::Job(job) => self.planned(job).name.clone(),
            Origin::Watch(watch) => {
                let name = self.plan.watches.get(watch.index()).map_or("", |watch| &watch.name);
                format!("watch.{name}")
            }
            Origin::Signal(1) => "SIGHUP".into(),
            Origin::Signal(12) => "SIGUSR2".into(),
            Origin::Signal(number) => format!("signal {number}"),
            Origin::Former(place) => self.former.get(place as usize).cloned().unwrap_or_default(),
        }
    }
}

impl Core {
    /// Everything that goes on while plans change places moves into the core of the new one; see `reload.rs`. The
    /// states of jobs and watches have moved already.
    pub(crate) fn take_over(&mut self, old: Self, moves: &Moves) {
        self.now = old.now;
        self.phase = old.phase;
        self.maintenance = old.maintenance;
        self.effects = old.effects;
        self.remains = old.remains;
        (self.exit_code, self.asked) = (old.exit_code, old.asked);
        (self.first_failure, self.first_hook_failure) = (old.first_failure, old.first_hook_failure);
        self.births = old.births;
        (self.next_run, self.next_check, self.next_event) = (old.next_run, old.next_check, old.next_event);
        self.timers = old.timers;
        self.timers.rename(|job| moves.job(job));
        let kept = |(id, job): (RunId, JobIx)| Some((id, moves.job(job)?));
        self.runs = old.runs.into_iter().filter_map(kept).collect();
        let kept = |(id, (job, check)): (CheckRun, (JobIx, CheckIx))| Some((id, (moves.job(job)?, check)));
        self.check_runs = old.check_runs.into_iter().filter_map(kept).collect();
        let variables = Arc::make_mut(&mut self.variables);
        variables.succeed(&old.variables);
        for (nth, state) in self.jobs.iter().enumerate() {
            variables.set_process(JobIx::at(nth), state.pid);
        }
        // The names of what is no more are kept only as long as somebody speaks of it.
        let mut former: Vec<String> = Vec::new();
        let mut moved = |origin: &mut Origin| {
            let name = match *origin {
                Origin::Job(job) if let Some(to) = moves.job(job) => return *origin = Origin::Job(to),
                Origin::Watch(watch) if let Some(to) = moves.watch(watch) => {
                    return *origin = Origin::Watch(to);
                }
                Origin::Job(job) => old.plan.jobs.get(job.index()).map(|job| job.name.clone()),
                Origin::Watch(watch) => {
                    old.plan.watches.get(watch.index()).map(|watch| format!("watch.{}", watch.name))
                }
                Origin::Former(place) => old.former.get(place as usize).cloned(),
                Origin::Global | Origin::Signal(_) => return,
            };
            let name = name.unwrap_or_default();
            let place = former.iter().position(|other| *other == name).unwrap_or(former.len());
            if place == former.len() {
                former.push(name);
            }
            *origin = Origin::Former(u32::try_from(place).unwrap_or(u32::MAX));
        };
        self.journal = old.journal;
        self.journal.for_each_mut(|event| moved(&mut event.origin));
        for state in &mut self.jobs {
            for event in [&mut state.cause, &mut state.remembered].into_iter().flatten() {
                moved(&mut event.origin);
            }
        }
        for ((mut origin, code), count) in old.counts {
            moved(&mut origin);
            if !matches!(origin, Origin::Former(_)) {
                self.counts.insert((origin, code), count);
            }
        }
        self.former = former;
        self.incomplete = self.jobs.iter().filter(|job| job.state() != State::Complete).count();
        let open = |(job, holds): &(&JobState, &bool)| {
            **holds && (job.state() != State::Complete || job.comes_again())
        };
        self.holding = self.jobs.iter().zip(&self.holders).filter(open).count();
    }
}

/// Whether a job does work of its own, and does not only react to signals, maintenance or an end (W10).
fn does_work(job: &Job) -> bool {
    let reacts = |event: &EventPattern| {
        matches!(event.source, Source::Signal(_))
            || is_farewell(event.code)
            || matches!(event.code, Code::EnterMaintenance | Code::ExitMaintenance)
    };
    let patterns = job.when.patterns();
    !job.role.is_secondary() && (patterns.is_empty() || !patterns.iter().all(reacts))
}

/// Whether an event belongs to the end of something, so that jobs triggered by it still run during a shutdown (S3).
pub(crate) fn is_farewell(code: Code) -> bool {
    matches!(code, Code::Stopping | Code::Stopped | Code::Shutdown)
}
