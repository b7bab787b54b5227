//! P4–P7, W2, W4–W8: runs and their causes.

use std::time::Duration;

use containerpilot_core::effect::KillReason;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::RunId;
use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{
    Job, OnUnhealthy, Plan, Repeat, RequiredSource, Requirement, RestartOn, Restarts, Signal, StopScope,
    Trigger,
};
use containerpilot_core::variables::Environment;
use containerpilot_core::{JobStatus, Phase, State, StopStage, Time};
use containerpilot_simulation::world::pid_of;

use super::model::Said;
use super::replicas::is_named;
use super::stopping::is_hook;
use super::{ABANDON_TIMEOUT, Check, Oracle, Pending, RunModel, Seen};

/// How long a process may take to execute its program.
pub(super) const EXEC_TIMEOUT: Duration = Duration::from_secs(10);

impl Oracle<'_> {
    pub(super) fn see_spawn(&mut self, job: usize, run: RunId, environment: &Environment) -> Check {
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
        if matches!(self.phase, Phase::Terminating | Phase::Killing) {
            return self.job_violation("S4", job, "it is started after the time for hooks");
        }
        self.check_environment(job, environment)?;
        self.check_queued_start(job, environment)?;
        self.check_variables(job, environment)?;
        // A start that was decided before the shutdown, in the same part of a step, does not belong to it.
        let in_shutdown = self.phase == Phase::Stopping;
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
        if by_hand {
            model.by_hand += 1;
            model.off_schedule += u64::from(periodic && model.runs > 0);
            (model.runs_since_manual_start, model.early, model.restart_due) = (0, Some(0), None);
        }
        if let Some(limit) = planned.start_limit.filter(|_| !periodic && !in_shutdown) {
            if by_hand {
                model.starts.clear();
            }
            model.starts.retain(|start| now.since(*start) < limit.within);
            model.starts.push(now);
            if model.starts.len() > limit.count as usize {
                return self.job_violation("W14", job, "it is started more often than its start limit");
            }
        }
        let model = &mut self.jobs[job];
        if periodic && model.runs == 0 && (by_hand || model.resumed || planned.when.ticks_from_startup()) {
            // W18: a first tick that had to wait for a requirement was at the startup.
            let waited = !planned.requires.is_empty() && !by_hand && !model.resumed;
            let startup = self.startup.filter(|_| waited).map(|startup| startup.max(model.created));
            model.ticks_from = startup.or(Some(now));
        }
        model.runs += 1;
        model.runs_since_manual_start += 1;
        model.runs_at_shutdown += u64::from(in_shutdown);
        model.run = Some(RunModel {
            run,
            spawned: now,
            started: None,
            is_hook: runs_as_hook,
            replaced: None,
            stopped: None,
            stop_timeout: self.plan.stop_timeout,
            escalated: 0,
            killed: None,
            first_killed: None,
            timed_out: false,
            killed_for_reload: false,
            said: Said::default(),
        });
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
                > (most + manual).saturating_mul(1 + restarts)
        {
            return self.job_violation("W6", job, &format!("it has {} runs", self.jobs[job].runs));
        }
        if planned.when.cron().is_some() && !by_hand {
            self.check_time(job)?;
        } else if planned.when.cron().is_some() && self.jobs[job].runs == 1 {
            self.begin_times(job);
        }
        // A tick that had to wait for a requirement is not on time (W18).
        if periodic && planned.requires.is_empty() { self.check_tick(job) } else { Ok(()) }
    }

    /// W14: a job that triggers itself is spaced by its back-off, after a first start without delay.
    fn check_own_trigger(&mut self, job: usize, environment: &Environment, other_cause: bool) -> Check {
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
        self.plan.jobs.iter().enumerate().filter_map(move |(nth, job)| {
            let is_stop = |code| matches!(code, Code::Stopping | Code::Stopped);
            let mut patterns = job.when.patterns().iter();
            let follows = patterns.any(|event| {
                matches!(&event.source, Source::Job(name) if is_named(source, name))
                    && (acts || !is_stop(event.code))
            });
            let requires = |one: &Requirement| matches!(&one.source, RequiredSource::Job(name) if is_named(source, name));
            let follows_action = acts && (follows || job.requires.iter().any(requires));
            (follows_action || (follows && job.when.repeat() == Repeat::Each)).then_some(nth)
        })
    }

    /// Returns true if a job can trigger itself (W14).
    pub(super) fn is_in_ring(&self, job: usize) -> bool {
        self.followers(job).any(|next| self.leads_to(next, &self.plan.jobs[job].name))
    }

    /// P7: the environment names exactly the running processes.
    fn check_environment(&self, job: usize, environment: &Environment) -> Check {
        if !self.exact {
            return Ok(());
        }
        let mut found: Vec<i32> = environment
            .iter()
            .filter(|(name, _)| name.ends_with("_PID"))
            .filter_map(|(_, pid)| pid.parse().ok())
            .collect();
        let running = self.jobs.iter().filter_map(|job| job.run.as_ref());
        let mut known: Vec<i32> =
            running.filter(|run| run.started.is_some()).map(|run| pid_of(run.run)).collect();
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

    /// S9: only stop signals may be for the process alone, and never SIGKILL.
    pub(super) fn see_scope(
        &self,
        run: RunId,
        signal: Signal,
        scope: StopScope,
        reason: KillReason,
    ) -> Check {
        let Some(job) = self.job_of(run) else { return Ok(()) };
        let is_stop = matches!(reason, KillReason::Stop | KillReason::Unhealthy | KillReason::Escalation);
        let alone = is_stop && signal != Signal::KILL && self.plan.jobs[job].stop.scope == StopScope::Process;
        if alone == (scope == StopScope::Process) {
            return Ok(());
        }
        self.job_violation("S9", job, &format!("signal {} for {reason:?} to {scope:?}", signal.0))
    }

    /// A signal is sent to a run. The reason it gives must be true.
    pub(super) fn see_signal(
        &mut self,
        run: RunId,
        signal: Signal,
        reason: KillReason,
        phase: Phase,
    ) -> Check {
        let Some(job) = self.job_of(run) else {
            return Err(self.violation("P4", "a signal to a run that has ended"));
        };
        let (plan, now, exact) = (self.plan, self.now, self.exact);
        let planned = &plan.jobs[job];
        let stopping = self.jobs[job].stopping.is_some();
        // Before it started to stop, in the same step, it was right to replace it.
        let was_up = self.previous[job].stop_stage.is_none();
        let unhealthy = self.seen[job].unhealthy > 0
            && planned.health.as_ref().is_some_and(|health| health.on_unhealthy == OnUnhealthy::Restart);
        let (runs, from) = (self.jobs[job].runs - self.jobs[job].off_schedule, self.jobs[job].ticks_from);
        let late_for_reload = self.is_late_for_reload(job);
        let kill_after = planned.stop.kill_after.unwrap_or(Duration::MAX).min(plan.stop_timeout);
        let asked = |model: &RunModel| model.stopped.is_some() || model.killed.is_some() || model.is_hook;
        let all_asked = self.jobs.iter().filter_map(|job| job.run.as_ref()).all(asked);
        let (stopping_event, shutdown_event) = (self.jobs[job].stopping, self.shutdown);
        let stopped_before = shutdown_event
            .is_none_or(|(_, shutdown)| stopping_event.is_none_or(|(_, stopping)| stopping < shutdown));
        let budget = self.stop_budget();
        let Some(model) = &mut self.jobs[job].run else { return Ok(()) };
        let same = |due: Time| if exact { due == now } else { due <= now };
        let (rule, right) = match reason {
            KillReason::Stop => ("S2", signal == planned.stop.signal && stopping && model.stopped.is_none()),
            KillReason::Unhealthy => {
                let first = model.replaced.is_none() && model.stopped.is_none();
                ("H8", signal == planned.stop.signal && unhealthy && was_up && first)
            }
            KillReason::Timeout => {
                let timeout = planned.timeout.zip(model.started);
                let timeout = timeout.is_some_and(|(timeout, started)| same(started + timeout));
                let met = met_tick_at(planned, from, runs, model).is_some_and(same);
                ("P5", signal == Signal::KILL && (timeout || met) && !model.timed_out)
            }
            KillReason::StopTimeout => {
                let mut asked = [model.replaced, model.stopped].into_iter().flatten();
                let late = asked.any(|asked| same(asked + model.stop_timeout)) || late_for_reload;
                // S4: not before every process was sent its stop signal, unless it was stopped before the shutdown, or has a
                // time of its own (S9).
                let own_time = planned.stop.kill_after.is_some_and(|time| time < plan.stop_timeout);
                let in_order = all_asked || stopped_before || own_time;
                ("S2", signal == Signal::KILL && late && in_order && model.started.is_some())
            }
            KillReason::HookTimeout => {
                let due = budget.is_some_and(|budget| same(budget.signal_by));
                let hook = model.is_hook && model.stopped.is_none() && model.started.is_some();
                ("S4", signal == Signal::KILL && phase == Phase::Terminating && due && hook && all_asked)
            }
            KillReason::KillAll => {
                let at_once = self.killing == Some(now) && model.started.is_some();
                // A second stop signal kills without asking (S1).
                let by_timeout = exact && budget.is_some_and(|budget| budget.kill_by <= now);
                let in_order = !by_timeout || all_asked;
                ("S4", signal == Signal::KILL && phase == Phase::Killing && at_once && in_order)
            }
            KillReason::Escalation => {
                // The times of all signals follow from the first one.
                let asked = model.stopped.or(model.replaced);
                let next = planned.stop.escalation.get(model.escalated);
                let sent = &planned.stop.escalation[..planned.stop.escalation.len().min(model.escalated)];
                let elapsed: Duration = sent.iter().map(|sent| sent.after).sum();
                let right = next.zip(asked).is_some_and(|(next, asked)| {
                    let due = asked + elapsed + next.after;
                    signal == next.signal && same(due) && elapsed + next.after < model.stop_timeout
                });
                ("S9", right)
            }
            KillReason::ByHand => ("X2", true),
            KillReason::Forwarded => ("S7", plan.pass_signals),
        };
        match reason {
            KillReason::Stop => {
                (model.stopped, model.stop_timeout, model.escalated) = (Some(now), kill_after, 0);
            }
            KillReason::Unhealthy => {
                (model.replaced, model.stop_timeout, model.escalated) = (Some(now), kill_after, 0);
            }
            // A reload may have changed the global stop timeout.
            KillReason::Escalation => {
                let asked = model.stopped.or(model.replaced).unwrap_or(now);
                (model.stop_timeout, model.escalated) =
                    (kill_after.max(now.since(asked)), model.escalated + 1);
            }
            KillReason::Timeout => model.timed_out = true,
            KillReason::StopTimeout => model.killed_for_reload |= late_for_reload,
            KillReason::HookTimeout | KillReason::KillAll | KillReason::ByHand | KillReason::Forwarded => {}
        }
        if signal == Signal::KILL {
            model.killed = Some(now);
            model.first_killed = model.first_killed.or(Some(now));
        }
        if !right {
            let what = format!("signal {} for {reason:?} without a reason, or twice", signal.0);
            return self.job_violation(rule, job, &what);
        }
        Ok(())
    }

    /// P3: a start is given up, because it takes too long or because its run is killed. The run ends with that.
    pub(super) fn see_cancel_start(&mut self, run: RunId) -> Check {
        let (now, exact) = (self.now, self.exact);
        let same = |due: Time| if exact { due == now } else { due <= now };
        let Some(job) = self.job_of(run) else {
            return Err(self.violation("P3", "a start is given up that is not in progress"));
        };
        let Some(model) = &self.jobs[job].run else { return Ok(()) };
        if model.started.is_some() {
            return self.job_violation("P3", job, "its start is given up, although its program was executed");
        }
        let exec_due = model.spawned + EXEC_TIMEOUT;
        let timed_out = same(exec_due);
        let asked = model.stopped.map(|asked| asked + model.stop_timeout);
        let hook = self.stop_budget().filter(|_| model.is_hook).map(|budget| budget.signal_by);
        let due = [asked, hook].into_iter().flatten().filter(|due| same(*due)).min();
        let killed = due.is_some() || self.killing == Some(now) || self.is_late_for_reload(job);
        if !timed_out && !killed {
            return self.job_violation("P3", job, "its start is given up without a reason");
        }
        let was_stopping = self.previous[job].stop_stage == Some(StopStage::Terminate);
        self.see_end(run, StartErrorKind::Other.status(), false, false);
        // A run that is killed has been told to stop. An input counts before a deadline, and an earlier deadline before
        // a later one.
        let killed_first = !timed_out || self.killing == Some(now) || due.is_some_and(|due| due < exec_due);
        self.jobs[job].was_terminated = was_stopping || killed && killed_first;
        Ok(())
    }

    pub(super) fn see_kill_orphans(&mut self, run: RunId, phase: Phase) -> Check {
        let Some(due) = self.orphans.remove(&run) else {
            return Err(
                self.violation("P4", format!("run {} has no orphans, or they were killed already", run.0))
            );
        };
        let ending = matches!(phase, Phase::Killing | Phase::Exited);
        if due > self.now && !ending {
            return Err(self.violation("P4", format!("the orphans of run {} are killed too early", run.0)));
        }
        Ok(())
    }

    /// P6: a run is abandoned if SIGKILL has not ended it in time. It counts as an exit on SIGKILL.
    pub(super) fn see_abandon(&mut self, run: RunId) -> Check {
        let Some(job) = self.job_of(run) else {
            return Err(self.violation("P6", format!("run {} is abandoned, and is over already", run.0)));
        };
        let killed = self.jobs[job].run.as_ref().and_then(|run| run.first_killed);
        let due = killed.map(|killed| killed + ABANDON_TIMEOUT);
        if due.is_none_or(|due| if self.exact { due != self.now } else { due > self.now }) {
            return self.job_violation("P6", job, "it is abandoned at the wrong time");
        }
        self.see_end(run, ExitStatus::Signal(Signal::KILL), false, true);
        Ok(())
    }

    pub(super) fn check_runs(&mut self, job: usize, after: &[JobStatus], phase: Phase) -> Check {
        let status = &after[job];
        self.check_limits(job, status)?;
        if self.plan.jobs[job].exec.action().is_some() && self.seen[job].by_hand {
            // W14: in a ring, one more may be performed later.
            self.jobs[job].by_hand += u64::from(self.seen[job].acted + 1);
        }
        if !self.exact {
            return Ok(());
        }
        if let Some((run, due)) = self.orphans.iter().find(|(_, due)| **due < self.now)
            && phase != Phase::Exited
        {
            return Err(
                self.violation("P4", format!("the orphans of run {} were not killed at {due:?}", run.0))
            );
        }
        self.check_timeouts(job, status)?;
        let up = phase == Phase::Running && status.stop_stage.is_none();
        if !up {
            (self.jobs[job].restart_due, self.jobs[job].pending) = (None, Pending::No);
            self.jobs[job].queue.clear();
            return Ok(());
        }
        let planned = &self.plan.jobs[job];
        if let (Some(startup), Some(timeout)) = (self.startup, planned.when.timeout)
            && self.may_give_up(job)
            && status.state == State::Waiting
            && startup.max(self.jobs[job].created) + timeout < self.now
        {
            return self.job_violation("W5", job, "it does not give up at its start timeout");
        }
        // W18: a start may have to wait, so its time does not follow from its event or tick alone.
        if planned.exec.is_none() || !planned.requires.is_empty() {
            return Ok(());
        }
        if planned.exec.action().is_some() {
            return self.check_action(job, status);
        }
        match (&planned.when.trigger, planned.when.repeat()) {
            (Trigger::Interval { every: interval, .. }, _) => self.check_ticks(job, *interval),
            (Trigger::Cron { .. }, _) => self.check_times(job),
            (Trigger::Manual, _) => self.check_each(job, status),
            _ if planned.when.queues_events() => self.check_queue(job, status),
            // A hook runs once for each generation of its job.
            (_, Repeat::Once) if self.runs_once_per_generation(job) => self.check_each(job, status),
            (_, Repeat::Once) => self.check_once(job, status),
            (_, Repeat::Each | Repeat::EachQueued) => self.check_each(job, status),
        }
    }

    fn check_limits(&self, job: usize, status: &JobStatus) -> Check {
        match self.plan.jobs[job].restarts {
            Restarts::Limited(most) if status.restarts > most => {
                self.job_violation("W6", job, &format!("it was restarted {} times", status.restarts))
            }
            _ => Ok(()),
        }
    }

    fn check_timeouts(&self, job: usize, status: &JobStatus) -> Check {
        let Some(run) = &self.jobs[job].run else { return Ok(()) };
        let planned = &self.plan.jobs[job];
        if let (Some(started), Some(timeout)) = (run.started, planned.timeout)
            && started + timeout < self.now
            && !run.timed_out
            && !run.killed_for_reload
            && !(run.is_hook && run.killed.is_some())
            && self.killing.is_none()
        {
            return self.job_violation("P5", job, "it was not killed at its timeout");
        }
        if run.started.is_none() && run.spawned + EXEC_TIMEOUT < self.now {
            return self.job_violation("P3", job, "its start takes too long, and is not given up");
        }
        if run.first_killed.is_some_and(|killed| killed + ABANDON_TIMEOUT < self.now)
            && self.killing.is_none()
        {
            return self.job_violation("P6", job, "SIGKILL has not ended it, and it is not abandoned");
        }
        // A stop while it is being replaced starts the stop timeout again.
        let replaced = run.replaced.filter(|_| status.stop_stage.is_none());
        if let Some(asked) = run.stopped.or(replaced)
            && asked + run.stop_timeout < self.now
            && run.killed.is_none()
        {
            return self.job_violation(
                "H8",
                job,
                "it did not exit within its stop timeout, and was not killed",
            );
        }
        let escalation = &planned.stop.escalation;
        let due: Duration = escalation.iter().take(run.escalated + 1).map(|next| next.after).sum();
        if let Some(asked) = run.stopped.or(replaced)
            && run.escalated < escalation.len()
            && due < run.stop_timeout
            && asked + due < self.now
            && run.killed.is_none()
        {
            return self.job_violation("S9", job, "it did not get the next signal of its escalation");
        }
        Ok(())
    }

    /// What was observed of a job, without what belongs to the last generation.
    fn seen_in_this_generation(&self, job: usize) -> Seen {
        let mut seen = self.seen[job].clone();
        if seen.is_new {
            (seen.had_run, seen.ended) = (false, false);
        }
        seen
    }

    /// W2, W8: the first event starts it at once; after that only restarts do.
    fn check_once(&mut self, job: usize, status: &JobStatus) -> Check {
        let planned = &self.plan.jobs[job];
        let (seen, now) = (self.seen_in_this_generation(job), self.now);
        let model = &mut self.jobs[job];
        if model.fires > 0 && model.runs == 0 {
            return self.job_violation("W2", job, "the first event does not start it");
        }
        if seen.spawned > 0
            && model.runs > 1
            && model.restart_due != Some(now)
            && !seen.ended
            && !seen.by_hand
        {
            return self.job_violation("W8", job, "it is restarted at the wrong time");
        }
        if seen.ended {
            let more = follows(planned, model.run_failed)
                && match planned.restarts {
                    Restarts::Unlimited => true,
                    Restarts::Limited(most) => {
                        model.runs_since_manual_start - u64::from(seen.spawned) <= most
                    }
                };
            let ran = now.since(seen.ended_started.unwrap_or(now));
            let delay = delay_after(planned, ran, model.early.get_or_insert(0));
            model.restart_due = more.then(|| now + delay);
            if seen.spawned > 0 && model.restart_due != Some(now) {
                return self.job_violation(
                    "W8",
                    job,
                    &format!("it is restarted at once instead of after {delay:?}"),
                );
            }
        }
        let model = &mut self.jobs[job];
        if seen.spawned > 0 {
            model.restart_due = None;
        }
        if model.restart_due.is_some_and(|due| due < now) {
            return self.job_violation("W8", job, "it is not restarted");
        }
        if model.runs > 0 && model.run.is_none() && model.restart_due.is_none() {
            return self.job_violation(
                "W9",
                job,
                &format!("it can never run again, and is {:?}", status.state),
            );
        }
        Ok(())
    }

    /// W7: no event is lost, and none counts twice.
    fn check_each(&mut self, job: usize, status: &JobStatus) -> Check {
        let (seen, before) = (self.seen_in_this_generation(job), self.before[job]);
        let pending = self.jobs[job].pending;
        let restarted = status.restarts > before.restarts || before.state == State::Delaying;
        let must_run = match (seen.had_run, seen.ended) {
            (false, _) => seen.fired > 0,
            (true, true) => seen.fired > 0 || pending == Pending::Yes,
            (true, false) => false,
        };
        let in_ring = self.is_in_ring(job);
        // A reload may end the ring in the step of an event that is delayed because of it.
        let was_in_ring = in_ring || self.jobs[job].early.is_none();
        let delayed = was_in_ring && status.state == State::Delaying;
        if must_run && seen.spawned == 0 && !delayed {
            return self.job_violation("W7", job, "an event is lost");
        }
        let planned = &self.plan.jobs[job];
        let more = follows(planned, self.jobs[job].run_failed)
            && match planned.restarts {
                Restarts::Unlimited => true,
                Restarts::Limited(most) => before.restarts < most,
            };
        if seen.ended && more && seen.spawned == 0 && status.state != State::Delaying {
            return self.job_violation("W6", job, "it is not restarted");
        }
        let remembered = seen.ended && pending != Pending::No;
        if seen.spawned > 0 && seen.fired == 0 && !remembered && !restarted && !seen.by_hand {
            return self.job_violation("W7", job, "it runs without an event");
        }
        if in_ring {
            self.jobs[job].early = None;
        } else {
            self.check_spacing(job, status)?;
        }
        self.jobs[job].pending = match (seen.had_run, seen.ended) {
            // An event that waits for the delay, and those that come until then, are served by one run (W14).
            _ if delayed => Pending::No,
            (true, false) if seen.fired > 0 => Pending::Yes,
            (true, false) => pending,
            _ if in_ring && seen.fired > 0 => Pending::Perhaps,
            (true, true) if seen.fired == 0 => Pending::No,
            (true, true) if seen.fired > 1 || pending == Pending::Yes => Pending::Yes,
            (false, _) if seen.fired > 0 && seen.by_hand => Pending::Perhaps,
            (false, _) if seen.fired > 1 => Pending::Yes,
            _ if seen.fired == 1 && restarted => Pending::Perhaps,
            (true, true) if pending == Pending::Perhaps => Pending::Perhaps,
            _ => Pending::No,
        };
        Ok(())
    }

    /// W8: the back-off also holds for restarts between events.
    fn check_spacing(&mut self, job: usize, status: &JobStatus) -> Check {
        let (seen, before, now) = (self.seen_in_this_generation(job), self.before[job], self.now);
        let at_once =
            seen.spawned > 0 && status.restarts > before.restarts && before.state != State::Delaying;
        let late = before.state == State::Delaying && seen.spawned > 0 && status.restarts > before.restarts;
        let model = &mut self.jobs[job];
        if seen.spawned > 0 && !at_once && !late {
            // An event resets the count.
            model.early = Some(0);
        }
        let Some(early) = &mut model.early else { return Ok(()) };
        if seen.ended && (at_once || status.state == State::Delaying) {
            let ran = now.since(seen.ended_started.unwrap_or(now));
            let delay = delay_after(&self.plan.jobs[job], ran, early);
            model.restart_due = Some(now + delay);
            if at_once && !delay.is_zero() {
                return self.job_violation(
                    "W8",
                    job,
                    &format!("it is restarted at once instead of after {delay:?}"),
                );
            }
        }
        if late && model.restart_due != Some(now) {
            return self.job_violation("W8", job, "it is restarted at the wrong time");
        }
        if status.state == State::Delaying && model.restart_due.is_none_or(|due| due < now) {
            return self.job_violation("W8", job, "it is not restarted");
        }
        Ok(())
    }

    /// W4: no tick is missed while it waits, and a run that is still running at a tick has met its timeout.
    fn check_ticks(&self, job: usize, interval: Duration) -> Check {
        let planned = &self.plan.jobs[job];
        let model = &self.jobs[job];
        let at_startup = self.startup.filter(|_| planned.when.ticks_from_startup());
        let Some(startup) = model.ticks_from.or(at_startup) else { return Ok(()) };
        let ticks = model.runs - model.off_schedule;
        if let Some(run) = &model.run {
            if met_tick_at(planned, Some(startup), ticks, run).is_some_and(|met| met < self.now)
                && !run.timed_out
            {
                return self.job_violation(
                    "W4",
                    job,
                    "the next tick is due, and the last run was not killed",
                );
            }
            return Ok(());
        }
        let count = self.now.since(startup).as_nanos() / interval.as_nanos();
        let last = startup + interval * u32::try_from(count).unwrap_or(u32::MAX);
        let idle_since = model.ended_at.unwrap_or(startup).max(self.paused_at.unwrap_or(startup));
        // C8: one that was paused, or that counts its ticks from an event, runs first at the next tick after that.
        let from = if planned.when.ticks_from_startup() { self.paused_at } else { Some(idle_since) };
        let first_missed = || from.is_none_or(|from| from + interval < self.now);
        if if model.runs == 0 { first_missed() } else { idle_since < last } {
            return self.job_violation("W4", job, "a tick was missed");
        }
        if let Restarts::Limited(most) = planned.restarts
            && ticks > most
        {
            return self.job_violation("W9", job, "it has had all its ticks, and is not complete");
        }
        Ok(())
    }
}

