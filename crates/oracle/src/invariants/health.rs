//! H2–H4, H7, H8, E5: checks and health.
//!
//! An *epoch* is a time in which a job is checked: while its process runs (W11: once it has started), outside maintenance
//! mode, and until it leaves the catalog. Results of one epoch do not count in the next.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::CheckRunId;
use containerpilot_core::input::{CheckError, Input};
use containerpilot_core::plan::{OnUnhealthy, Probe, Repeat, RestartOn, Restarts};
use containerpilot_core::{JobStatus, Phase, State, StopStage};

use super::oracle::{Check, Oracle};
use super::replicas::is_named;

impl Oracle<'_> {
    fn is_not_run(&self, job: usize, check: usize) -> bool {
        let health = self.plan.jobs[job].health.as_ref();
        health.is_none_or(|health| health.checks[check].probe.is_passive())
    }

    pub(super) fn see_check_done(&mut self, run: CheckRunId, result: &Result<(), CheckError>) {
        if let Some(model) = self.jobs.iter_mut().find(|model| model.drain_run == Some(run)) {
            (model.drain_run, model.drain_done) = (None, Some(self.now));
            return;
        }
        let place = self.jobs.iter().enumerate().find_map(|(job, model)| {
            let check = model.checks.iter().position(|check| check.running == Some(run))?;
            Some((job, check))
        });
        let Some((job, check)) = place else { return };
        let model = &mut self.jobs[job].checks[check];
        model.running = None;
        if std::mem::take(&mut model.canceled) {
            return;
        }
        match result {
            Ok(()) => self.count(job, check, true),
            Err(CheckError::Failed(_)) => self.count(job, check, false),
            // H3: it counts neither way.
            Err(CheckError::NotRun(_)) => self.check_again(job, check),
        }
    }

    /// When a check is due again that has not passed.
    fn check_again(&mut self, job: usize, check: usize) {
        let Some(health) = &self.plan.jobs[job].health else { return };
        let (interval, now) = (health.checks[check].interval, self.now);
        let model = &mut self.jobs[job].checks[check];
        model.due = Some(if model.passed {
            (model.began + interval).max(now)
        } else {
            let pace = Duration::from_millis(100) * (1 << model.early_fails.min(20));
            model.early_fails += 1;
            now + pace.min(interval)
        });
    }

    /// Counts a result.
    fn count(&mut self, job: usize, check: usize, passes: bool) {
        let Some(health) = &self.plan.jobs[job].health else { return };
        let (planned, now) = (&health.checks[check], self.now);
        let begun = self.jobs[job].begun;
        let model = &mut self.jobs[job].checks[check];
        let next = model.began + planned.interval;
        if passes {
            (model.fails, model.due) = (0, Some(next.max(now)));
            model.passes_in_a_row += 1;
            if model.passes_in_a_row >= planned.successes {
                (model.passed, model.passes) = (true, true);
            }
            self.all_pass(job);
            return;
        }
        let in_start_period = now.since(begun) < planned.start_period;
        (model.passes_in_a_row, model.fails) = (0, if in_start_period { 0 } else { model.fails + 1 });
        let young = !model.passed && now.since(begun) < planned.interval;
        let counts = model.fails >= planned.failures && !young;
        self.check_again(job, check);
        if counts {
            self.jobs[job].checks[check].passes = false;
            let news = self.jobs[job].health_state != Some(false);
            self.jobs[job].health_state = Some(false);
            let sends = news || self.wants_repeats(job, Code::Unhealthy);
            self.seen[job].expected_unhealthy += u32::from(sends);
            self.seen[job].became_unhealthy |= news;
            self.seen[job].expected_changes.extend(news.then_some(Code::BecameUnhealthy));
        }
    }

    fn all_pass(&mut self, job: usize) {
        let repeats = self.wants_repeats(job, Code::Healthy);
        let model = &mut self.jobs[job];
        if !model.checks.iter().all(|check| check.passes) {
            return;
        }
        let seen = &mut self.seen[job];
        if model.health_state.replace(true) != Some(true) {
            model.last_heartbeat = self.now;
            seen.expected_healthy += 1;
            seen.expected_changes.push(Code::BecameHealthy);
        } else if repeats {
            seen.expected_healthy += 1;
        }
    }

    /// Returns true if a job runs at each event with this code of another job (E5).
    fn wants_repeats(&self, job: usize, code: Code) -> bool {
        let planned = &self.plan.jobs[job];
        self.plan.jobs.iter().any(|other| {
            let mut patterns = other.when.patterns().iter();
            let waits = patterns.any(|event| {
                matches!(&event.source, Source::Job(name) if is_named(planned, name)) && event.code == code
            });
            waits && other.when.repeat() == Repeat::Each && !other.when.needs_all()
        })
    }

    /// Ends epochs: the process has exited, the job leaves the catalog, or maintenance mode starts.
    pub(super) fn end_epochs(&mut self, after: &[JobStatus]) {
        for (job, status) in after.iter().enumerate() {
            let left = status.stop_stage > Some(StopStage::Hooks) || status.state.has_ended();
            let paused = self.maintenance && self.jobs[job].active;
            let ended = self.seen[job].ends_now;
            let was = self.jobs[job].health_state;
            if !ended && !left && !paused {
                continue;
            }
            // It may have run only within this part.
            let waited = self.previous[job].state == State::Waiting || self.seen[job].is_new;
            let began = self.plan.jobs[job].exec.is_none() && waited;
            // Its checks may have resumed and ended in this part.
            let resumed = self.maintenance_before && !self.maintenance;
            if (began || resumed) && left {
                let seen = &mut self.seen[job];
                (seen.ran_within_part, seen.ran_within_step) = (true, true);
            }
            self.jobs[job].active = false;
            // D8: its health is unknown in maintenance mode, also if it ends in this part.
            if (ended || status.state.has_ended()) && was == Some(true) && !paused {
                self.seen[job].expected_unhealthy += 1;
                self.seen[job].expected_changes.push(Code::BecameUnhealthy);
            }
            if ended || paused || status.state.has_ended() {
                self.jobs[job].health_state = None;
            }
        }
    }

    /// Starts epochs.
    pub(super) fn begin_epochs(&mut self, input: Option<&Input>, after: &[JobStatus]) {
        let maintenance_is_over =
            self.maintenance_before && !self.maintenance && self.phase == Phase::Running;
        for (job, status) in after.iter().enumerate() {
            let planned = &self.plan.jobs[job];
            if planned.health.is_none() {
                continue;
            }
            let started = match input {
                Some(Input::Started { run, .. }) => status.run == Some(*run),
                _ => false,
            };
            let was = &self.previous[job];
            let begun = planned.exec.is_none()
                && (was.state != State::Running || was.generation != status.generation)
                && status.state == State::Running;
            if begun {
                self.see_work(job);
                let generations = self.generations;
                let model = &mut self.jobs[job];
                (model.has_begun, model.begun) = (true, self.now);
                model.triggered = model.triggered.or(Some(generations));
            }
            let resumed =
                maintenance_is_over && status.stop_stage.is_none() && status.state == State::Running;
            let may = status.state == State::Running
                && status.stop_stage <= Some(StopStage::Hooks)
                && !self.maintenance
                && !self.jobs[job].run.as_ref().is_some_and(|run| run.is_stopping());
            if self.jobs[job].active || !may || !(started || begun || resumed) {
                continue;
            }
            self.begin_checks(job);
        }
    }

    /// An epoch starts.
    pub(super) fn begin_checks(&mut self, job: usize) {
        let Some(health) = &self.plan.jobs[job].health else { return };
        (self.jobs[job].active, self.jobs[job].epoch) = (true, self.now);
        for (model, check) in self.jobs[job].checks.iter_mut().zip(&health.checks) {
            let idle = check.probe == Probe::Running;
            (model.passed, model.passes) = (idle, idle);
            (model.passes_in_a_row, model.fails, model.early_fails) = (0, 0, 0);
            model.due = Some(self.now);
        }
        self.all_pass(job);
    }

    pub(super) fn see_check(&mut self, job: usize, check: usize, run: CheckRunId) -> Check {
        let active = self.jobs[job].active;
        let idle = self.is_not_run(job, check);
        let (now, exact) = (self.now, self.exact);
        let model = &mut self.jobs[job].checks[check];
        if model.running.is_some() {
            return self.job_violation("H4", job, "a check runs twice at a time");
        }
        if self.seen[job].ran_within_part {
            // The epoch has ended later in this part of the step.
            model.running = Some(run);
            return Ok(());
        }
        if self.maintenance || (!active && exact) || idle {
            return self.job_violation(
                "H4",
                job,
                "a check in maintenance mode, or while the job does not run",
            );
        }
        if exact && model.due.is_none_or(|due| due > now) {
            let due = model.due;
            return self.job_violation("H3", job, &format!("a check too early, due {due:?}"));
        }
        (model.running, model.began, model.due, model.canceled) = (Some(run), now, None, false);
        Ok(())
    }

    pub(super) fn see_cancel(&mut self, run: CheckRunId) -> Check {
        if let Some(place) = self.reloading.canceled.iter().position(|old| *old == run) {
            self.reloading.canceled.remove(place);
            return Ok(());
        }
        if let Some(model) = self.jobs.iter_mut().find(|model| model.drain_run == Some(run)) {
            model.drain_run = None;
            return Ok(());
        }
        let place = self.jobs.iter().enumerate().find_map(|(job, model)| {
            let check = model.checks.iter().position(|check| check.running == Some(run))?;
            Some((job, check))
        });
        let Some((job, check)) = place else {
            return if self.exact {
                Err(self.violation("H4", "a check is canceled that does not run"))
            } else {
                Ok(())
            };
        };
        let model = &mut self.jobs[job].checks[check];
        if std::mem::replace(&mut model.canceled, true) {
            return self.job_violation("H4", job, "a check is canceled twice");
        }
        let began = model.began;
        if self.seen[job].is_new {
            // It belongs to the last generation, and the first check of this one follows it.
            if self.jobs[job].active {
                let due = &mut self.jobs[job].checks[check].due;
                *due = due.or(Some(self.now));
            }
            return Ok(());
        }
        let Some(health) = &self.plan.jobs[job].health else { return Ok(()) };
        let timeout = began + health.checks[check].timeout;
        if self.jobs[job].active {
            if self.exact && timeout != self.now {
                return self.job_violation("P5", job, "a check is canceled without a reason");
            }
            self.count(job, check, false);
        }
        Ok(())
    }

    pub(super) fn check_health(&mut self, job: usize, status: &JobStatus, phase: Phase) -> Check {
        let Some(health) = &self.plan.jobs[job].health else { return Ok(()) };
        if self.plan.jobs[job].ready.is_some() {
            return self.check_readiness(job, status, phase);
        }
        let (model, seen) = (&self.jobs[job], &self.seen[job]);
        if !self.exact || phase == Phase::Exited {
            return Ok(());
        }
        if status.healthy != model.health_state && !seen.ran_within_step {
            let what = format!("healthy is {:?} and should be {:?}", status.healthy, model.health_state);
            return self.job_violation("H2", job, &what);
        }
        self.jobs[job].health_state = status.healthy;
        let (model, seen) = (&self.jobs[job], &self.seen[job]);
        if !seen.ran_within_step {
            if seen.unhealthy != seen.expected_unhealthy {
                let what = format!(
                    "`unhealthy` is sent {} times instead of {}",
                    seen.unhealthy, seen.expected_unhealthy
                );
                return self.job_violation(if seen.ended { "H7" } else { "E5" }, job, &what);
            }
            // A job that is healthy while it runs repeats it at its interval.
            let runs = health.checks.iter().any(|check| check.probe == Probe::Running);
            let may_repeat =
                runs && seen.healthy > seen.expected_healthy && self.wants_repeats(job, Code::Healthy);
            if seen.healthy != seen.expected_healthy && !may_repeat {
                let what =
                    format!("`healthy` is sent {} times instead of {}", seen.healthy, seen.expected_healthy);
                return self.job_violation("E5", job, &what);
            }
        }
        if !seen.ran_within_step && seen.changes != seen.expected_changes {
            let what = format!("it sends {:?} instead of {:?}", seen.changes, seen.expected_changes);
            return self.job_violation("E5", job, &what);
        }
        for (check, planned) in model.checks.iter().zip(&health.checks) {
            if planned.probe == Probe::Running || !model.active {
                continue;
            }
            if check.running.is_none() && check.due.is_none_or(|due| due < self.now) {
                return self.job_violation("H3", job, &format!("{} is due, and does not run", planned.name));
            }
            let over = check.began + planned.timeout < self.now;
            if check.running.is_some() && !check.canceled && over {
                return self.job_violation(
                    "P5",
                    job,
                    &format!("{} runs longer than its timeout", planned.name),
                );
            }
        }
        let was_signalled = model.run.as_ref().is_none_or(|run| run.replaced.is_some());
        let planned = &self.plan.jobs[job];
        let may_restart = planned.restart_on != RestartOn::Success
            && match planned.restarts {
                Restarts::Unlimited => true,
                Restarts::Limited(most) => status.restarts < most,
            };
        if !may_restart && !seen.ended && seen.replaced {
            return self.job_violation(
                "H8",
                job,
                "it is unhealthy and gets a stop signal, but has no restarts left",
            );
        }
        if seen.became_unhealthy
            && may_restart
            && health.on_unhealthy == OnUnhealthy::Restart
            && phase == Phase::Running
            && status.stop_stage.is_none()
            && !was_signalled
        {
            return self.job_violation("H8", job, "it is unhealthy, and is not restarted");
        }
        Ok(())
    }
}
