//! Hope: whether what a job waits for can still come (W10).
//!
//! Two questions. Of one job: is there anybody left who could send the event? That is asked as soon as a source becomes
//! complete. Of all jobs together: is there anybody at all who could begin? Jobs that wait only for one another are
//! each other's hope and wait for ever; that is asked when the queue is empty and somebody has come to wait or to an end.
//! Beginning with everybody who does something, or will by itself, whoever they could start is added, until
//! nobody is; who is left waits in vain.

use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::{JobIx, WatchIx};
use crate::plan::{Job, Repeat, Trigger};
use crate::state::dependency_graph::{Key, is_stop_event};
use crate::state::job::{JobState, State};
use crate::state::supervisor::{Core, Phase};

impl Core {
    /// Whether the nth event that a job waits for can still come.
    pub(crate) fn pattern_can_come(&self, job: JobIx, nth: usize) -> bool {
        let key = self.graph.keys(job).get(nth);
        let event = self.planned(job).when.patterns().get(nth);
        key.zip(event).is_some_and(|(key, event)| self.can_come(*key, event.code, &|_| true))
    }

    /// Whether an event can still come, if only those jobs that are told can begin anything.
    pub(crate) fn can_come(&self, key: Key, code: Code, begins: &dyn Fn(JobIx) -> bool) -> bool {
        let running = matches!(self.phase, Phase::Beginning | Phase::Running);
        if !running && !is_stop_event(code) {
            return false;
        }
        match key {
            Key::Nobody => false,
            Key::Global if code == Code::Startup => self.phase == Phase::Beginning,
            Key::Global => code.is_global() && running,
            Key::Signal(_) => running,
            Key::Watch(watch) => running && self.watch_can_change(watch, begins),
            Key::Name(id) => self.graph.jobs_named(id).iter().any(|job| {
                let begins = is_stop_event(code) || code == Code::TimerExpired || begins(*job);
                begins && may_send(self.planned(*job), self.job(*job), code)
            }),
        }
    }

    /// D2: what the embedded catalog holds only jobs of this plan can change. What it has said is there and is not any
    /// more, it will still say.
    fn watch_can_change(&self, watch: WatchIx, begins: &dyn Fn(JobIx) -> bool) -> bool {
        let Some(advertisers) = &self.graph.advertisers else { return true };
        let known = self.watches.get(watch.index()).and_then(|state| state.answer());
        if known.is_some_and(|instances| !instances.is_empty()) {
            return true;
        }
        let mut jobs = advertisers.get(watch.index()).into_iter().flatten();
        jobs.any(|job| self.comes_again(*job) || (self.job(*job).state() != State::Complete && begins(*job)))
    }

    /// Whether a job that is complete may run again all the same, because somebody has stopped it by hand.
    pub(crate) fn comes_again(&self, job: JobIx) -> bool {
        self.phase == Phase::Running && self.job(job).comes_again()
    }

    /// Whether a job that waits can never be started (again).
    pub(crate) fn is_unreachable(&self, job: JobIx) -> bool {
        self.waits(job) && !self.can_be_started(job, &|_| true)
    }

    /// Whether a job has nothing to do until its trigger comes. One that has a time set for that (W5) will give up by
    /// itself, with the event that others may wait for.
    fn waits(&self, job: JobIx) -> bool {
        let state = self.job(job);
        state.state() == State::Waiting
            && state.is_up()
            && state.pending_event.is_none()
            && state.give_up.is_none()
            && self.phase != Phase::Beginning
            && !matches!(self.planned(job).when.trigger, Trigger::Interval(_))
    }

