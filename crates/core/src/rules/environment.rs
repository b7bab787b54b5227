//! The variables of processes and checks (P7).

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::plan::{PORT_VARIABLE, REPLICA_VARIABLE};
use crate::state::health::CheckVariables;
use crate::state::supervisor::Core;
use crate::variables::{CauseVariables, Environment, JobVariables};

impl Core {
    /// The variables of a job's next process.
    pub(crate) fn environment(&self, job: JobIx) -> Environment {
        Environment { jobs: self.shared_variables(), cause: Arc::new(self.cause_variables(job)) }
    }

    /// The variables of a job's check: those of its run, built once for all checks of that run.
    pub(crate) fn check_environment(&mut self, job: JobIx) -> Environment {
        let state = self.job(job);
        let key = (state.restarts, state.first_event().map(|event| event.id));
        let cached = state.health.as_ref().and_then(|health| health.variables.as_ref());
        let cause = match cached {
            Some(cached) if cached.key == key => Arc::clone(&cached.variables),
            _ => Arc::new(self.cause_variables(job)),
        };
        if let Some(health) = &mut self.job_mut(job).health {
            health.variables = Some(CheckVariables { key, variables: Arc::clone(&cause) });
        }
        Environment { jobs: self.shared_variables(), cause }
    }

    fn shared_variables(&self) -> Arc<JobVariables> {
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
        variables.push(("CONTAINERPILOT_JOB", planned.name.clone()));
        variables.push(("CONTAINERPILOT_RESTARTS", state.restarts.to_string()));
        if let Some(replica) = &planned.replica {
            variables.push((REPLICA_VARIABLE, replica.number.to_string()));
            variables.extend(replica.port.map(|port| (PORT_VARIABLE, port.to_string())));
        }
        let Some(event) = state.first_event() else { return variables };
        variables.push(("CONTAINERPILOT_EVENT", event.code.name().to_string()));
        variables.push(("CONTAINERPILOT_EVENT_SOURCE", self.origin_name(event.origin)));
        match event.exit() {
            Some(ExitStatus::Code(code)) => variables.push(("CONTAINERPILOT_EXIT_CODE", code.to_string())),
            Some(ExitStatus::Signal(signal)) => {
                variables.push(("CONTAINERPILOT_EXIT_SIGNAL", signal.0.to_string()));
            }
            None => {}
        }
        variables
    }
}
