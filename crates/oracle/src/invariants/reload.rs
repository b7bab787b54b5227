//! R3, R4, C6: a reload stops what is not the same in the new plan, changes places in one instant, begins what is new,
//! tells it what it has missed, and touches nobody else.

use containerpilot_core::effect::DesiredService;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::{EventId, JobIx, WatchIx};
use containerpilot_core::plan::diff::{Changes, Moves};
use containerpilot_core::plan::{Job, Plan, Repeat, Role, Trigger, Watch};
use containerpilot_core::request::{Reply, RequestId};
use containerpilot_core::{Core, JobStatus, Phase, State, StopReason, Time};

use super::model::{JobModel, Seen};
use super::{Check, Witness};

/// The reload that is under way, if there is one.
#[derive(Debug, Default)]
pub(super) struct Reloading {
    /// Who waits for it, and the version that was asked for last.
    requests: Vec<RequestId>,
    version: usize,
    /// Whether somebody has asked just now, or before the startup.
    asked: bool,
    /// When whatever holds it up is killed.
    due: Option<Time>,
    /// Whom it has waited for long enough.
    late: Vec<usize>,
    /// Whether plans change places in this part of a step.
    pub(super) changing: bool,
    /// Where things are now, if that has changed in this step.
    pub(super) moved: Option<Vec<Option<usize>>>,
    /// What it did, if it was done in this step.
    pub(super) done: Option<Changes>,
    /// Whether somebody is to begin with it, who has not been told yet.
    begins: bool,
}

