//! P6, P7, W4, W6, W14: the start of a run, and its cause.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::RunId;
use containerpilot_core::plan::{Job, Plan, Repeat, RequiredSource, Requirement, Restarts, Trigger};
use containerpilot_core::variables::ProcessEnvironment;
use containerpilot_core::{Phase, Time};
use containerpilot_simulation::world::pid_of;

use super::fixed_times::{EXEC_TIMEOUT, HOOK_TIMEOUT};
use super::model::RunModel;
use super::oracle::{Check, Oracle};
use super::replicas::is_named;
use super::stopping::is_hook;

impl Oracle<'_> {
    pub(super) fn see_spawn(&mut self, job: usize, run: RunId, environment: &ProcessEnvironment) -> Check {
        let planned = &self.plan.jobs[job];
        if self.jobs[job].run.is_some() {
            return self.job_violation("P6", job, "it has two processes");
        }
        if self.jobs[job].stopped.is_some() {
            return self.job_violation("W9", job, "it is started although it is complete");
        }
        if planned.exec.action().is_some() {
            return self.job_violation("W19", job, "it is an action, and has a process");
        }
        if planned.exec.is_none() {
            return self.job_violation("W11", job, "it is started, and has no program");
        }
        if self.phase_before == Phase::Starting && self.startup.is_none() && self.shutdown.is_none() {
            return self.job_violation("E4", job, "it is started before the startup");
        }
        if self.phase == Phase::Killing || self.phase == Phase::Terminating && !is_hook(planned) {
            return self.job_violation("S4", job, "it is started when everything is stopped");
        }
        self.check_start_order(job)?;
        self.check_environment(job, environment)?;
        self.check_queued_start(job, environment)?;
        self.check_variables(job, environment)?;
        // A start that was decided before the shutdown, in the same part of a step, does not belong to it.
        let in_shutdown = matches!(self.phase, Phase::Stopping | Phase::Terminating);
        let why = environment.iter().find(|(name, _)| *name == "CONTAINERPILOT_EVENT").map(|(_, why)| why);
        let is_stop_event = why.is_some_and(|why| matches!(why, "stopping" | "stopped" | "shutdown"));
        let periodic = planned.when.is_periodic();
        let by_hand = self.seen[job].by_hand && why.is_none();
        if periodic && !by_hand && self.is_paused() && self.maintenance_before {
            return self.job_violation("C8", job, "it is started in maintenance mode");
        }
        let (now, generations) = (self.now, self.generations);
        let runs_as_hook = is_stop_event && is_hook(planned);
        let model = &mut self.jobs[job];
        if by_hand || periodic {
            model.triggered = Some(generations);
        }
        let off_schedule = by_hand && periodic && model.runs > 0;
        if by_hand {
            model.by_hand += 1;
            model.off_schedule += u64::from(off_schedule);
            (model.runs_since_manual_start, model.early, model.restart_due) = (0, Some(0), None);
            model.starts.clear();
        }
        if let Some(limit) = planned.start_limit.filter(|_| !periodic && !in_shutdown) {
            model.starts.retain(|start| now.since(*start) < limit.within);
            model.starts.push(now);
            if model.starts.len() > limit.count as usize {
                return self.job_violation("W14", job, "it is started more often than its start limit");
            }
        }
        let model = &mut self.jobs[job];
        if periodic && model.runs == 0 && (by_hand || model.resumed || planned.when.ticks_from_startup()) {
            // W18, C8: the first tick was at the startup, also if the run had to wait for a requirement or maintenance mode.
            let at_startup = !by_hand && !model.resumed;
            let startup = self.startup.filter(|_| at_startup).map(|startup| startup.max(model.created));
            model.ticks_from = startup.or(Some(now));
        }
        model.runs += 1;
        model.runs_since_manual_start += 1;
        model.runs_at_shutdown += u64::from(in_shutdown);
        model.run = Some(RunModel {
            run,
            variables: self.variables.clone(),
            exec_by: now + EXEC_TIMEOUT,
            started: None,
            off_schedule,
            by_stop_event: is_stop_event,
            is_hook: runs_as_hook,
            replaced: None,
            stopped: None,
            stop_timeout: self.plan.stop_timeout,
            escalated: 0,
            stop_adjusted: false,
            killed: None,
            first_killed: None,
            ticks_from: None,
            timed_out: false,
            killed_for_reload: false,
            outlived: false,
            notices: Vec::new(),
            ready_sent: 0,
        });
        self.see_work(job);
        self.seen[job].spawned += 1;
        self.check_own_trigger(job, environment, by_hand || is_stop_event)?;
        if in_shutdown && (!runs_as_hook || self.jobs[job].runs_at_shutdown > 1) {
            return self.job_violation(
                "S3",
                job,
                "it is started during the shutdown without a stop event, or twice",
            );
        }
        let most = match planned.when.repeat() {
            _ if periodic => 1,
            Repeat::Once | Repeat::Each | Repeat::EachQueued => self.jobs[job].fires,
        };
        // The first run after a lost source has no event (W18).
        let resumed = u64::from(self.jobs[job].resumed);
        let manual = if periodic { 0 } else { self.jobs[job].by_hand + resumed };
        if let Restarts::Limited(restarts) = planned.restarts
            && self.jobs[job].runs - self.jobs[job].off_schedule
                > (most + manual).saturating_mul(1 + restarts) + self.jobs[job].runs_before_adjustment
        {
            return self.job_violation("W6", job, &format!("it has {} runs", self.jobs[job].runs));
        }
        if !by_hand {
            self.check_time(job)?;
        }
        // A tick that had to wait for a requirement is not on time (W18).
        if periodic && planned.requires.is_empty() { self.check_tick(job) } else { Ok(()) }
    }

    /// When a run has reached its timeout (P5, S15).
    pub(super) fn timeout_of(planned: &Job, run: &RunModel) -> Option<Time> {
        let timeout = planned.timeout.or(run.is_hook.then_some(HOOK_TIMEOUT));
        timeout.zip(run.started).map(|(timeout, started)| started + timeout)
    }

    /// W14: a job that triggers itself is spaced by its back-off, after a first start without delay.
    fn check_own_trigger(
        &mut self,
        job: usize,
        environment: &ProcessEnvironment,
        other_cause: bool,
    ) -> Check {
        let planned = &self.plan.jobs[job];
        let source = environment.iter().find(|(name, _)| *name == "CONTAINERPILOT_EVENT_SOURCE");
        let by_itself = !other_cause
            && planned.when.repeat() == Repeat::Each
            && source.is_some_and(|(_, source)| self.is_name_of_one(source) && self.leads_to(job, source));
        let now = self.now;
        let model = &mut self.jobs[job];
        let last = model.triggered_itself.take();
        if !by_itself || model.runs < 2 {
            return Ok(());
        }
        model.triggered_itself = Some(now);
        if let (Some(last), Some(backoff)) = (last, planned.backoff)
            && now.since(last) < backoff.initial.min(backoff.max)
            && now.since(last) <= backoff.reset
        {
            return self.job_violation("W14", job, "it triggers itself without its back-off");
        }
        Ok(())
    }

    /// Returns false if several jobs have this name, also before a reload: it does not tell which of them has sent an event.
    fn is_name_of_one(&self, name: &str) -> bool {
        let is_shared = |plan: &Plan| plan.jobs.iter().filter(|job| job.name == name).count() > 1;
        !self.versions.iter().any(|version| is_shared(&version.plan))
    }

    /// Returns true if the job has this name, or its events start one that has, through jobs that run at every event.
    fn leads_to(&self, job: usize, name: &str) -> bool {
        let (mut seen, mut open) = (Vec::new(), vec![job]);
        while let Some(job) = open.pop() {
            if self.plan.jobs[job].name == name {
                return true;
            }
            if !seen.contains(&job) {
                seen.push(job);
                open.extend(self.followers(job));
            }
        }
        false
    }

    /// The jobs that run at every event of another one, other than its stop. With actions, all that may run because of it.
    fn followers(&self, job: usize) -> impl Iterator<Item = usize> + '_ {
        let source = &self.plan.jobs[job];
        let acts = self.plan.jobs.iter().any(|job| job.exec.action().is_some());
        // Jobs with the same name are not told apart.
        let same = (0..self.plan.jobs.len()).filter(|other| self.plan.jobs[*other].name == source.name);
        let affected: Vec<usize> = same.flat_map(|job| self.affected_by_action(job)).collect();
        self.plan.jobs.iter().enumerate().filter_map(move |(nth, job)| {
            let is_stop = |code| matches!(code, Code::Stopping | Code::Stopped);
            let mut patterns = job.when.patterns().iter();
            let follows = patterns.any(|event| {
                matches!(&event.source, Source::Job(name) if is_named(source, name))
                    && (acts || !is_stop(event.code))
            });
            let requires = |one: &Requirement| matches!(&one.source, RequiredSource::Job(name) if is_named(source, name));
            let follows_action = affected.contains(&nth) || acts && (follows || job.requires.iter().any(requires));
            (follows_action || (follows && job.when.repeat() == Repeat::Each)).then_some(nth)
        })
    }

    /// Returns true if a job can trigger itself (W14).
    pub(super) fn is_in_ring(&self, job: usize) -> bool {
        self.followers(job).any(|next| self.leads_to(next, &self.plan.jobs[job].name))
    }

    /// P7: the environment names exactly the running processes.
    fn check_environment(&self, job: usize, environment: &ProcessEnvironment) -> Check {
        if !self.exact {
            return Ok(());
        }
        let mut found: Vec<i32> = environment
            .iter()
            .filter(|(name, _)| name.ends_with("_PID"))
            .filter_map(|(_, pid)| pid.parse().ok())
            .collect();
        let running = self.jobs.iter().filter_map(|job| job.run.as_ref());
        let running = running.filter(|run| run.started.is_some() && !run.outlived);
        let mut known: Vec<i32> = running.map(|run| pid_of(run.run)).collect();
        found.sort_unstable();
        known.sort_unstable();
        if found != known {
            return self.job_violation(
                "P7",
                job,
                &format!("its environment has the pids {found:?} instead of {known:?}"),
            );
        }
        let name = environment.iter().find(|(name, _)| *name == "CONTAINERPILOT_JOB");
        if name.is_none_or(|(_, name)| name != self.plan.jobs[job].name) {
            return self.job_violation("P7", job, "its environment does not have its name");
        }
        Ok(())
    }

    /// W4: a tick is a multiple of the interval after the startup; a tick that had to wait follows an exit.
    fn check_tick(&self, job: usize) -> Check {
        let Trigger::Interval { every: interval, .. } = self.plan.jobs[job].when.trigger else {
            return Ok(());
        };
        let Some(from) = self.jobs[job].ticks_from else {
            return self.job_violation("W4", job, "it is started before the startup");
        };
        let since = self.now.since(from);
        let on_time = since.as_nanos().is_multiple_of(interval.as_nanos());
        let followed = self.seen[job].ended || self.seen[job].by_hand;
        let too_early =
            since.is_zero() && self.jobs[job].by_hand == 0 && !self.plan.jobs[job].when.runs_at_once();
        if too_early {
            return self.job_violation("C8", job, "its first run is not one interval after its event");
        }
        if self.exact && !on_time && !followed {
            return self.job_violation("W4", job, &format!("a tick {since:?} after the startup"));
        }
        Ok(())
    }
}
