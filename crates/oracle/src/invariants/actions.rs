//! W19: an action has no process, ends in the step in which it starts, and does what it says.

use containerpilot_core::effect::{Effect, KillReason};
use containerpilot_core::event::Code;
use containerpilot_core::plan::{Action, Repeat, Restarts};
use containerpilot_core::variables::Environment;
use containerpilot_core::{JobStatus, Phase, State};

use super::{Check, Oracle};

impl Oracle<'_> {
    /// An action was performed: its exit event is all that shows.
    pub(super) fn see_action(&mut self, job: usize, code: Code) -> Check {
        let planned = &self.plan.jobs[job];
        let Some(action) = planned.exec.action() else { return Ok(()) };
        let failed = code == Code::ExitFailed;
        let possible = match action {
            Action::Signal(signal, target) => {
                let targets = self.plan.jobs.iter().zip(&self.jobs).enumerate();
                let targets = targets.filter(|(nth, (planned, _))| *nth != job && target.includes(planned));
                let runs: Vec<_> = targets.filter_map(|(_, (_, model))| model.run.as_ref()).collect();
                self.acted.extend(runs.iter().map(|run| (run.run, *signal)));
                !runs.is_empty()
            }
            Action::SetEnv(variables) => {
                self.variables.extend(variables.iter().cloned());
                true
            }
            _ => !failed,
        };
        if possible == failed {
            return self.job_violation("W19", job, &format!("its action sends {code}"));
        }
        let (now, generations, periodic) = (self.now, self.generations, planned.when.is_periodic());
        // One that was started before the shutdown does not belong to it.
        let in_shutdown =
            self.phase == Phase::Stopping && !std::mem::take(&mut self.seen[job].acts_before_shutdown);
        let (seen, model) = (&mut self.seen[job], &mut self.jobs[job]);
        if seen.by_hand || periodic {
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

    /// The signals of an action are sent in the part of the step in which it is performed.
    pub(super) fn check_acted(&mut self, effects: &[Effect]) -> Check {
        for (wanted, by_action) in std::mem::take(&mut self.acted) {
            let sent = effects.iter().any(|effect| {
                matches!(effect, Effect::Kill { run, signal, reason: KillReason::ByHand, .. }
                    if *run == wanted && *signal == by_action)
            });
            if !sent {
                return Err(self.violation("W19", format!("an action has not signalled run {}", wanted.0)));
            }
        }
        Ok(())
    }

    /// A process has the variables that actions have set before.
    pub(super) fn check_variables(&self, job: usize, environment: &Environment) -> Check {
        for (name, value) in &self.variables {
            let found = environment.jobs.set_by_putenv().get(name);
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
