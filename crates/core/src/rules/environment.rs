//! The variables of processes and checks (P7).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::health::state::CheckVariables;
use crate::ids::{JobIx, WatchIx};
use crate::input::ExitStatus;
use crate::log_entry::LogEvent;
use crate::plan::{Level, PORT_VARIABLE, REPLICA_VARIABLE, Watch};
use crate::state::journal::{Event, Origin};
use crate::supervisor::Core;
use crate::variables::{
    CauseVariables, JobVariables, MAX_WATCH_VARIABLE, ProcessEnvironment, watch_variable,
};

impl Core {
    /// The variables of a job's next process. A command that is run as the job has them, too (X12).
    #[must_use]
    pub fn environment(&self, job: JobIx) -> ProcessEnvironment {
        ProcessEnvironment { jobs: self.shared_variables(), cause: Arc::new(self.cause_variables(job)) }
    }

    /// The variables of a job whose start has waited for its turn (P14): as decided, so that the processes of a
    /// thousand jobs that start at once do not have the pids of all that came first. What was set since then counts.
    pub(crate) fn environment_of_decision(&self, job: JobIx) -> ProcessEnvironment {
        let decided = self.job(job).queued_variables();
        let decided = decided.filter(|decided| decided.differs_only_in_pids(&self.plan_state.variables));
        let jobs = decided.map_or_else(|| self.shared_variables(), Arc::clone);
        ProcessEnvironment { jobs, cause: Arc::new(self.cause_variables(job)) }
    }

    /// The variables of a job's check: those of its run, built once for all checks of that run.
    pub(crate) fn check_environment(&mut self, job: JobIx) -> ProcessEnvironment {
        let state = self.job(job);
        let key = (state.restarts, state.first_event().map(|event| event.id));
        let cached = self.health_of(job).and_then(|health| health.variables.as_ref());
        let cause = match cached {
            Some(cached) if cached.key == key => Arc::clone(&cached.variables),
            _ => Arc::new(self.cause_variables(job)),
        };
        if let Some(health) = self.plan_state.health.of_mut(job) {
            health.variables = Some(CheckVariables { key, variables: Arc::clone(&cause) });
        }
        ProcessEnvironment { jobs: self.shared_variables(), cause }
    }

    pub(crate) fn shared_variables(&self) -> Arc<JobVariables> {
        Arc::clone(&self.plan_state.variables)
    }

    /// Sets variables for every process started from now on. The shared variables are copied only if the runtime still
    /// holds the old ones.
    pub(crate) fn set_variables(&mut self, variables: Vec<(String, Option<String>)>) {
        let shared = Arc::make_mut(&mut self.plan_state.variables);
        for (name, value) in variables {
            shared.set(name, value);
        }
    }

    /// Records the pid of a job's process.
    pub(crate) fn set_pid(&mut self, job: JobIx, pid: Option<i32>) {
        Arc::make_mut(&mut self.plan_state.variables).set_pid(job, pid);
    }

    /// The shared variables. A new configuration is rendered with those that `putenv` has set (R2).
    #[must_use]
    pub fn variables(&self) -> &JobVariables {
        &self.plan_state.variables
    }

    /// What started the current run.
    fn cause_variables(&self, job: JobIx) -> CauseVariables {
        let (planned, state) = (self.planned(job), self.job(job));
        let mut variables = Vec::with_capacity(5);
        variables.push(("CONTAINERPILOT_JOB".into(), planned.name.clone()));
        variables.push(("CONTAINERPILOT_RESTARTS".into(), state.restarts.to_string()));
        if let Some(replica) = &planned.replica {
            variables.push((REPLICA_VARIABLE.into(), replica.number.to_string()));
            variables.extend(replica.port.map(|port| (PORT_VARIABLE.into(), port.to_string())));
        }
        let Some(event) = state.first_event() else { return variables };
        variables.push(("CONTAINERPILOT_EVENT".into(), event.code.name().to_string()));
        variables.push(("CONTAINERPILOT_EVENT_SOURCE".into(), self.origin_name(event.origin)));
        match event.exit() {
            Some(ExitStatus::Code(code)) => {
                variables.push(("CONTAINERPILOT_EXIT_CODE".into(), code.to_string()))
            }
            Some(ExitStatus::Signal(signal)) => {
                variables.push(("CONTAINERPILOT_EXIT_SIGNAL".into(), signal.0.to_string()));
            }
            None => {}
        }
        variables.extend(self.change_variables(event));
        variables
    }

    /// D12: what the event of a watch has added and removed.
    fn change_variables(&self, event: &Event) -> CauseVariables {
        let source = self.origin_name(event.origin);
        let Some((change, watch)) = self.watch_changes.of(event.id).zip(source.strip_prefix("watch.")) else {
            return Vec::new();
        };
        let name = watch_variable(watch);
        let both = [("ADDED", &change.added), ("REMOVED", &change.removed)].into_iter();
        both.filter(|(_, list)| list.len() <= MAX_WATCH_VARIABLE)
            .map(|(what, list)| (format!("{name}_{what}").into(), list.clone()))
            .collect()
    }

    /// Updates the variable of a watch.
    pub(crate) fn set_watch_variable(&mut self, watch: WatchIx) {
        if self.plan().watches.get(watch.index()).is_none_or(Watch::is_internal) {
            return;
        }
        let text = self.plan_state.parts.watches.variable(watch);
        let bytes = text.as_ref().map_or(0, |text| text.as_str().len());
        let variables = Arc::make_mut(&mut self.plan_state.variables);
        if !variables.set_watch(watch, text) {
            let source = self.origin_name(Origin::Watch(watch));
            let message = format_args!(
                "{source}: {bytes} bytes are too many for a variable; processes start without it"
            );
            self.log(Level::Warn, None, LogEvent::VariableTooLong, message);
        }
    }
}
