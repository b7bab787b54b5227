//! W19: an action has no process, ends in the step in which it starts, and does what it says.

use containerpilot_core::effect::{Effect, KillReason};
use containerpilot_core::event::Code;
use containerpilot_core::ids::RunId;
use containerpilot_core::plan::{Action, Job, Repeat, Restarts, Role};
use containerpilot_core::variables::ProcessEnvironment;
use containerpilot_core::{JobStatus, Phase, State};

use super::oracle::{Acted, Check, Oracle};

impl Oracle<'_> {
    /// An action was performed: its exit event is all that shows.
    pub(super) fn see_action(&mut self, job: usize, code: Code) -> Check {
        if self.plan.jobs[job].exec.action().is_none() {
            return Ok(());
        }
        self.see_work(job);
        let planned = &self.plan.jobs[job];
        let Some(action) = planned.exec.action() else { return Ok(()) };
        let failed = code == Code::ExitFailed;
        let running = self.shutdown.is_none();
        self.performed += u64::from(!matches!(action, Action::Signal(..) | Action::SetEnv(_)) && !failed);
        let targets = self.targets(job);
        // `None` if it is not known whether it is refused.
        let possible = match action {
            Action::Signal(signal, _) => {
                let runs = targets.iter().filter_map(|target| self.jobs[*target].run.as_ref());
                let runs: Vec<RunId> = runs.map(|run| run.run).collect();
                let possible = !runs.is_empty();
                self.acted.extend(runs.into_iter().map(|run| Acted::Signalled(run, *signal)));
                Some(possible)
            }
            Action::SetEnv(variables) => {
                self.variables.extend(variables.iter().cloned());
                Some(true)
            }
            Action::Stop(_) => {
                for target in targets.iter().copied().filter(|_| !failed) {
                    self.seen[target].stopped_by_action = true;
                    self.acted.push(Acted::Stopped(target));
                }
                Some(running && !targets.is_empty())
            }
            Action::Start(_) | Action::Restart(_) => {
                for target in targets.iter().copied().filter(|_| running) {
                    self.seen[target].by_hand = true;
                    self.acted.push(Acted::Started(target));
                }
                // W18: a job that is bound to a source may not be started without it.
                let is_bound = |job: &usize| self.plan.jobs[*job].requires.iter().any(|one| one.bind);
                let refused = !running || targets.is_empty();
                if !refused && targets.iter().all(is_bound) { None } else { Some(!refused) }
            }
            Action::Maintenance(on) => {
                // One that changes nothing is not refused.
                if running && self.maintenance != *on {
                    return self.job_violation("W19", job, "its action does not change maintenance mode");
                }
                Some(running || self.maintenance == *on)
            }
            Action::Reload => {
                self.acted.extend((!failed).then_some(Acted::Reloaded));
                Some(running)
            }
            Action::Shutdown(code) => {
                if !failed {
                    self.expected_code = Some(*code);
                    self.acted.push(Acted::ShutDown);
                }
                Some(running)
            }
        };
        if possible == Some(failed) {
            return self.job_violation("W19", job, &format!("its action sends {code}"));
        }
        // What it starts has a generation after this.
        let (now, generations) = (self.now, self.generations_before);
        let periodic = planned.when.is_periodic();
        // One that was started before the shutdown does not belong to it.
        let in_shutdown =
            self.phase == Phase::Stopping && !std::mem::take(&mut self.seen[job].acts_before_shutdown);
        let (seen, model) = (&mut self.seen[job], &mut self.jobs[job]);
        // Further ones in this step are restarts, and a hook that gets a new generation with its job is performed for its event.
        if (seen.by_hand && seen.acted == 0 && seen.fired == 0) || periodic {
            model.triggered = Some(generations);
        }
        model.runs += 1;
        model.runs_at_shutdown += u64::from(in_shutdown);
        model.last_failure = failed.then_some(1);
        (model.last_code, model.run_failed, model.was_terminated) = (1, failed, false);
        model.ended_at = Some(now);
        seen.ends += 1;
        seen.acted += 1;
        // Several requests of one step may be performed in it.
        let counted = !periodic && !seen.by_hand;
        let most = counted.then_some(model.fires + model.by_hand + u64::from(model.resumed));
        if let (Restarts::Limited(restarts), Some(most)) = (planned.restarts, most)
            && model.runs > most.saturating_mul(1 + restarts) + model.runs_before_adjustment
        {
            return self.job_violation("W6", job, "its action is performed too often");
        }
        if in_shutdown && self.jobs[job].runs_at_shutdown > 1 {
            return self.job_violation("S3", job, "its action is performed twice during the shutdown");
        }
        Ok(())
    }

    /// The targets of an action: never its own job, and not the telemetry server.
    fn targets(&self, job: usize) -> Vec<usize> {
        let target = self.plan.jobs[job].exec.action().and_then(Action::target);
        let is_target = |other: &usize| {
            let planned = &self.plan.jobs[*other];
            let is_named = target.is_some_and(|target| target.includes(planned));
            *other != job && planned.role != Role::Telemetry && is_named
        };
        (0..self.jobs.len()).filter(is_target).collect()
    }

    /// Returns true if the action of another job may start this one again, also if it has ended.
    pub(super) fn action_may_start(&self, job: usize, after: &[JobStatus], startable: &[bool]) -> bool {
        let may_start = |other: usize| {
            let starts = self.plan.jobs[other].exec.action().is_some_and(Action::starts);
            starts
                && startable[other]
                && !after[other].state.has_ended()
                && self.targets(other).contains(&job)
        };
        (0..self.jobs.len()).any(may_start)
    }

    /// Returns true if the action of another job starts this one.
    pub(super) fn is_started_by_action(&self, job: usize) -> bool {
        let starts = |other: usize| self.plan.jobs[other].exec.action().is_some_and(Action::starts);
        (0..self.jobs.len()).any(|other| starts(other) && self.targets(other).contains(&job))
    }

    /// W14: the jobs that may run because of an action.
    pub(super) fn affected_by_action(&self, job: usize) -> Vec<usize> {
        match self.plan.jobs[job].exec.action() {
            Some(Action::Start(_) | Action::Stop(_) | Action::Restart(_)) => self.targets(job),
            Some(Action::Maintenance(on)) => {
                let code = if *on { Code::EnterMaintenance } else { Code::ExitMaintenance };
                let waits = |job: &Job| job.when.patterns().iter().any(|event| event.code == code);
                let jobs = self.plan.jobs.iter().enumerate();
                jobs.filter(|(_, job)| job.health.is_some() || waits(job)).map(|(nth, _)| nth).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The effect of an action happens in the part of the step in which it is performed.
    pub(super) fn check_acted(&mut self, effects: &[Effect], after: &[JobStatus]) -> Check {
        for acted in std::mem::take(&mut self.acted) {
            let done = match &acted {
                Acted::Signalled(wanted, by_action) => effects.iter().any(|effect| {
                    matches!(effect, Effect::Kill { run, signal, reason: KillReason::ByHand, .. }
                        if run == wanted && signal == by_action)
                }),
                Acted::Reloaded => effects.iter().any(|effect| matches!(effect, Effect::Reload)),
                Acted::ShutDown => self.shutdown.is_some(),
                Acted::Stopped(job) => after[*job].stop_stage.is_some() || after[*job].state.has_ended(),
                Acted::Started(job) => {
                    let (planned, status) = (&self.plan.jobs[*job], &after[*job]);
                    // A reload that was to replace it may itself be replaced in the same step (R4).
                    let excused = planned.exec.program().is_none()
                        || planned.requires.iter().any(|one| one.bind)
                        || self.is_reloading();
                    excused || status.run.is_some() || status.stop_stage.is_some()
                }
            };
            if !done {
                return Err(self.violation("W19", format!("an action has no effect: {acted:?}")));
            }
        }
        Ok(())
    }

    /// A process has the variables that actions have set before.
    pub(super) fn check_variables(&self, job: usize, environment: &ProcessEnvironment) -> Check {
        for (name, value) in &self.variables {
            let found = environment.jobs.overrides().get(name);
            if found != Some(value) {
                return self.job_violation("W19", job, &format!("its {name} is {found:?}, not {value:?}"));
            }
        }
        Ok(())
    }

    /// No event is lost, and no action takes time.
    pub(super) fn check_action(&self, job: usize, status: &JobStatus) -> Check {
        let (planned, model, seen) = (&self.plan.jobs[job], &self.jobs[job], &self.seen[job]);
        if matches!(status.state, State::Starting | State::Running) {
            return self.job_violation("W19", job, "its action takes time");
        }
        let must_run = match planned.when.repeat() {
            _ if planned.when.is_periodic() => false,
            Repeat::Once => model.fires > 0 && model.runs == 0,
            Repeat::Each | Repeat::EachQueued => seen.fired > 0 && seen.acted == 0,
        };
        if must_run && status.state == State::Waiting {
            return self.job_violation("W19", job, "an event does not perform its action");
        }
        Ok(())
    }
}
