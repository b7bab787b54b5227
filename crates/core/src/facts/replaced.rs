//! What a reload changes (R3).

use crate::ids::JobIx;
use crate::plan::diff::{Changes, PlanDiff};
use crate::plan::{Plan, Repeat};
use crate::state::job::{State, StopReason};
use crate::supervisor::{Core, PendingReload};

impl Core {
    /// The plan of the reload in progress, or else the current one.
    pub(crate) fn next_plan(&self) -> &Plan {
        self.reload.as_ref().map_or(self.plan(), |pending| &pending.plan)
    }

    /// What a reload of this plan would do to jobs now, if no job was stopped or started by hand.
    #[must_use]
    pub fn changes(&self, plan: &Plan) -> Changes {
        let plan = plan.clone().with_scale_of(self.plan());
        PlanDiff::new(self.plan(), &plan, |job| self.has_old_variables(job)).changes(self.plan(), &plan)
    }

    /// The difference to the plan of a reload. Jobs that already stop for a reload count as changed, and so do those
    /// whose variables have.
    pub(crate) fn diff(&self, pending: &PendingReload) -> PlanDiff {
        PlanDiff::new(self.plan(), &pending.plan, |job| {
            self.job(job).stop_reason() == Some(StopReason::Reload)
                || (pending.renews_variables && self.has_old_variables(job))
        })
    }

    /// R3: returns true if a job's process would be started with other variables of `putenv` now. A job that runs again
    /// at each event or tick gets them anyway, and its run is not cut short.
    fn has_old_variables(&self, job: JobIx) -> bool {
        let (planned, state) = (self.planned(job), self.job(job));
        let Some(run) = state.run().filter(|_| state.is_up() && state.state() != State::Outlived) else {
            return false;
        };
        let process = &planned.process;
        let is_own = |name| process.env.contains_key(name) || process.secrets.contains_key(name);
        // A variable that was set once stays in the list, also when it is unset.
        let mut now = self.variables().overrides().iter();
        planned.when.repeat() == Repeat::Once
            && !planned.when.is_periodic()
            && now.any(|(name, value)| run.overrides.get(name) != Some(value) && !is_own(name))
    }

    /// Returns true if the pending reload changes or removes a job.
    pub(crate) fn is_replaced_by_reload(&self, job: JobIx) -> bool {
        self.reload.as_ref().is_some_and(|pending| self.diff(pending).replaced().contains(&job))
    }
}
