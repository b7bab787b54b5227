//! R3, R4, C6: a reload stops what has changed, switches to the new plan in one instant, starts what is new, replays
//! conditions that already hold to new jobs, and does not touch other jobs.

use containerpilot_core::effect::DesiredService;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::{EventId, JobIx, WatchIx};
use containerpilot_core::plan::diff::{Changes, Moves};
use containerpilot_core::plan::{EventPattern, Job, Plan, Repeat, Role, Trigger, Watch};
use containerpilot_core::request::{Reply, RequestId};
use containerpilot_core::{Core, JobStatus, Phase, State, StopReason, StopStage};

use super::answers::Answers;
use super::model::{JobModel, RunModel, Seen};
use super::oracle::{Check, Oracle};
use super::replicas::is_named;

impl Oracle<'_> {
    /// A reload is requested. W20: the number of replicas that `scale` has set stays, if that in the configuration is the same.
    pub(super) fn see_reload(&mut self, id: RequestId, plan: &Plan) {
        let version = self.versions.iter().position(|version| version.plan == *plan).unwrap_or(0);
        let next = &self.versions[self.next_version()];
        let configured = |plan: &Plan| plan.replicas.first().map(|group| group.configured);
        let count = next.scaled_from.map(|(_, count)| count);
        let kept = count.filter(|_| configured(&next.plan) == configured(plan));
        self.reloading.renews_variables = true;
        self.see_request_of_version(
            id,
            kept.and_then(|count| self.scaled(version, count)).unwrap_or(version),
        );
    }

    /// Another number of replicas is requested (W20). Returns false if it is refused.
    pub(super) fn see_scale(&mut self, id: RequestId, name: &str, count: u16) -> bool {
        let next = self.next_version();
        let base = self.versions[next].scaled_from.map_or(next, |(base, _)| base);
        match self.scaled(base, count).filter(|_| self.is_group(name)) {
            Some(version) => self.see_request_of_version(id, version),
            None => return false,
        }
        true
    }

    /// The version with a number of replicas.
    fn scaled(&self, base: usize, count: u16) -> Option<usize> {
        let group = self.versions[base].plan.replicas.first()?;
        let found = self.versions.iter().position(|version| version.scaled_from == Some((base, count)));
        if group.configured == count { Some(base) } else { found }
    }

    /// The version of the reload in progress, or else the one in force.
    fn next_version(&self) -> usize {
        if self.is_reloading() { self.reloading.version } else { self.version }
    }

    fn see_request_of_version(&mut self, id: RequestId, version: usize) {
        self.reloading.requests.push(id);
        self.reloading.version = version;
        self.reloading.requested = true;
    }

    /// Requests during a reload share its timeout (R4).
    pub(super) fn begin_reload(&mut self) {
        if std::mem::take(&mut self.reloading.requested) && self.reloading.due.is_none() {
            self.reloading.due = Some(self.now + self.hook_time() + self.plan.stop_timeout);
        }
    }

    pub(super) fn is_reload(&self, id: RequestId) -> bool {
        self.reloading.requests.contains(&id)
    }

    /// Returns true if a reload is in progress.
    pub(super) fn is_reloading(&self) -> bool {
        !self.reloading.requests.is_empty()
    }

    /// The index of each job in another plan. Of several jobs with the same name, the first matches the first.
    fn same_jobs(&self, plan: &Plan) -> Vec<Option<usize>> {
        let nth_of_name =
            |jobs: &[Job], nth: usize| jobs[..nth].iter().filter(|job| job.name == jobs[nth].name).count();
        let place = |nth: usize| {
            let earlier = nth_of_name(&self.plan.jobs, nth);
            let mut same =
                plan.jobs.iter().enumerate().filter(|(_, job)| job.name == self.plan.jobs[nth].name);
            same.nth(earlier).map(|(place, _)| place)
        };
        (0..self.plan.jobs.len()).map(place).collect()
    }

    /// Returns true if a job must stop for the reload: it is not the same in the new plan, or was stopped for an earlier reload
    /// (R4), or is a coprocess (C6).
    pub(super) fn must_stop(&self, job: usize, status: &JobStatus) -> bool {
        if !self.is_reloading() || self.reloading.requested {
            return false;
        }
        if status.stop_reason == Some(StopReason::Reload) || self.has_old_variables(job, status) {
            return true;
        }
        let plan = &self.versions[self.reloading.version].plan;
        let same_job = self.same_jobs(plan)[job];
        !same_job.is_some_and(|same_job| is_kept(&self.plan.jobs[job], &plan.jobs[same_job]))
    }

    /// Returns true if the reload is to replace a process because of what actions have set since it was started. A job
    /// that runs at each event or tick gets the new variables anyway.
    fn has_old_variables(&self, job: usize, status: &JobStatus) -> bool {
        let when = &self.plan.jobs[job].when;
        let runs = matches!(status.state, State::Starting | State::Running) && status.stop_reason.is_none();
        let run = self.jobs[job].run.as_ref().filter(|run| runs && !run.outlived);
        self.reloading.renews_variables
            && when.repeat() == Repeat::Once
            && !when.is_periodic()
            && run.is_some_and(|run| run.variables != self.variables)
    }

    /// Returns true if a reload waits for the completion of a job: it must stop, or it is unreachable and gets a new
    /// generation.
    fn is_awaited(&self, job: usize, after: &[JobStatus]) -> bool {
        if self.must_stop(job, &after[job]) {
            return true;
        }
        let another = || {
            self.versions[self.reloading.version].plan != *self.plan
                || (0..after.len()).any(|job| self.must_stop(job, &after[job]))
        };
        after[job].stop_reason == Some(StopReason::Unreachable) && self.is_reloading() && another()
    }

    /// Finds the jobs that the reload has waited for long enough, before this part of a step.
    pub(super) fn find_late_jobs(&mut self) {
        self.reloading.late.clear();
        if self.reloading.due.is_some_and(|due| if self.exact { due == self.now } else { due <= self.now }) {
            let late = (0..self.jobs.len()).filter(|job| self.is_awaited(*job, &self.previous));
            self.reloading.late = late.collect();
        }
    }

    pub(super) fn is_late_for_reload(&self, job: usize) -> bool {
        self.reloading.late.contains(&job)
    }

    /// The new plan takes effect.
    pub(super) fn switch_plan(&mut self, moves: &Moves, core: &Core) -> Check {
        if !self.is_reloading() || self.phase != Phase::Running {
            return Err(self.violation("R3", "another plan takes effect without a request"));
        }
        let versions = self.versions;
        let plan = &versions[self.reloading.version].plan;
        if core.plan() != plan {
            return Err(self.violation("R3", "the plan in force is not the last one requested"));
        }
        let same_jobs = self.same_jobs(plan);
        let same = |watch| plan.watches.iter().position(|other| other == watch).map(WatchIx::at);
        let expected = Moves {
            jobs: same_jobs.iter().map(|same_job| same_job.map(JobIx::at)).collect(),
            watches: self.plan.watches.iter().map(same).collect(),
            files: Vec::new(),
            // The schedules have no locks.
            locks: Vec::new(),
        };
        if *moves != expected {
            return Err(self.violation("R3", format!("the new places {moves:?} are wrong")));
        }
        for job in (0..self.jobs.len()).filter(|job| self.is_awaited(*job, &self.previous)) {
            if !self.previous[job].state.has_ended() || self.jobs[job].run.is_some() {
                return self.job_violation("R3", job, "the new plan takes effect before it has stopped");
            }
        }
        let changes = self.changes(&same_jobs, plan);
        let old = std::mem::replace(&mut self.watches, vec![Answers::default(); plan.watches.len()]);
        for (old, to) in old.into_iter().zip(&moves.watches) {
            if let Some(to) = to {
                self.watches[to.index()] = old;
            }
        }
        let (old, kept) = (self.plan, self.move_jobs(&same_jobs, plan));
        (self.reloading.moved, self.reloading.changing) = (Some(same_jobs), true);
        (self.version, self.plan) = (self.reloading.version, plan);
        self.reloading.done = Some(changes);
        self.reloading.due = None;
        self.adjust_jobs(old, &kept);
        Ok(())
    }

    /// The new index of a job that had this index at the start of the step.
    pub(super) fn place_now(&self, job: usize) -> Option<usize> {
        match &self.reloading.moved {
            Some(same_jobs) => same_jobs.get(job).copied().flatten(),
            None => Some(job),
        }
    }

    /// What a reload changes, by the names of jobs.
    fn changes(&self, same_jobs: &[Option<usize>], plan: &Plan) -> Changes {
        let mut changes = Changes::default();
        for (old, _) in self.plan.jobs.iter().zip(same_jobs).filter(|(_, same_job)| same_job.is_none()) {
            changes.stopped.push(old.name.clone());
        }
        for (nth, job) in plan.jobs.iter().enumerate() {
            let list = match same_jobs.iter().position(|same_job| *same_job == Some(nth)) {
                None => &mut changes.started,
                Some(old) if self.must_stop(old, &self.previous[old]) => &mut changes.restarted,
                Some(old) if self.plan.jobs[old] == *job => &mut changes.kept,
                Some(_) => &mut changes.adjusted,
            };
            list.push(job.name.clone());
        }
        changes
    }

    /// Moves the model of each job to its new index. Jobs that start with the reload have a new generation. Returns the old and
    /// new index of the others.
    fn move_jobs(&mut self, same_jobs: &[Option<usize>], plan: &Plan) -> Vec<(usize, usize)> {
        let (mut jobs, mut seen, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let (mut before, mut previous) = (Vec::new(), Vec::new());
        for (nth, job) in plan.jobs.iter().enumerate() {
            let from = same_jobs.iter().position(|same_job| *same_job == Some(nth));
            let is_kept = from.filter(|from| {
                let ending = self.previous[*from].stop_reason;
                !self.must_stop(*from, &self.previous[*from]) && ending != Some(StopReason::Unreachable)
            });
            if let Some(from) = is_kept {
                let mut model = self.jobs[from].clone();
                // R5: a drain time that has begun stays as it is.
                if self.previous[from].stop_stage >= Some(StopStage::Drain) {
                    let stop_timeout = self.plan.stop_timeout;
                    model.drain =
                        model.drain.or_else(|| Some(self.plan.jobs[from].stop.drain.longest(stop_timeout)));
                }
                // W12: the health of a watch that has changed or is gone is unknown.
                for (holds, event) in model.holds.iter_mut().zip(job.when.patterns()) {
                    let Source::Watch(name) = &event.source else { continue };
                    let same = |watch: &Watch| watch.name == *name && self.plan.watches.contains(watch);
                    *holds &= event.code != Code::Healthy || plan.watches.iter().any(same);
                }
                jobs.push(model);
                seen.push(self.seen[from].clone());
                before.push(self.before[from]);
                previous.push(self.previous[from]);
                kept.push((from, nth));
                continue;
            }
            self.generations += 1;
            let model = match from {
                Some(from) => JobModel {
                    ran_just_before: false,
                    ..self.jobs[from].next_generation(job, self.now, self.generations)
                },
                None => JobModel { created: self.now, serial: self.generations, ..JobModel::new(job) },
            };
            let status = not_started(model.generation);
            jobs.push(model);
            seen.push(Seen { is_new: true, reloaded: true, ..Seen::default() });
            before.push(status);
            previous.push(status);
            self.reloading.starts_jobs = true;
        }
        (self.jobs, self.seen, self.before, self.previous) = (jobs, seen, before, previous);
        kept
    }

    /// R3, E4: `startup` for the jobs that start with a reload.
    pub(super) fn see_second_startup(&mut self) -> Check {
        if std::mem::take(&mut self.reloading.starts_jobs) {
            return Ok(());
        }
        Err(self.violation("E4", "a second startup"))
    }

    /// R3: a job that starts with a reload sees conditions that already hold and will not be sent again.
    pub(super) fn replay_conditions(&mut self, startup: u64, after: &[JobStatus]) {
        let plan = self.plan;
        for job in 0..self.jobs.len() {
            if !self.seen[job].reloaded {
                continue;
            }
            let when = &plan.jobs[job].when;
            let once = when.repeat() == Repeat::Once;
            let lasting = matches!(when.trigger, Trigger::All { .. });
            for (nth, pattern) in when.patterns().iter().enumerate() {
                // A job that names an event twice runs once for it.
                let twice = !lasting && when.patterns()[..nth].contains(pattern);
                if twice || !self.holds_already(pattern, once, after) {
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
                self.see_queued(job, None, pattern.code);
            }
        }
    }

    fn holds_already(&self, pattern: &EventPattern, once: bool, after: &[JobStatus]) -> bool {
        let code = pattern.code;
        match &pattern.source {
            Source::Global => code == Code::EnterMaintenance && self.maintenance,
            Source::Signal(_) | Source::File(_) | Source::Lock(_) => false,
            Source::Watch(name) => {
                let mut watches = self.plan.watches.iter().zip(&self.watches);
                matches!(code, Code::Healthy | Code::Changed)
                    && watches.any(|(watch, answers)| watch.name == *name && answers.is_healthy())
            }
            Source::Job(name) => {
                let mut named = (0..self.jobs.len()).filter(|nth| is_named(&self.plan.jobs[*nth], name));
                // W20: of replicas, some events must hold for all.
                match self.needs_all(name, code) {
                    true => named.all(|nth| self.job_holds_already(nth, code, true, after)),
                    false => named.any(|nth| self.job_holds_already(nth, code, once, after)),
                }
            }
        }
    }

    fn job_holds_already(&self, nth: usize, code: Code, once: bool, after: &[JobStatus]) -> bool {
        let (planned, model) = (&self.plan.jobs[nth], &self.jobs[nth]);
        // H11: the health of a job with `ready` is checked after the step.
        let healthy = if planned.ready.is_some() { after[nth].healthy } else { model.health_state };
        // It has run to its end, and does not run again.
        let ended = planned.exec.is_some()
            && model.runs > 0
            && model.run.is_none()
            && (once || model.stopped.is_some());
        // A job that starts with the same reload has sent nothing yet.
        !self.seen[nth].reloaded
            && match code {
                Code::Healthy | Code::BecameHealthy => healthy == Some(true),
                Code::Unhealthy | Code::BecameUnhealthy => healthy == Some(false),
                Code::ExitSuccess | Code::ExitFailed => ended && model.last_exit == Some(code),
                Code::Ready => model.run.as_ref().is_some_and(RunModel::is_ready),
                Code::CrashLoop => model.crash_looped && !Self::will_start_again(&self.previous[nth]),
                Code::Stopping => model.stopping.is_some(),
                Code::Stopped => model.stopped.is_some(),
                // A manual start has cancelled that.
                Code::TimerExpired => model.gave_up && !Self::will_start_again(&self.previous[nth]),
                _ => false,
            }
    }

    /// R3: the answer to a reload reports what it did.
    pub(super) fn see_reload_answer(&mut self, id: RequestId, answer: &Reply, phase: Phase) -> Check {
        match answer {
            Reply::Reloaded(changes) => {
                let done = self.reloading.done.take().unwrap_or_else(|| {
                    let plan = &self.versions[self.reloading.version].plan;
                    self.changes(&self.same_jobs(plan), plan)
                });
                let moved = self.version == self.reloading.version;
                if *changes != done || !moved {
                    return Err(self.violation(
                        "R3",
                        format!("the answer reports {changes:?}, but the reload did {done:?}"),
                    ));
                }
                self.reloading.done = Some(done);
            }
            Reply::Refused(_) if phase != Phase::Running => {}
            other => return Err(self.violation("R1", format!("{other:?} is not an answer to a reload"))),
        }
        // An action may request several reloads with the same number.
        if let Some(place) = self.reloading.requests.iter().position(|open| *open == id) {
            self.reloading.requests.remove(place);
        }
        if self.reloading.requests.is_empty() {
            self.reloading.due = None;
            self.reloading.renews_variables = false;
        }
        Ok(())
    }

    /// Every reload is answered as soon as possible, and the jobs that must stop for it do.
    pub(super) fn check_reloads(&mut self, after: &[JobStatus], phase: Phase) -> Check {
        if std::mem::take(&mut self.reloading.starts_jobs) {
            return Err(self.violation("R3", "a job must start with the reload, and there is no startup"));
        }
        if phase == Phase::Starting || !self.is_reloading() {
            return Ok(());
        }
        let waits = |job: usize| self.is_awaited(job, after) && !after[job].state.has_ended();
        if phase != Phase::Running || !(0..after.len()).any(waits) {
            return Err(self.violation("X1", "a reload has no answer"));
        }
        let awaited: Vec<usize> = (0..after.len()).filter(|job| waits(*job)).collect();
        // Hooks and actions of jobs that stopped earlier can change one more job.
        let begins_now = |job: &usize| self.before.get(*job).is_none_or(|was| was.stop_stage.is_none());
        if self.reloading.due.is_some_and(|due| due <= self.now) {
            for job in awaited.iter().filter(|job| !begins_now(job)) {
                let Some(run) = &self.jobs[*job].run else { continue };
                if run.killed.is_none() {
                    return self.job_violation(
                        "R3",
                        *job,
                        "it did not stop in time for the reload, and was not killed",
                    );
                }
            }
            self.reloading.due = None;
        }
        if self.reloading.due.is_none() && awaited.iter().any(begins_now) {
            self.reloading.due = Some(self.now + self.hook_time() + self.plan.stop_timeout);
        }
        for job in awaited {
            if after[job].stop_stage.is_none() {
                let what = format!("a reload waits for it, and it is {:?}", after[job].state);
                return self.job_violation("R3", job, &what);
            }
        }
        Ok(())
    }
}

/// Returns true if a job keeps its process in a reload. Coprocesses are restarted by every reload (C6).
fn is_kept(old: &Job, new: &Job) -> bool {
    old.role != Role::Coprocess && (old == new || is_adjusted(old, new))
}

/// R5: returns true if nothing that concerns the process has changed.
fn is_adjusted(old: &Job, new: &Job) -> bool {
    let instance = |job: &Job| job.service.clone().map(|service| (service.name, service.id, service.port));
    let mut same = old.clone();
    (same.health, same.service, same.stop) = (new.health.clone(), new.service.clone(), new.stop.clone());
    (same.restarts, same.backoff, same.output) = (new.restarts, new.backoff, new.output.clone());
    (same.on_failure, same.on_success) = (new.on_failure, new.on_success);
    same.groups.clone_from(&new.groups);
    same.success_codes.clone_from(&new.success_codes);
    (same.restart_on, same.start_limit) = (new.restart_on, new.start_limit);
    let has_lost_checks = old.health.is_some() && new.health.is_none();
    same == *new && instance(old) == instance(new) && !has_lost_checks
}

/// The status of a job that has not started.
fn not_started(generation: u64) -> JobStatus {
    JobStatus {
        state: State::Waiting,
        stop_stage: None,
        generation,
        created_after: EventId(0),
        run: None,
        pid: None,
        healthy: None,
        readiness: None,
        restarts: 0,
        last_exit: None,
        desired: DesiredService::Absent,
        stop_reason: None,
        reload_starts: false,
        deferred: false,
    }
}