impl Witness<'_> {
    /// Somebody asks for a reload.
    pub(super) fn see_reload(&mut self, id: RequestId, plan: &Plan) {
        let version = self.versions.iter().position(|version| version.plan == *plan);
        self.reloading.requests.push(id);
        self.reloading.version = version.unwrap_or(0);
        self.reloading.asked = true;
    }

    /// Those that come while one is waited for share its time (R4).
    pub(super) fn begin_reload(&mut self) {
        if std::mem::take(&mut self.reloading.asked) && self.reloading.due.is_none() {
            self.reloading.due = Some(self.now + self.plan.stop_timeout);
        }
    }

    pub(super) fn is_reload(&self, id: RequestId) -> bool {
        self.reloading.requests.contains(&id)
    }

    /// Whether a reload is waited for.
    pub(super) fn is_reloading(&self) -> bool {
        !self.reloading.requests.is_empty()
    }

    /// For each job of the present plan, its place in another one: by name, the first with the first.
    fn mates(&self, plan: &Plan) -> Vec<Option<usize>> {
        let nth_of_name =
            |jobs: &[Job], nth: usize| jobs[..nth].iter().filter(|job| job.name == jobs[nth].name).count();
        let place = |nth: usize| {
            let namesakes = nth_of_name(&self.plan.jobs, nth);
            let mut same =
                plan.jobs.iter().enumerate().filter(|(_, job)| job.name == self.plan.jobs[nth].name);
            same.nth(namesakes).map(|(place, _)| place)
        };
        (0..self.plan.jobs.len()).map(place).collect()
    }

    /// Whether a job is to stop for the reload that is waited for: it is not the same in the new plan, or was stopped for
    /// another one before (R4), or is a coprocess (C6).
    pub(super) fn must_go(&self, job: usize, status: &JobStatus) -> bool {
        if !self.is_reloading() || self.reloading.asked {
            return false;
        }
        if status.stop_reason == Some(StopReason::Reload) {
            return true;
        }
        let plan = &self.versions[self.reloading.version].plan;
        let mate = self.mates(plan)[job];
        !mate.is_some_and(|mate| goes_on(&self.plan.jobs[job], &plan.jobs[mate]))
    }

    /// Whether a reload waits for the end of a job: of those that must go, and of whoever has given up hope and gets a
    /// new one.
    fn is_awaited(&self, job: usize, after: &[JobStatus]) -> bool {
        if self.must_go(job, &after[job]) {
            return true;
        }
        let another = || {
            self.versions[self.reloading.version].plan != *self.plan
                || (0..after.len()).any(|job| self.must_go(job, &after[job]))
        };
        after[job].stop_reason == Some(StopReason::Unreachable) && self.is_reloading() && another()
    }

    /// The jobs that have had all the time that a reload gives them, before this part of a step.
    pub(super) fn find_who_is_late(&mut self) {
        self.reloading.late.clear();
        if self.reloading.due.is_some_and(|due| if self.exact { due == self.now } else { due <= self.now }) {
            let late = (0..self.jobs.len()).filter(|job| self.is_awaited(*job, &self.between));
            self.reloading.late = late.collect();
            for job in &self.reloading.late {
                if let Some(run) = &mut self.jobs[*job].run {
                    run.overtaken |= run.started.is_none();
                }
            }
        }
    }

    pub(super) fn is_late_for_reload(&self, job: usize) -> bool {
        self.reloading.late.contains(&job)
    }

    /// The plans change places.
    pub(super) fn change_places(&mut self, moves: &Moves, core: &Core) -> Check {
        if !self.is_reloading() || self.phase != Phase::Running {
            return Err(self.says("R3", "another plan is in force, and nobody has asked for one"));
        }
        let versions = self.versions;
        let plan = &versions[self.reloading.version].plan;
        if core.plan() != plan {
            return Err(self.says("R3", "the plan in force is not the one that was asked for last"));
        }
        let mates = self.mates(plan);
        let same = |watch| plan.watches.iter().position(|other| other == watch).map(WatchIx::at);
        let expected = Moves {
            jobs: mates.iter().map(|mate| mate.map(JobIx::at)).collect(),
            watches: self.plan.watches.iter().map(same).collect(),
        };
        if *moves != expected {
            return Err(self.says("R3", format!("{moves:?} is not where things are")));
        }
        for job in (0..self.jobs.len()).filter(|job| self.is_awaited(*job, &self.between)) {
            if self.between[job].state != State::Complete || self.jobs[job].run.is_some() {
                return self.broken("R3", job, "the plans change places before it has stopped");
            }
        }
        let changes = self.changes(&mates, plan);
        let mut watches = vec![Vec::new(); plan.watches.len()];
        for (old, to) in std::mem::take(&mut self.watches).into_iter().zip(&moves.watches) {
            if let Some(to) = to {
                watches[to.index()] = old;
            }
        }
        self.watches = watches;
        self.move_jobs(&mates, plan);
        (self.reloading.moved, self.reloading.changing) = (Some(mates), true);
        (self.version, self.plan) = (self.reloading.version, plan);
        self.reloading.done = Some(changes);
        self.reloading.due = None;
        Ok(())
    }

    /// Where a job is that was in a place at the beginning of this step.
    pub(super) fn place_now(&self, job: usize) -> Option<usize> {
        match &self.reloading.moved {
            Some(mates) => mates.get(job).copied().flatten(),
            None => Some(job),
        }
    }

    /// What a reload does, by names.
    fn changes(&self, mates: &[Option<usize>], plan: &Plan) -> Changes {
        let mut changes = Changes::default();
        for (old, _) in self.plan.jobs.iter().zip(mates).filter(|(_, mate)| mate.is_none()) {
            changes.stopped.push(old.name.clone());
        }
        for (nth, job) in plan.jobs.iter().enumerate() {
            let list = match mates.iter().position(|mate| *mate == Some(nth)) {
                None => &mut changes.started,
                Some(old) if self.must_go(old, &self.between[old]) => &mut changes.restarted,
                Some(_) => &mut changes.kept,
            };
            list.push(job.name.clone());
        }
        changes
    }

    /// What is known of each job moves to its new place; those that begin have a new life.
    fn move_jobs(&mut self, mates: &[Option<usize>], plan: &Plan) {
        let (mut jobs, mut seen) = (Vec::new(), Vec::new());
        let (mut before, mut between) = (Vec::new(), Vec::new());
        for (nth, job) in plan.jobs.iter().enumerate() {
            let from = mates.iter().position(|mate| *mate == Some(nth));
            let goes_on = from.filter(|from| {
                let ending = self.between[*from].stop_reason;
                !self.must_go(*from, &self.between[*from]) && ending != Some(StopReason::Unreachable)
            });
            if let Some(from) = goes_on {
                let mut model = self.jobs[from].clone();
                // W12: of a watch that is another one, or none, nobody knows that it is healthy.
                for (holds, event) in model.holds.iter_mut().zip(job.when.patterns()) {
                    let Source::Watch(name) = &event.source else { continue };
                    let same = |watch: &Watch| watch.name == *name && self.plan.watches.contains(watch);
                    *holds &= event.code != Code::Healthy || plan.watches.iter().any(same);
                }
                jobs.push(model);
                seen.push(self.seen[from].clone());
                before.push(self.before[from]);
                between.push(self.between[from]);
                continue;
            }
            self.births += 1;
            let model = match from {
                Some(from) => self.jobs[from].reborn(job, self.now, self.births),
                None => JobModel { born: self.now, birth: self.births, ..JobModel::new(job) },
            };
            let status = unborn(model.generation);
            jobs.push(model);
            seen.push(Seen { born: true, reloaded: true, ..Seen::default() });
            before.push(status);
            between.push(status);
            self.reloading.begins = true;
        }
        (self.jobs, self.seen, self.before, self.between) = (jobs, seen, before, between);
    }

    /// R3, E4: `startup` for those who begin with a reload.
    pub(super) fn see_startup_again(&mut self) -> Check {
        if std::mem::take(&mut self.reloading.begins) {
            return Ok(());
        }
        Err(self.says("E4", "a second startup"))
    }

    /// R3: who begins in the midst of things is told what holds already and will not be said again.
    pub(super) fn tell_what_holds(&mut self, startup: u64, after: &[JobStatus]) {
        let plan = self.plan;
        for job in 0..self.jobs.len() {
            if !self.seen[job].reloaded {
                continue;
            }
            let when = &plan.jobs[job].when;
            let once = when.repeat() == Repeat::Once;
            let lasting = matches!(when.trigger, Trigger::All { .. });
            for (nth, pattern) in when.patterns().iter().enumerate() {
                // Whoever names an event twice still runs once for it.
                let twice = !lasting && when.patterns()[..nth].contains(pattern);
                if twice || !self.holds_already(&pattern.source, pattern.code, once) {
                    continue;
                }
                if lasting {
                    let held = self.jobs[job].holds.iter().all(|holds| *holds);
                    self.jobs[job].holds[nth] = true;
                    if held || !self.jobs[job].holds.iter().all(|holds| *holds) {
                        continue;
                    }
                }
                self.see_fire(job, startup, after);
            }
        }
    }

    fn holds_already(&self, source: &Source, code: Code, once: bool) -> bool {
        match source {
            Source::Global => code == Code::EnterMaintenance && self.maintenance,
            Source::Signal(_) => false,
            Source::Watch(name) => {
                let mut watches = self.plan.watches.iter().zip(&self.watches);
                matches!(code, Code::Healthy | Code::Changed)
                    && watches.any(|(watch, known)| watch.name == *name && !known.is_empty())
            }
            Source::Job(name) => (0..self.jobs.len()).any(|nth| {
                let (planned, model) = (&self.plan.jobs[nth], &self.jobs[nth]);
                // What has run to its end, and does not run again just now.
                let ended = planned.exec.is_some()
                    && model.runs > 0
                    && model.run.is_none()
                    && (once || model.stopped.is_some());
                // Who begins with the same startup has everything before it.
                planned.name == *name
                    && !self.seen[nth].reloaded
                    && match code {
                        Code::Healthy => model.verdict == Some(true),
                        Code::Unhealthy => model.verdict == Some(false),
                        Code::ExitSuccess => ended && model.last_failure.is_none(),
                        Code::ExitFailed => ended && model.last_failure.is_some(),
                        Code::Stopping => model.stopping.is_some(),
                        Code::Stopped => model.stopped.is_some(),
                        // Whoever has started it by hand since has taken that back.
                        Code::TimerExpired => model.gave_up && !Self::comes_again(&self.between[nth]),
                        _ => false,
                    }
            }),
        }
    }

    /// A reload is answered: it says what it did.
    pub(super) fn see_reload_answer(&mut self, id: RequestId, answer: &Reply, phase: Phase) -> Check {
        match answer {
            Reply::Reloaded(changes) => {
                let done = self.reloading.done.take().unwrap_or_else(|| {
                    let plan = &self.versions[self.reloading.version].plan;
                    self.changes(&self.mates(plan), plan)
                });
                let moved = self.version == self.reloading.version;
                if *changes != done || !moved {
                    return Err(
                        self.says("R3", format!("{changes:?} is not what a reload did, but {done:?}"))
                    );
                }
                self.reloading.done = Some(done);
            }
            Reply::Refused(_) if phase != Phase::Running => {}
            other => return Err(self.says("R1", format!("{other:?} is no answer to a reload"))),
        }
        self.reloading.requests.retain(|open| *open != id);
        if self.reloading.requests.is_empty() {
            self.reloading.due = None;
        }
        Ok(())
    }

    /// Every reload is answered, as soon as it can be, and what must go for it goes.
    pub(super) fn check_reloads(&mut self, after: &[JobStatus], phase: Phase) -> Check {
        if std::mem::take(&mut self.reloading.begins) {
            return Err(self.says("R3", "somebody is to begin with the reload, and there is no startup"));
        }
        if phase == Phase::Starting || !self.is_reloading() {
            return Ok(());
        }
        let waits = |job: usize| self.is_awaited(job, after) && after[job].state != State::Complete;
        if phase != Phase::Running || !(0..after.len()).any(waits) {
            return Err(self.says("X1", "somebody waits for an answer to a reload"));
        }
        let awaited: Vec<usize> = (0..after.len()).filter(|job| waits(*job)).collect();
        if self.reloading.due.is_some_and(|due| due <= self.now) {
            for job in &awaited {
                let Some(run) = &mut self.jobs[*job].run else { continue };
                if run.started.is_some() && run.killed.is_none() {
                    return self.broken(
                        "R3",
                        *job,
                        "the reload has waited long enough, and does not kill it",
                    );
                }
                run.doomed |= run.started.is_none();
            }
            self.reloading.due = None;
        }
        for job in awaited {
            if self.jobs[job].stopping.is_none() {
                let what = format!("a reload waits, and it is {:?}", after[job].state);
                return self.broken("R3", job, &what);
            }
        }
        Ok(())
    }
}

/// Whether a job goes on with another definition. Coprocesses begin anew at every reload (C6).
fn goes_on(old: &Job, new: &Job) -> bool {
    old.role != Role::Coprocess && old == new
}

/// A job that has not begun.
fn unborn(generation: u64) -> JobStatus {
    JobStatus {
        state: State::Waiting,
        stop_stage: None,
        generation,
        created_after: EventId(0),
        run: None,
        pid: None,
        healthy: None,
        restarts: 0,
        last_exit: None,
        desired: DesiredService::Absent,
        stop_reason: None,
    }
}
