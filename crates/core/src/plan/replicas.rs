//! Replicas: several jobs from one definition (W20).
//!
//! A plan has both: the definition, as a [`ReplicaGroup`], and the jobs made from it. So another number of replicas
//! needs no file.
//!
//! `event.rs` decides which events of the definition count only when they hold for all its replicas
//! ([`Code::needs_all_replicas`](crate::event::Code::needs_all_replicas)), `facts/events.rs` whether they do.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Command, Drain, Exec, Job, JobLogging, JobOutput, Plan, Probe, Word};

/// The variable with the number of a replica, in its environment and in its commands.
pub const REPLICA_VARIABLE: &str = "CONTAINERPILOT_REPLICA";
/// The variable with the port of a replica, in its environment, its commands and the addresses of its checks.
pub const PORT_VARIABLE: &str = "CONTAINERPILOT_PORT";
/// The most replicas of one job.
pub const MAX_REPLICAS: u16 = 1000;

/// Which replica a job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// The name of the definition, which is a source of events, too.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub group: String,
    /// The number of this replica, from 1.
    pub number: u16,
    /// Its port.
    pub port: Option<u16>,
}

/// The ports from which each replica takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRange {
    /// The first port; 0 means none.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl PortRange {
    /// The number of ports.
    #[must_use]
    pub const fn count(self) -> u16 {
        (self.last - self.first).saturating_add(1)
    }
}

/// The definition of replicas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaGroup {
    /// The job as it is written. A check of port 0 means the port of the replica.
    pub template: Job,
    /// The number of replicas in the configuration.
    pub configured: u16,
    /// The number of replicas in this plan.
    pub count: u16,
    /// Their ports.
    pub ports: Option<PortRange>,
}

impl ReplicaGroup {
    /// The name of a replica.
    #[must_use]
    pub fn name_of(group: &str, number: u16) -> String {
        format!("{group}-{number}")
    }

    /// The most replicas that it can have: one for each port.
    #[must_use]
    pub fn max(&self) -> u16 {
        self.ports.map_or(MAX_REPLICAS, |ports| ports.count().min(MAX_REPLICAS))
    }

    /// The jobs of all replicas.
    pub fn jobs(&self) -> impl Iterator<Item = Job> + '_ {
        (1..=self.count).map(|number| self.job(number))
    }

    /// The job of a replica.
    pub(crate) fn job(&self, number: u16) -> Job {
        let mut job = self.template.clone();
        let group = core::mem::replace(&mut job.name, Self::name_of(&self.template.name, number));
        let port = self.ports.map(|ports| ports.first.saturating_add(number - 1));
        let replaced = Replaced { number: number.to_string(), port: port.map(|port| port.to_string()) };
        if let Exec::Program(command) = &mut job.exec {
            replaced.in_command(command);
        }
        if let Drain::Until { program, .. } = &mut job.stop.drain {
            replaced.in_command(program);
        }
        if let JobOutput::Logged(JobLogging { file: Some(file), .. }) = &mut job.output {
            file.path = replaced.in_text(&file.path);
        }
        if let Some(service) = &mut job.service {
            // D10: NAME-N-HOSTNAME, unless there is an id with the number of the replica.
            service.id = match service.id.strip_prefix(&group) {
                Some(host) if !service.id.contains('$') => format!("{}{host}", job.name),
                _ => replaced.in_text(&service.id),
            };
            service.port = port.unwrap_or(service.port);
        }
        for check in job.health.iter_mut().flat_map(|health| &mut health.checks) {
            let default_name = check.name.strip_prefix("check.").and_then(|name| name.strip_prefix(&group));
            if let Some(nth) = default_name.filter(|nth| nth.is_empty() || nth.starts_with('.')) {
                check.name = format!("check.{}{nth}", job.name);
            }
            match &mut check.probe {
                Probe::Exec(command) => replaced.in_command(command),
                Probe::Http(http) => set_port(&mut http.target.port, port),
                Probe::Tcp { port: target, .. } => set_port(target, port),
                Probe::Running | Probe::Ready => {}
            }
        }
        job.replica = Some(Box::new(Replica { group, number, port }));
        job
    }
}

fn set_port(target: &mut u16, port: Option<u16>) {
    if *target == 0 {
        *target = port.unwrap_or(0);
    }
}

/// What stands for the variables in the commands of a replica.
struct Replaced {
    number: String,
    port: Option<String>,
}

impl Replaced {
    fn in_command(&self, command: &mut Command) {
        for word in core::iter::once(&mut command.program).chain(&mut command.arguments) {
            if word.as_bytes().contains(&b'$') {
                let text = self.in_bytes(word.as_bytes());
                *word = Word::from(text);
            }
        }
    }

