//! The variables a process gets beside the supervisor's own (P7).
//!
//! What all jobs are told alike (where services and processes are) is kept as it changes, and shared: if it were put
//! together for every process anew, starting all jobs would cost the square of their number.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::plan::Job;
use crate::rules::health::Told;
use crate::state::supervisor::Core;
use alloc::collections::BTreeMap;

/// The variables of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// What every process started at this moment is told.
    pub jobs: Arc<JobVariables>,
    /// Why this one runs; these count before the others.
    pub why: Arc<Why>,
}

/// Why a process runs: names and values.
pub type Why = Vec<(&'static str, String)>;

impl Environment {
    /// All variables, in the order in which they count: of two with one name, the later.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.jobs.iter().chain(self.why.iter().map(|(name, value)| (*name, value.as_str())))
    }
}

/// The addresses of services, and the processes of running jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobVariables {
    version: u64,
    /// What was set by hand (P7); without a value, it is unset, also where the supervisor has it from its beginning.
    set: BTreeMap<String, Option<String>>,
    /// In the order of the jobs. Those of jobs without a process have no value.
    variables: Vec<(String, Option<String>)>,
    /// Where the process of each job stands.
    processes: Vec<usize>,
}

impl JobVariables {
    /// Those of jobs that do not run yet.
    pub(crate) fn new(jobs: &[Job]) -> Self {
        let mut new = Self::default();
        for job in jobs {
            if let Some(service) = &job.service {
                let name = format!("CONTAINERPILOT_{}_IP", variable_name(&job.name));
                new.variables.push((name, Some(service.address.to_string())));
            }
            new.processes.push(new.variables.len());
            let name = format!("CONTAINERPILOT_{}_PID", variable_name(short_name(job)));
            new.variables.push((name, None));
        }
        new
    }

    /// Another number means that something has changed, of those that one core has given.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The variables, in the order in which they count.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        let of_jobs = self.variables.iter().map(|(name, value)| (name, value));
        let all = self.set.iter().chain(of_jobs);
        all.filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?)))
    }

    /// Everything that was set or unset by hand.
    #[must_use]
    pub fn set_by_hand(&self) -> &BTreeMap<String, Option<String>> {
        &self.set
    }

    /// The variables that no process is to see, although the supervisor may have them.
    pub fn unset(&self) -> impl Iterator<Item = &str> {
        self.set.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str())
    }

    fn set_by(&mut self, name: String, value: Option<String>) {
        self.version += 1;
        self.set.insert(name, value.filter(|value| !value.is_empty()));
    }

    /// Goes on where another plan's variables have left off: with what was set by hand, and never the same number.
    pub(crate) fn succeed(&mut self, old: &Self) {
        self.version = old.version + 1;
        self.set.clone_from(&old.set);
    }

    pub(crate) fn set_process(&mut self, job: JobIx, pid: Option<i32>) {
        self.version += 1;
        let place = self.processes.get(job.index()).and_then(|place| self.variables.get_mut(*place));
        if let Some((_, value)) = place {
            *value = pid.map(|pid| pid.to_string());
        }
    }
}

impl Core {
    /// The variables for a process of a job: the addresses of services, the processes of running jobs, and why it runs.
    pub(crate) fn environment(&self, job: JobIx) -> Environment {
        Environment { jobs: Arc::clone(&self.variables), why: Arc::new(self.why(job)) }
    }

    /// The same for a check of the job, which is told what its job's run is told: so that is put together once for all
    /// checks of the run.
    pub(crate) fn check_environment(&mut self, job: JobIx) -> Environment {
        let state = self.job(job);
        let of = (state.restarts, state.cause.map(|event| event.id));
        let told = state.health.as_ref().and_then(|health| health.told.as_ref());
        let why = match told {
            Some(told) if told.of == of => Arc::clone(&told.why),
            _ => Arc::new(self.why(job)),
        };
        if let Some(health) = &mut self.job_mut(job).health {
            health.told = Some(Told { of, why: Arc::clone(&why) });
        }
        Environment { jobs: Arc::clone(&self.variables), why }
    }

    /// A job has another process, or none any more. Copies the variables only if somebody holds the old ones still,
    /// which nobody does who carries effects out at once.
    pub(crate) fn set_process(&mut self, job: JobIx, pid: Option<i32>) {
        if self.job(job).pid != pid {
            self.job_mut(job).pid = pid;
            Arc::make_mut(&mut self.variables).set_process(job, pid);
        }
    }

    /// Sets variables of every process that is started from now on.
    pub(crate) fn set_variables(&mut self, variables: Vec<(String, Option<String>)>) {
        let all = Arc::make_mut(&mut self.variables);
        for (name, value) in variables {
            all.set_by(name, value);
        }
    }

    /// What was set or unset by hand; a new configuration is rendered with it (R2).
    #[must_use]
    pub fn variables(&self) -> &JobVariables {
        &self.variables
    }

    /// What the trigger of the present run was.
    fn why(&self, job: JobIx) -> Why {
        let (planned, state) = (self.planned(job), self.job(job));
        let mut why = Vec::with_capacity(5);
        why.push(("CONTAINERPILOT_JOB", planned.name.clone()));
        why.push(("CONTAINERPILOT_RESTARTS", state.restarts.to_string()));
        let Some(event) = state.cause else { return why };
        why.push(("CONTAINERPILOT_EVENT", event.code.name().to_string()));
        why.push(("CONTAINERPILOT_EVENT_SOURCE", self.origin_name(event.origin)));
        match event.exit {
            Some(ExitStatus::Code(code)) => why.push(("CONTAINERPILOT_EXIT_CODE", code.to_string())),
            Some(ExitStatus::Signal(signal)) => {
                why.push(("CONTAINERPILOT_EXIT_SIGNAL", signal.0.to_string()))
            }
            None => {}
        }
        why
    }
}

/// A name in upper case, every run of other characters one `_`.
#[must_use]
pub fn variable_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_uppercase());
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out
}

/// The name of a job; of one that is named after its program, the base name without its extension.
fn short_name(job: &Job) -> &str {
    let named_after_program = job.exec.as_ref().is_some_and(|exec| exec.program == job.name);
    if !named_after_program {
        return &job.name;
    }
    let base = job.name.rsplit('/').next().unwrap_or(&job.name);
    match base.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p7_names_of_variables() {
        assert_eq!(variable_name("my-db.2"), "MY_DB_2");
        assert_eq!(variable_name("a -- b"), "A_B");
        assert_eq!(variable_name("ünï"), "_N_");
    }
}
