//! P5, W2, W4, W6–W8: a job runs as often as its events, ticks and restarts demand, and when they do.

use std::time::Duration;

use containerpilot_core::plan::{Job, Repeat, RestartOn, Restarts, Trigger};
use containerpilot_core::{JobStatus, Phase, State, Time};

use super::fixed_times::ABANDON_TIMEOUT;
use super::model::{Pending, RunModel, Seen};
use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    pub(super) fn check_runs(&mut self, job: usize, after: &[JobStatus], phase: Phase) -> Check {
        let status = &after[job];
        self.check_limits(job, status)?;
        self.check_times(job, status, phase)?;
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
            (Trigger::Cron { .. }, _) => Ok(()),
            (Trigger::Manual, _) => self.check_each(job, status),
            _ if planned.when.queues_events() => self.check_queue(job, status),
            // A hook runs once for each generation of its job.
            (_, Repeat::Once) if self.runs_once_per_generation(job) => self.check_each(job, status),
            (_, Repeat::Once) => self.check_once(job, status),
            (_, Repeat::Each | Repeat::EachQueued) => self.check_each(job, status),
        }
    }

    fn check_limits(&mut self, job: usize, status: &JobStatus) -> Check {
        let model = &mut self.jobs[job];
        if status.restarts < self.before[job].restarts && !self.seen[job].adjusted {
            model.restarts_at_adjustment = 0;
        }
        match self.plan.jobs[job].restarts {
            Restarts::Limited(most) if status.restarts > most.max(model.restarts_at_adjustment) => {
                self.job_violation("W6", job, &format!("it was restarted {} times", status.restarts))
            }
            _ => Ok(()),
        }
    }

    fn check_timeouts(&self, job: usize, status: &JobStatus) -> Check {
        let Some(run) = &self.jobs[job].run else { return Ok(()) };
        let planned = &self.plan.jobs[job];
        let is_over = run.timed_out || run.outlived || run.killed_for_reload || self.killing.is_some();
        if !is_over && Self::timeout_of(planned, run).is_some_and(|due| due < self.now) {
            return self.job_violation("P5", job, "it was not killed at its timeout");
        }
        if run.started.is_none() && run.exec_by < self.now {
            return self.job_violation("P3", job, "its start takes too long, and is not given up");
        }
        if run.first_killed.is_some_and(|killed| killed + ABANDON_TIMEOUT < self.now)
            && self.killing.is_none()
        {
            return self.job_violation("P6", job, "SIGKILL has not ended it, and it is not abandoned");
        }
        // R5: of a stop that a reload has changed, only the global limit is known.
        let adjusted = run.stop_adjusted.then_some(self.plan.stop_timeout);
        let limit = run.stop_timeout.max(adjusted.unwrap_or_default());
        // A stop while it is being replaced starts the stop timeout again.
        let replaced = run.replaced.filter(|_| status.stop_stage.is_none());
        if let Some(asked) = run.stopped.or(replaced)
            && asked + limit < self.now
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
            && !run.stop_adjusted
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
        let (seen, now) = (self.seen_in_this_generation(job), self.now);
        let plan = self.plan;
        let planned = seen.ended_as.as_deref().unwrap_or(&plan.jobs[job]);
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
        // W19: an action may start it in the step in which it ends, which is no restart.
        let by_action = seen.by_hand && seen.spawned > 0 && status.restarts == 0;
        if seen.ended && !by_action {
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
        let policy = seen.ended_as.as_deref().unwrap_or(&self.plan.jobs[job]);
        let more = follows(policy, self.jobs[job].run_failed)
            && match policy.restarts {
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
            (true, false) if pending == Pending::No && seen.may_fire => Pending::Perhaps,
            (true, false) => pending,
            _ if in_ring && seen.fired > 0 => Pending::Perhaps,
            (true, true) if seen.fired == 0 => Pending::No,
            (true, true) if seen.fired > 1 || pending == Pending::Yes => Pending::Yes,
            // An action may stop its source just before it starts it.
            _ if seen.by_hand && (seen.fired > 0 || seen.is_new || seen.may_fire) => Pending::Perhaps,
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
        let plan = self.plan;
        let policy = seen.ended_as.as_deref().unwrap_or(&plan.jobs[job]);
        let model = &mut self.jobs[job];
        if seen.spawned > 0 && !at_once && !late {
            // An event resets the count.
            model.early = Some(0);
        }
        let Some(early) = &mut model.early else { return Ok(()) };
        if seen.ended && (at_once || status.state == State::Delaying) {
            let ran = now.since(seen.ended_started.unwrap_or(now));
            let delay = delay_after(policy, ran, early);
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
                && !run.outlived
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
pub(super) fn met_tick_at(planned: &Job, startup: Option<Time>, runs: u64, run: &RunModel) -> Option<Time> {
    let Trigger::Interval { every: interval, .. } = planned.when.trigger else { return None };
    if run.off_schedule || planned.timeout.is_none_or(|timeout| timeout > interval) {
        return None;
    }
    let startup = startup?;
    let started = run.started?.max(run.ticks_from.unwrap_or(Time::ZERO));
    if let Restarts::Limited(most) = planned.restarts
        && runs > most
    {
        return None;
    }
    // The first tick after its start. A start at the time of a tick belongs to that tick, or has missed it.
    let count = started.since(startup).as_nanos() / interval.as_nanos() + 1;
    Some(startup + interval * u32::try_from(count).unwrap_or(u32::MAX))
}