/// W13: returns true if a restart follows a run with this result.
fn follows(planned: &Job, failed: bool) -> bool {
    match planned.restart_on {
        RestartOn::Exit => true,
        RestartOn::Failure => failed,
        RestartOn::Success => !failed,
    }
}

/// W8: the delay of the next run.
fn delay_after(planned: &Job, ran: Duration, early: &mut u32) -> Duration {
    let Some(backoff) = &planned.backoff else { return Duration::ZERO };
    if ran > backoff.reset {
        *early = 0;
    }
    *early += 1;
    let mut delay = backoff.initial;
    for _ in 2..*early {
        delay = (delay * 2).min(backoff.max);
    }
    if *early == 1 { Duration::ZERO } else { delay.min(backoff.max) }
}

/// When a run of a periodic job meets the next tick, if that ends it (W4).
fn met_tick_at(planned: &Job, startup: Option<Time>, runs: u64, run: &RunModel) -> Option<Time> {
    let Trigger::Interval { every: interval, .. } = planned.when.trigger else { return None };
    if planned.timeout.is_none_or(|timeout| timeout > interval) {
        return None;
    }
    let startup = startup?;
    let started = run.started?;
    if let Restarts::Limited(most) = planned.restarts
        && runs > most
    {
        return None;
    }
    // The first tick after its start. A start at the time of a tick belongs to that tick, or has missed it.
    let count = started.since(startup).as_nanos() / interval.as_nanos() + 1;
    Some(startup + interval * u32::try_from(count).unwrap_or(u32::MAX))
}