    /// Whether the trigger of a job that waits can still come.
    fn can_be_started(&self, job: JobIx, begins: &dyn Fn(JobIx) -> bool) -> bool {
        let (planned, state) = (self.planned(job), self.job(job));
        let mut events = planned.when.patterns().iter().zip(self.graph.keys(job));
        match &planned.when.trigger {
            Trigger::Never => false,
            Trigger::Interval(_) => true,
            _ if self.is_spent(job) => false,
            Trigger::Event { .. } | Trigger::Any { .. } => {
                events.any(|(event, key)| self.can_come(*key, event.code, begins))
            }
            Trigger::All { .. } => {
                if state.holds.iter().all(|holds| *holds) {
                    // They come to hold again only where one of them can end.
                    return events.any(|(event, key)| {
                        event.code == Code::Healthy && self.can_come(*key, Code::Healthy, begins)
                    });
                }
                let mut missing = events.zip(&state.holds).filter(|(_, holds)| !**holds);
                missing.all(|((event, key), _)| self.can_come(*key, event.code, begins))
            }
        }
    }

    /// Whether a job that runs once has done so. One that waits for the end of another runs once in each life of that:
    /// a hook that has seen its job restarted by hand is there for the next time.
    pub(crate) fn is_spent(&self, job: JobIx) -> bool {
        let state = self.job(job);
        if self.planned(job).when.repeat() != Repeat::Once || !state.triggered {
            return false;
        }
        let sources = self.stop_event_sources(job).flat_map(|id| self.graph.jobs_named(id));
        !sources
            .into_iter()
            .any(|source| self.job(*source).born > state.triggered_after || self.comes_again(*source))
    }

    /// Gives up the jobs that wait only for one another. Says whether there were any.
    #[inline(never)]
    pub(crate) fn mark_unreachable_cycles(&mut self) -> bool {
        let lost = self.unreachable_jobs();
        for job in &lost {
            self.mark_unreachable(*job);
        }
        !lost.is_empty()
    }

    /// The jobs that wait only for one another, or for what those could begin.
    fn unreachable_jobs(&self) -> Vec<JobIx> {
        let waiting: Vec<bool> = self.all_jobs().map(|job| self.waits(job)).collect();
        if !waiting.contains(&true) {
            return Vec::new();
        }
        // Who does not wait begins things; whoever can be started by those does, too; and so on.
        let mut begins: Vec<bool> = waiting.iter().map(|waits| !waits).collect();
        let mut open: Vec<JobIx> =
            self.all_jobs().filter(|job| waiting.get(job.index()) == Some(&true)).collect();
        while let Some(job) = open.pop() {
            let known = |other: JobIx| begins.get(other.index()).copied().unwrap_or(false);
            if known(job) || !self.can_be_started(job, &known) {
                continue;
            }
            open.extend(self.startable_by(job).filter(|other| !known(*other)));
            if let Some(begins) = begins.get_mut(job.index()) {
                *begins = true;
            }
        }
        self.all_jobs().filter(|job| begins.get(job.index()) == Some(&false)).collect()
    }

    /// The jobs that wait for something of this one: an event, or its service.
    fn startable_by(&self, job: JobIx) -> impl Iterator<Item = JobIx> + '_ {
        let by_name = self.graph.dependents(job).iter();
        let advertised = self.graph.advertisers.iter().flatten().zip(&self.graph.watchers);
        let by_service =
            advertised.filter(move |(jobs, _)| jobs.contains(&job)).flat_map(|(_, watchers)| watchers);
        by_name.chain(by_service).copied()
    }
}

/// Whether a job may still send an event.
fn may_send(job: &Job, state: &JobState, code: Code) -> bool {
    if state.comes_again() {
        return true;
    }
    if state.state() == State::Complete {
        return false;
    }
    let may_run = state.has_process() || state.state() == State::Running || state.is_up();
    match code {
        Code::ExitSuccess | Code::ExitFailed => job.exec.is_some() && may_run,
        Code::Healthy | Code::Unhealthy => job.health.is_some() && may_run,
        Code::Stopping => state.is_up(),
        Code::Stopped => true,
        Code::TimerExpired => state.give_up.is_some(),
        _ => false,
    }
}
