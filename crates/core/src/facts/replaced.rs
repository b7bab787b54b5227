//! What a reload changes (R3).

use crate::ids::JobIx;
use crate::plan::Plan;
use crate::plan::diff::{Changes, PlanDiff};
use crate::state::job::StopReason;
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

    /// Returns true if the pending reload changes or removes a job.
    pub(crate) fn is_replaced_by_reload(&self, job: JobIx) -> bool {
        self.reload.as_ref().is_some_and(|pending| self.diff(pending).replaced().contains(&job))
    }
}
