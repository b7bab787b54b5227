//! The variables a process gets beside the supervisor's own (P7).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use crate::core::Core;
use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::plan::Job;

impl Core {
    /// The variables for a process of a job: the addresses of services, the processes of running jobs, and why it runs.
    pub(crate) fn environment(&self, job: JobIx) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        for (planned, state) in self.plan.jobs.iter().zip(&self.jobs) {
            if let Some(service) = &planned.service {
                let name = format!("CONTAINERPILOT_{}_IP", variable_name(&planned.name));
                variables.push((name, service.address.to_string()));
            }
            if let Some(pid) = state.pid {
                let name = format!("CONTAINERPILOT_{}_PID", variable_name(short_name(planned)));
                variables.push((name, pid.to_string()));
            }
        }
        variables.extend(self.why(job));
        variables
    }

    /// What the trigger of the present run was.
    fn why(&self, job: JobIx) -> Vec<(String, String)> {
        let (planned, state) = (self.planned(job), self.job(job));
        let mut why = vec![
            ("CONTAINERPILOT_JOB".to_string(), planned.name.clone()),
            ("CONTAINERPILOT_RESTARTS".to_string(), state.restarts.to_string()),
        ];
        let Some(event) = state.cause else { return why };
        why.push(("CONTAINERPILOT_EVENT".to_string(), event.code.name().to_string()));
        why.push(("CONTAINERPILOT_EVENT_SOURCE".to_string(), self.origin_name(event.origin)));
        match event.exit {
            Some(ExitStatus::Code(code)) => {
                why.push(("CONTAINERPILOT_EXIT_CODE".to_string(), code.to_string()));
            }
            Some(ExitStatus::Signal(signal)) => {
                why.push(("CONTAINERPILOT_EXIT_SIGNAL".to_string(), signal.0.to_string()));
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