    fn in_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.in_bytes(text.as_bytes())).into_owned()
    }

    fn in_bytes(&self, mut text: &[u8]) -> Vec<u8> {
        let variables =
            [(REPLICA_VARIABLE, Some(self.number.as_str())), (PORT_VARIABLE, self.port.as_deref())];
        let mut out = Vec::with_capacity(text.len());
        while let Some((first, rest)) = text.split_first() {
            let found = variables.iter().find_map(|(name, value)| Some(((*value)?, after(text, name)?)));
            if let Some((value, rest)) = found {
                out.extend_from_slice(value.as_bytes());
                text = rest;
            } else {
                out.push(*first);
                text = rest;
            }
        }
        out
    }
}

/// The length of the variable with which a text begins, if it has another value for each replica.
pub(crate) fn placeholder_length(text: &[u8]) -> Option<usize> {
    let rest = [REPLICA_VARIABLE, PORT_VARIABLE].iter().find_map(|name| after(text, name))?;
    Some(text.len() - rest.len())
}

/// What follows `$NAME` or `${NAME}` at the start of a text.
fn after<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let text = text.strip_prefix(b"$")?;
    if let Some(inner) = text.strip_prefix(b"{") {
        return inner.strip_prefix(name.as_bytes())?.strip_prefix(b"}");
    }
    let rest = text.strip_prefix(name.as_bytes())?;
    let continues = rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (!continues).then_some(rest)
}

impl Plan {
    /// The plan with another number of replicas of a job.
    ///
    /// # Errors
    /// If the job has no replicas, or not so many are possible.
    pub fn scaled(&self, name: &str, count: u16) -> Result<Self, ScaleError> {
        let mut plan = self.clone();
        let group = plan.replicas.iter_mut().find(|group| group.template.name == name);
        let group = group.ok_or_else(|| ScaleError::NoReplicas { job: name.into() })?;
        let max = group.max();
        if count == 0 {
            return Err(ScaleError::Zero { job: name.into() });
        }
        if count > max {
            return Err(ScaleError::TooMany { max, ports: group.ports.filter(|_| max < MAX_REPLICAS) });
        }
        group.count = count;
        let mut made = Some(group.jobs().collect::<Vec<Job>>());
        let jobs = core::mem::take(&mut plan.jobs);
        for job in jobs {
            match job.is_replica_of(name) {
                false => plan.jobs.push(job),
                true => plan.jobs.extend(made.take().unwrap_or_default()),
            }
        }
        Ok(plan)
    }

    /// Keeps the numbers that `scale` has set in another plan, where `replicas` is the same in both.
    #[must_use]
    pub fn with_scale_of(self, other: &Self) -> Self {
        let same = |one: &&ReplicaGroup| {
            one.count != one.configured
                && self.replicas.iter().any(|group| {
                    group.template.name == one.template.name && group.configured == one.configured
                })
        };
        let kept: Vec<(&str, u16)> =
            other.replicas.iter().filter(same).map(|one| (one.template.name.as_str(), one.count)).collect();
        kept.into_iter().fold(self, |plan, (name, count)| plan.scaled(name, count).unwrap_or(plan))
    }
}

/// Why a job cannot have another number of replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleError {
    /// The job is not a definition of replicas, or does not exist.
    NoReplicas {
        /// Its name.
        job: String,
    },
    /// No replica at all.
    Zero {
        /// The name of the definition.
        job: String,
    },
    /// More than possible.
    TooMany {
        /// The largest number.
        max: u16,
        /// The ports, if there are not more of them.
        ports: Option<PortRange>,
    },
}

impl fmt::Display for ScaleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReplicas { job } => write!(out, "`{job}` has no `replicas`"),
            Self::Zero { job } => {
                write!(out, "at least 1 replica is needed; use `stop {job}` to stop all of them")
            }
            Self::TooMany { max, ports: None } => write!(out, "at most {max} replicas"),
            Self::TooMany { max, ports: Some(PortRange { first, last }) } => {
                write!(out, "at most {max} replicas: the ports are {first} to {last}")
            }
        }
    }
}

impl core::error::Error for ScaleError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w20_variables_in_commands_are_replaced() {
        let replaced = |port: Option<&str>, text: &str| {
            let replaced = Replaced { number: "7".into(), port: port.map(Into::into) };
            String::from_utf8(replaced.in_bytes(text.as_bytes())).unwrap()
        };
        let text = ":$CONTAINERPILOT_PORT/${CONTAINERPILOT_REPLICA}";
        assert_eq!(replaced(Some("80"), text), ":80/7");
        assert_eq!(replaced(None, text), ":$CONTAINERPILOT_PORT/7");
        for other in ["$CONTAINERPILOT_PORTS", "$CONTAINERPILOT_PORT_", "${CONTAINERPILOT_PORT", "$", "$$"] {
            assert_eq!(replaced(Some("80"), other), other);
        }
    }
}
