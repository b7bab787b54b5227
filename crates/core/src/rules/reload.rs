//! Reload: another plan takes the place of the present one, and whatever is the same in both goes on (R1–R4).
//!
//! Jobs are compared by name and definition; of several with one name, the first with the first. It goes in two parts:
//!
//! 1. The old plan is still in force. Whatever is not the same in the new one is stopped, with its hooks, as any job
//!    that is stopped; what has not stopped within the stop time is killed. Who asks for another reload meanwhile puts
//!    that plan in the place of the one that is waited for, and all who have asked get the one answer (R4).
//! 2. When the last of them is complete and no event is queued, the plans change places in one instant. A core
//!    is made for the new plan as at the beginning, and everything that goes on is moved into it. Places change with
//!    that: a [`JobIx`] is always a place in the plan that is in force. Effects before [`Effect::Replanned`] speak of the
//!    old places and those behind it of the new ones; [`Moves`] says which is which, also for inputs that are under way.
//!
//! Then `startup` is sent to those who are new, changed, or had given up hope before they ever ran, and they are told
//! what holds already and will not be said again: that another job is healthy, or has ended. So a reload leads to
//! where a start with the new plan would have led, and a reload to the same plan does nothing at all.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::effect::{Effect, Purpose};
use crate::event::{Code, Source};
use crate::grouped;
use crate::ids::{CheckIx, CheckRun, EventId, JobIx, RunId, WatchIx};
use crate::input::Input;
use crate::plan::{Level, Plan, Repeat, Trigger};
use crate::report::plan_diff::goes_on;
use crate::rules::command::{Answer, Command, RequestId};
use crate::state::dependency_graph::Key;
use crate::state::job::{Ending, JobState, State};
use crate::state::journal::{Event, Origin};
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::{TimerId, TimerKind};

/// What a reload did, by names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The jobs that go on as they were.
    pub kept: Vec<String>,
    /// The jobs whose definition has changed: they were stopped, and begin a new life.
    pub restarted: Vec<String>,
    /// The jobs that are new.
    pub started: Vec<String>,
    /// The jobs that are no more.
    pub stopped: Vec<String>,
}

/// Where things of the old plan are in the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// For each job of the old plan, its place in the new one, if it has one.
    pub jobs: Vec<Option<JobIx>>,
    /// For each watch of the old plan, its place in the new one, if it is the same.
    pub watches: Vec<Option<WatchIx>>,
}

impl Moves {
    /// Where a job is now.
    #[must_use]
    pub fn job(&self, job: JobIx) -> Option<JobIx> {
        self.jobs.get(job.index()).copied().flatten()
    }

    /// Where a watch is now.
    #[must_use]
    pub fn watch(&self, watch: WatchIx) -> Option<WatchIx> {
        self.watches.get(watch.index()).copied().flatten()
    }

    /// An input that was made before the plans changed places, for afterwards; nothing if it is about what is no more.
    /// A command about a job that is no more stays, because somebody waits for its answer.
    #[must_use]
    pub fn input(&self, input: Input) -> Option<Input> {
        let anywhere = |job: JobIx| self.job(job).unwrap_or(JobIx(u32::MAX));
        Some(match input {
            Input::Withdrawn { job } => Input::Withdrawn { job: self.job(job)? },
            Input::Instances { watch, instances } => {
                Input::Instances { watch: self.watch(watch)?, instances }
            }
            Input::Command { id, command } => {
                let command = match command {
                    Command::Start(job) => Command::Start(anywhere(job)),
                    Command::Stop(job) => Command::Stop(anywhere(job)),
                    Command::Restart(job) => Command::Restart(anywhere(job)),
                    Command::Signal(job, signal) => Command::Signal(anywhere(job), signal),
                    other => other,
                };
                Input::Command { id, command }
            }
            other => other,
        })
    }
}

/// A reload that is waited for.
#[derive(Debug)]
pub(crate) struct Pending {
    plan: Box<Plan>,
    requests: Vec<RequestId>,
    /// When whatever has not stopped is killed.
    timer: Option<TimerId>,
}

