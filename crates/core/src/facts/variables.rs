//! Whether a process has the variables of `putenv` that it would be started with now.

use crate::ids::JobIx;
use crate::plan::Repeat;
use crate::state::job::State;
use crate::supervisor::Core;

impl Core {
    /// R3: returns true if a job's process would be started with other variables of `putenv` now. A job that runs again
    /// at each event or tick gets them anyway, and its run is not cut short.
    pub(crate) fn has_old_variables(&self, job: JobIx) -> bool {
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
}
