//! E1–E5, W2, W12: events, and the jobs that they start.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::input::Input;
use containerpilot_core::plan::{EventPattern, FirstTick, Plan, Repeat, Restarts, StartLimit, Trigger};
use containerpilot_core::state::journal::{Detail, Event, Origin};
use containerpilot_core::{Core, JobStatus, Phase, State, StopReason};

use super::oracle::{Check, Oracle};
use super::replicas::is_named;

impl Oracle<'_> {
    /// Returns true if the journal has events that were not seen yet.
    pub(super) fn has_new_events(&self, core: &Core) -> bool {
        core.journal().events().next_back().is_some_and(|event| event.id.0 > self.last_event)
    }

    /// Reads the new events from the journal.
    pub(super) fn take_events(&mut self, core: &Core) -> Check {
        let last = self.last_event;
        let known = self.events.len();
        let journal = core.journal().events().rev();
        self.events.extend(journal.take_while(|event| event.id.0 > last).copied());
        self.events[known..].reverse();
        for event in &self.events[known..] {
            if event.id.0 != self.last_event + 1 {
                return Err(self.violation("E2", format!("event {} follows {}", event.id.0, self.last_event)));
            }
            if event.cause.is_some_and(|cause| cause >= event.id) || event.at != self.now {
                return Err(self.violation("E2", format!("event {} comes before its cause", event.id.0)));
            }
            self.last_event = event.id.0;
        }
        Ok(())
    }

    pub(super) fn see_event(&mut self, event: &Event, input: Option<&Input>, after: &[JobStatus]) -> Check {
        for (job, status) in after.iter().enumerate() {
            if event.id > status.created_after {
                self.see_new_generation(job, status)?;
            }
        }
        match (event.origin, event.code) {
            (Origin::Global, Code::Startup) if self.startup.is_some() => self.see_second_startup()?,
            (Origin::Global, Code::Startup) => self.startup = Some(self.now),
            (Origin::Global, Code::Shutdown) => {
                if self.shutdown.replace((self.now, event.id.0)).is_some() {
                    return Err(self.violation("S1", "a second shutdown"));
                }
                self.see_shutdown(input);
                for (seen, job) in self.seen.iter_mut().zip(&self.plan.jobs) {
                    let restarts = seen.acted > 0 && job.restarts != Restarts::Limited(0);
                    let waits = seen.fired > seen.acted || seen.by_hand;
                    seen.acts_before_shutdown = job.exec.action().is_some() && (waits || restarts);
                }
            }
            (Origin::Global, code) => {
                let on = code == Code::EnterMaintenance;
                // Before the startup it starts without an event.
                if self.maintenance == on && self.phase_before != Phase::Starting {
                    return Err(self.violation("D8", "maintenance mode starts or ends twice"));
                }
                self.maintenance = on;
            }
            (Origin::Lock(_), _) => {
                return Err(self.violation("D14", "an event of a lock that does not exist"));
            }
            (Origin::Job(job), code) => {
                self.see_job_event(job.index(), code, event, &after[job.index()])?;
            }
            (Origin::Watch(_) | Origin::File(_) | Origin::Signal(_) | Origin::Removed(_), _) => {}
        }
        let again = self.reloading.done.is_some() && event.code == Code::Startup;
        for job in 0..self.jobs.len() {
            // R3: a kept job does not see another startup.
            if again && !self.seen[job].reloaded {
                continue;
            }
            // W5: a job that gives up stops, and its own event does not start it.
            let gives_up = event.code == Code::TimerExpired
                && matches!(event.origin, Origin::Job(source) if source.index() == job);
            if self.fires(job, event, after) && !gives_up {
                self.see_fire(job, event.id.0, after);
                let source = match event.origin {
                    Origin::Job(source) => Some(self.plan.jobs[source.index()].name.clone()),
                    _ => None,
                };
                self.see_queued(job, source, event.code);
            }
        }
        if again {
            self.replay_conditions(event.id.0, after);
        }
        Ok(())
    }

    /// A job's trigger fires. A `once` job that has fired already ignores it.
    pub(super) fn see_fire(&mut self, job: usize, event: u64, after: &[JobStatus]) {
        if self.was_triggered_once(job, after) {
            if self.stop_event_sources(job).any(|source| self.is_started_by_action(source)) {
                self.jobs[job].fires += 1;
                self.seen[job].may_fire = true;
            }
            return;
        }
        let (generations, now) = (self.generations, self.now);
        let periodic = self.plan.jobs[job].when.is_periodic();
        let model = &mut self.jobs[job];
        if periodic {
            model.ticks_from = Some(now);
        }
        model.fires += 1;
        model.triggered = Some(generations);
        model.first_fire = model.first_fire.or(Some(event));
        self.seen[job].fired += 1;
    }

    /// W2: returns true if a `once` job has fired already. A hook fires once for each generation of its job (X2, R3).
    pub(super) fn was_triggered_once(&self, job: usize, after: &[JobStatus]) -> bool {
        let planned = &self.plan.jobs[job];
        let Some(triggered) = self.jobs[job].triggered.filter(|_| planned.when.repeat() == Repeat::Once)
        else {
            return false;
        };
        !self.stop_event_sources(job).any(|source| {
            let running = self.shutdown.is_none();
            self.jobs[source].serial > triggered || (running && Self::will_start_again(&after[source]))
        })
    }

    /// The jobs whose stop events a job waits for.
    fn stop_event_sources(&self, job: usize) -> impl Iterator<Item = usize> + '_ {
        let is_stop_event = |code: Code| matches!(code, Code::Stopping | Code::Stopped | Code::Shutdown);
        let patterns =
            self.plan.jobs[job].when.patterns().iter().filter(move |event| is_stop_event(event.code));
        patterns.flat_map(|event| {
            let named = |job: &usize| matches!(&event.source, Source::Job(name) if is_named(&self.plan.jobs[*job], name));
            (0..self.jobs.len()).filter(named)
        })
    }

    pub(super) fn see_job_event(
        &mut self,
        job: usize,
        code: Code,
        event: &Event,
        status: &JobStatus,
    ) -> Check {
        if self.jobs[job].stopped.is_some() {
            return self.job_violation("E3", job, &format!("{code} comes after `stopped`"));
        }
        match code {
            Code::Stopping => {
                if self.jobs[job].stopping.replace((self.now, event.id.0)).is_some() {
                    return self.job_violation("E3", job, "`stopping` comes twice");
                }
                let is_urgent = status.stop_reason == Some(StopReason::SourceGone);
                let default = is_urgent.then_some(self.plan.stop_timeout);
                self.jobs[job].hook_limit = self.plan.jobs[job].stop.hook_timeout.or(default);
                self.see_empty(job);
            }
            Code::Stopped => {
                if self.jobs[job].stopping.is_none() {
                    return self.job_violation("E3", job, "`stopped` comes before `stopping`");
                }
                self.jobs[job].stopped = Some(event.id.0);
                if !matches!(event.detail, Detail::Ended(outcome) if State::Ended(outcome) == status.state) {
                    return self.job_violation("X7", job, "`stopped` does not say how it ended");
                }
                self.see_complete(job, status);
            }
            Code::ExitSuccess | Code::ExitFailed => {
                self.see_action(job, code)?;
                let seen = &mut self.seen[job];
                seen.exit_events += 1;
                if seen.exit_events > seen.ends {
                    return self.job_violation("E3", job, "an exit event without an exit");
                }
                self.jobs[job].last_exit = Some(code);
                let failed = self.jobs[job].last_failure.is_some();
                if failed != (code == Code::ExitFailed) {
                    return self.job_violation("P3", job, &format!("{code} does not match its exit status"));
                }
            }
            Code::TimerExpired => {
                let since = self.startup.map(|startup| startup.max(self.jobs[job].created));
                let due = since.zip(self.plan.jobs[job].when.timeout).map(|(at, t)| at + t);
                let early = due.is_none_or(|due| due > self.now || (self.exact && due != self.now));
                if !self.may_give_up(job) || early {
                    return self.job_violation("W5", job, "it gives up before its start timeout");
                }
                self.jobs[job].gave_up = true;
            }
            Code::CrashLoop => {
                let limit = self.plan.jobs[job].start_limit;
                let (now, model) = (self.now, &mut self.jobs[job]);
                let recent = |limit: StartLimit| {
                    model.starts.iter().filter(|start| now.since(**start) < limit.within).count()
                };
                let reached = limit.is_some_and(|limit| recent(limit) >= limit.count as usize);
                (model.crash_looped, model.was_terminated) = (true, false);
                model.last_failure = Some(model.last_code.max(1));
                if !reached {
                    return self.job_violation("W14", job, "`crashLoop` before its start limit");
                }
            }
            Code::Healthy => self.seen[job].healthy += 1,
            Code::Unhealthy => self.seen[job].unhealthy += 1,
            Code::BecameHealthy | Code::BecameUnhealthy => {
                self.seen[job].changes.push(code);
                // H6: the heartbeats of a job that says when it is ready count from the time it became healthy, too.
                if code == Code::BecameHealthy && self.plan.jobs[job].ready.is_some() {
                    self.jobs[job].last_heartbeat = self.now;
                }
            }
            Code::Ready => return self.see_ready(job),
            other => return self.job_violation("E1", job, &format!("jobs do not send {other}")),
        }
        Ok(())
    }

    /// Returns true if an event fires the trigger of a job.
    pub(super) fn fires(&mut self, job: usize, event: &Event, after: &[JobStatus]) -> bool {
        let plan = self.plan;
        let matching: Vec<EventPattern> = plan.jobs[job]
            .when
            .patterns()
            .iter()
            .filter(|pattern| matches(plan, pattern, event.origin, event.code))
            .filter(|pattern| self.holds_for_group(&pattern.source, event, after))
            .cloned()
            .collect();
        let matches = |_: &Plan, pattern: &EventPattern, _: Origin, _: Code| matching.contains(pattern);
        match &plan.jobs[job].when.trigger {
            Trigger::Event { event: pattern, .. } => matches(plan, pattern, event.origin, event.code),
            Trigger::Any { conditions, .. } => {
                conditions.iter().any(|pattern| matches(plan, pattern, event.origin, event.code))
            }
            Trigger::All { conditions, .. } => {
                let holds = &mut self.jobs[job].holds;
                let held = holds.iter().all(|holds| *holds);
                for (pattern, holds) in conditions.iter().zip(holds.iter_mut()) {
                    if matches(plan, pattern, event.origin, event.code) {
                        *holds = true;
                    } else if matches!(pattern.code, Code::Healthy | Code::BecameHealthy)
                        && event.code == Code::Unhealthy
                    {
                        *holds &= !is_from(plan, &pattern.source, event.origin);
                    }
                }
                !held && holds.iter().all(|holds| *holds)
            }
            Trigger::Interval {
                first: FirstTick::AtEvent(pattern) | FirstTick::IntervalAfter(pattern),
                ..
            }
            | Trigger::Cron { after: Some(pattern), .. } => matches(plan, pattern, event.origin, event.code),
            Trigger::Interval { .. } | Trigger::Cron { .. } | Trigger::Manual | Trigger::Never => false,
        }
    }

    /// C8: maintenance mode of ContainerPilot 2 pauses periodic jobs and watches.
    pub(super) fn is_paused(&self) -> bool {
        self.maintenance && self.plan.legacy_maintenance
    }

    pub(super) fn see_pause(&mut self) {
        if self.is_paused() {
            self.paused_at = Some(self.now);
        }
    }
}

/// Returns true if a pattern matches an event.
fn matches(plan: &Plan, pattern: &EventPattern, origin: Origin, code: Code) -> bool {
    pattern.code == code && is_from(plan, &pattern.source, origin)
}

fn is_from(plan: &Plan, source: &Source, origin: Origin) -> bool {
    match (source, origin) {
        (Source::Global, Origin::Global) => true,
        (Source::Job(name), Origin::Job(job)) => is_named(&plan.jobs[job.index()], name),
        (Source::Watch(name), Origin::Watch(watch)) => plan.watches[watch.index()].name == *name,
        (Source::Signal(signal), Origin::Signal(sent)) => *signal == sent,
        _ => false,
    }
}