impl Core {
    /// R2 was seen to by whoever loads plans; this one is in order.
    pub(crate) fn reload(&mut self, id: RequestId, plan: Box<Plan>) {
        if self.phase != Phase::Running {
            let answer = Answer::Refused("the supervisor is stopping".into());
            return self.effects.push(Effect::Reply { id, answer });
        }
        let (mut requests, timer) = match self.pending.take() {
            Some(pending) => (pending.requests, pending.timer),
            None => (Vec::new(), None),
        };
        requests.push(id);
        let timer =
            timer.or_else(|| Some(self.timers.set(self.now + self.plan.stop_timeout, TimerKind::Reload)));
        self.pending = Some(Pending { plan, requests, timer });
    }

    /// For each job, its place in another plan, by name.
    fn same_jobs(&self, plan: &Plan) -> Vec<Option<JobIx>> {
        let jobs = plan.jobs.iter().enumerate().rev();
        let mut places = grouped(jobs.map(|(nth, job)| (job.name.as_str(), JobIx::at(nth))));
        self.plan.jobs.iter().map(|job| places.get_mut(job.name.as_str())?.pop()).collect()
    }

    /// The stop time has passed since the reload was asked for: what is to go is killed.
    pub(crate) fn reload_late(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.timer = None;
        }
        let awaited = self.pending.as_ref().map(|pending| self.held_up_by(&pending.plan)).unwrap_or_default();
        for job in awaited {
            if self.pending.is_none() {
                // The end of one of them was the end of everything: the others have the time of that.
                return;
            }
            if self.job(job).state() != State::Complete {
                self.log(
                    Level::Warn,
                    Some(job),
                    format_args!("has not stopped in time for the reload, and is killed"),
                );
                self.kill(job, Purpose::KillAfterTimeout);
            }
        }
    }

    /// Everything is being stopped, so there is nothing to reload any more.
    pub(crate) fn refuse_reload(&mut self) {
        let Some(mut pending) = self.pending.take() else { return };
        self.timers.cancel(&mut pending.timer);
        for id in pending.requests {
            let answer = Answer::Refused("the supervisor is stopping".into());
            self.effects.push(Effect::Reply { id, answer });
        }
    }

    /// Whether a job is to be another, or none, when the plans have changed places.
    pub(crate) fn is_replaced(&self, job: JobIx) -> bool {
        self.pending.as_ref().is_some_and(|pending| self.replaced(&pending.plan).contains(&job))
    }

    /// The jobs that are not the same in another plan, or are being stopped already for one.
    fn replaced(&self, plan: &Plan) -> Vec<JobIx> {
        let same_jobs = self.all_jobs().zip(self.same_jobs(plan));
        let same = |job: JobIx, to: Option<JobIx>| {
            to.and_then(|to| plan.jobs.get(to.index())).is_some_and(|other| goes_on(self.planned(job), other))
        };
        let stopping = |job: JobIx| self.job(job).ending == Some(Ending::Reload);
        same_jobs.filter(|(job, to)| stopping(*job) || !same(*job, *to)).map(|(job, _)| job).collect()
    }

    /// The jobs that must be complete before the plans change places: besides those that are not the same, whoever has
    /// given up hope and gets a new life, because the last one must have come to its end (E3).
    fn held_up_by(&self, plan: &Plan) -> Vec<JobIx> {
        let mut awaited = self.replaced(plan);
        if !awaited.is_empty() || *plan != *self.plan {
            awaited.extend(self.all_jobs().filter(|job| self.job(*job).ending == Some(Ending::Unreachable)));
        }
        awaited
    }

    /// Goes on with a reload: stops what is to go, and changes the plans when that is complete. Says whether something
    /// more follows. Only called when no event is queued.
    #[inline(never)]
    pub(crate) fn reload_progress(&mut self) -> bool {
        let Some(pending) = &self.pending else { return false };
        let awaited = self.held_up_by(&pending.plan);
        let up: Vec<JobIx> = awaited.iter().copied().filter(|job| self.job(*job).is_up()).collect();
        for job in &up {
            self.begin_stop(*job, Ending::Reload);
        }
        if !up.is_empty() {
            return true;
        }
        if awaited.iter().any(|job| self.job(*job).state() != State::Complete) {
            return false;
        }
        self.replan();
        true
    }

    /// The plans change places.
    pub(crate) fn replan(&mut self) {
        let Some(mut pending) = self.pending.take() else { return };
        self.timers.cancel(&mut pending.timer);
        let moves = Moves { jobs: self.same_jobs(&pending.plan), watches: self.watch_moves(&pending.plan) };
        let mut changes = Changes::default();
        for (job, to) in self.all_jobs().zip(&moves.jobs) {
            if to.is_none() {
                changes.stopped.push(self.planned(job).name.clone());
            }
        }
        let mut from = vec![None; pending.plan.jobs.len()];
        for (job, to) in self.all_jobs().zip(&moves.jobs) {
            if let Some(from) = to.and_then(|to| from.get_mut(to.index())) {
                *from = Some(job);
            }
        }
        let mut fresh = Vec::new();
        for (nth, (from, job)) in from.iter().zip(&pending.plan.jobs).enumerate() {
            let name = job.name.clone();
            match from {
                None => changes.started.push(name),
                Some(old)
                    if self.job(*old).ending == Some(Ending::Reload) || !goes_on(self.planned(*old), job) =>
                {
                    changes.restarted.push(name);
                }
                Some(old) => {
                    changes.kept.push(name);
                    // Who gave up hope before it ever ran has a new one.
                    if self.job(*old).ending != Some(Ending::Unreachable) {
                        continue;
                    }
                }
            }
            fresh.push(JobIx::at(nth));
        }
        // The same plan again is no reason to try again what was given up.
        if *pending.plan != *self.plan || !changes.restarted.is_empty() {
            self.change_places(*pending.plan, &moves, &from, &fresh);
        }
        for id in pending.requests {
            self.effects.push(Effect::Reply { id, answer: Answer::Reloaded(changes.clone()) });
        }
    }

    fn watch_moves(&self, plan: &Plan) -> Vec<Option<WatchIx>> {
        let same = |watch| plan.watches.iter().position(|other| other == watch).map(WatchIx::at);
        self.plan.watches.iter().map(same).collect()
    }

    /// A core for the new plan, with everything that goes on; and `startup` for who begins.
    fn change_places(&mut self, plan: Plan, moves: &Moves, from: &[Option<JobIx>], fresh: &[JobIx]) {
        let mut old = core::mem::replace(self, Self::new(plan));
        for (nth, from) in from.iter().enumerate() {
            if fresh.contains(&JobIx::at(nth)) {
                if let Some(from) = from {
                    let after = EventId(old.next_event);
                    self.jobs[nth] = old.jobs[from.index()].reborn(&self.plan.jobs[nth], after);
                }
                old.generations += 1;
                self.jobs[nth].born = old.generations;
            } else if let Some(from) = from {
                core::mem::swap(&mut self.jobs[nth], &mut old.jobs[from.index()]);
            }
        }
        for (nth, to) in moves.watches.iter().enumerate() {
            if let Some(to) = to {
                core::mem::swap(&mut self.watches[to.index()], &mut old.watches[nth]);
            }
        }
        self.take_over(old, moves);
        self.doubt_new_watches(moves, fresh);
        let effect = Effect::Replanned { plan: Arc::clone(&self.plan), moves: moves.clone() };
        self.effects.push(effect);
        self.log(Level::Info, None, format_args!("reloaded"));
        for job in fresh {
            self.set_give_up(*job);
            self.revive_hooks(*job);
        }
        for job in self.all_jobs() {
            self.enqueue_recheck(job);
        }
        if !fresh.is_empty() {
            self.audience = Some(fresh.to_vec());
            self.send(Origin::Global, Code::Startup, None);
        }
    }

    /// W12: `healthy` is true while healthy, and of a watch that is another one, or none, nobody knows that.
    fn doubt_new_watches(&mut self, moves: &Moves, fresh: &[JobIx]) {
        for job in self.all_jobs().filter(|job| !fresh.contains(job)) {
            let patterns = self.planned(job).when.patterns().iter().zip(self.graph.keys(job));
            let unknown: Vec<bool> = patterns
                .map(|(event, key)| {
                    let known = matches!(key, Key::Watch(watch) if moves.watches.contains(&Some(*watch)));
                    event.code == Code::Healthy && matches!(event.source, Source::Watch(_)) && !known
                })
                .collect();
            for (holds, unknown) in self.job_mut(job).holds.iter_mut().zip(unknown) {
                *holds &= !unknown;
            }
        }
    }

    /// What one who begins in the midst of things has missed: what holds already and will not be said again.
    pub(crate) fn tell_what_holds(&mut self, job: JobIx, startup: Event) {
        let patterns: Vec<(usize, Code)> =
            self.planned(job).when.patterns().iter().map(|event| event.code).enumerate().collect();
        let once = self.planned(job).when.repeat() == Repeat::Once;
        let lasting = matches!(self.planned(job).when.trigger, Trigger::All { .. });
        for (condition, code) in patterns {
            let all = self.planned(job).when.patterns();
            // Whoever names an event twice still runs once for it.
            let twice = all.iter().take(condition).any(|other| all.get(condition) == Some(other));
            if twice && !lasting {
                continue;
            }
            let behind = self.graph.jobs_behind(job, condition);
            let origin = match self.graph.origin_behind(job, condition) {
                Some(Origin::Job(_)) => {
                    behind.iter().copied().find(|source| self.holds(*source, code, once)).map(Origin::Job)
                }
                Some(Origin::Watch(watch)) if matches!(code, Code::Healthy | Code::Changed) => {
                    let answer = self.watches.get(watch.index()).and_then(|state| state.answer());
                    answer.filter(|instances| !instances.is_empty()).map(|_| Origin::Watch(watch))
                }
                Some(Origin::Global) if code == Code::EnterMaintenance && self.maintenance => {
                    Some(Origin::Global)
                }
                _ => None,
            };
            if let Some(origin) = origin {
                self.matched(job, condition, false, Event { origin, code, exit: None, ..startup });
            }
        }
    }

    /// Whether an event of a job that goes on has come, and still says how it is.
    fn holds(&self, source: JobIx, code: Code, once: bool) -> bool {
        let state = self.job(source);
        // Who begins with the same startup has everything before it.
        if self.audience.as_ref().is_some_and(|fresh| fresh.contains(&source)) {
            return false;
        }
        let complete = state.state() == State::Complete;
        // What was its last exit in this life, unless another run is on its way, which will say so itself.
        let ended = |success: bool| {
            (once || complete)
                && (state.has_run && !state.has_process() && self.planned(source).exec.is_some())
                && state.last_exit.is_some_and(|exit| (exit.is_success() && !state.timed_out) == success)
        };
        match code {
            Code::Healthy => self.status(source).healthy == Some(true),
            Code::Unhealthy => self.status(source).healthy == Some(false),
            Code::ExitSuccess => ended(true),
            Code::ExitFailed => ended(false),
            Code::Stopping => !state.is_up(),
            Code::Stopped => complete,
            Code::TimerExpired => state.ending == Some(Ending::GaveUp),
            _ => false,
        }
    }
}

impl Core {
    /// Everything that goes on while plans change places moves into the core of the new one. The
    /// states of jobs and watches have moved already.
    pub(crate) fn take_over(&mut self, old: Self, moves: &Moves) {
        self.now = old.now;
        self.phase = old.phase;
        self.maintenance = old.maintenance;
        self.effects = old.effects;
        (self.orphaned_groups, self.out_of_memory) = (old.orphaned_groups, old.out_of_memory);
        (self.exit_code, self.asked) = (old.exit_code, old.asked);
        (self.first_failure, self.first_hook_failure) = (old.first_failure, old.first_hook_failure);
        self.generations = old.generations;
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
            for event in [&mut state.cause, &mut state.pending_event].into_iter().flatten() {
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
        self.holding = self.jobs.iter().zip(&self.graph.holders).filter(open).count();
    }
}
