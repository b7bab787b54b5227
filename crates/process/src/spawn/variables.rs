//! The environment of a new process in the kernel's form (P7, P9).
//!
//! The variables of the supervisor and of all jobs are the same for most starts, so they are converted once and shared.
//! A process's own variables hide shared ones of the same name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use containerpilot_core::inserted;
use containerpilot_core::plan::Process;
use containerpilot_core::variables::{self, JobVariables};
use containerpilot_template::Environment;
use nix::errno::Errno;

use crate::sys::CStrings;

/// `NAME=value` strings, sorted by name, without duplicates.
#[derive(Debug, Default)]
struct Block {
    /// Shared with the children that are being started.
    strings: Arc<CStrings>,
    names: Vec<Range<usize>>,
}

impl Block {
    /// Must be called in the order of the names.
    fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        let start = self.strings.bytes().len();
        Arc::make_mut(&mut self.strings).push(&[name, b"=", value])?;
        self.names.push(start..start + name.len());
        Ok(())
    }

    /// The position of a variable.
    fn find(&self, name: &[u8]) -> Option<usize> {
        let bytes = self.strings.bytes();
        self.names.binary_search_by(|range| bytes.get(range.clone()).unwrap_or_default().cmp(name)).ok()
    }
}

/// The variables that all processes get.
#[derive(Debug, Default)]
pub(super) struct SharedVariables {
    /// The supervisor's environment; converted for the first start.
    supervisor: Block,
    /// The variables about jobs, and their version.
    jobs: Block,
    version: Option<u64>,
    /// Positions of the supervisor's variables that those about jobs replace or unset.
    hidden: Vec<usize>,
}

impl SharedVariables {
    pub(super) fn supervisor(&self) -> Arc<CStrings> {
        Arc::clone(&self.supervisor.strings)
    }

    pub(super) fn jobs(&self) -> Arc<CStrings> {
        Arc::clone(&self.jobs.strings)
    }

    /// Converts the variables if they have changed.
    pub(super) fn update(&mut self, environment: &Environment, jobs: &JobVariables) -> Result<(), Errno> {
        if self.supervisor.names.is_empty() {
            for (name, value) in environment {
                self.supervisor.push(name, value)?;
            }
        }
        if self.version == Some(jobs.version()) {
            return Ok(());
        }
        self.version = None;
        self.jobs = Block::default();
        self.hidden.clear();
        // The last one of a name wins.
        let sorted: BTreeMap<&str, &str> = inserted(jobs.iter());
        for (name, value) in sorted {
            self.jobs.push(name.as_bytes(), value.as_bytes())?;
            self.hidden.extend(self.supervisor.find(name.as_bytes()));
        }
        self.hidden.extend(jobs.unset().filter_map(|name| self.supervisor.find(name.as_bytes())));
        self.version = Some(jobs.version());
        Ok(())
    }
}

/// The variables of one process.
#[derive(Debug, Default)]
pub(super) struct OwnVariables {
    pub(super) strings: CStrings,
    /// Positions of shared variables that the process's own replace, sorted.
    pub(super) hidden_supervisor: Vec<usize>,
    pub(super) hidden_jobs: Vec<usize>,
}

impl OwnVariables {
    /// The variables of a process's configuration, `HOME` of its user, the variables of its trigger, and those of the
    /// top level of the configuration, in this order of precedence.
    pub(super) fn new(
        process: &Process,
        environment: &variables::ProcessEnvironment,
        home: Option<&[u8]>,
        shared: &SharedVariables,
    ) -> Result<Self, Errno> {
        let mut variables = Self { hidden_supervisor: shared.hidden.clone(), ..Self::default() };
        let own = &process.env;
        let cause = &environment.cause;
        let trigger = cause.iter().enumerate().filter(|(nth, (name, _))| {
            let later = cause.iter().skip(nth + 1).any(|(other, _)| other == name);
            !later && !own.contains_key(&**name)
        });
        // P10: everything else wins over the variables of the top level.
        let putenv = environment.jobs.overrides();
        let has_home = home.is_some();
        let base = process.shared_env.iter().filter(|(name, _)| {
            let is_given = own.contains_key(*name)
                || putenv.contains_key(*name)
                || cause.iter().any(|(other, _)| *other == **name)
                || (has_home && *name == "HOME");
            !is_given && shared.jobs.find(name.as_bytes()).is_none()
        });
        let base = base.map(|(name, value)| (name.as_str(), value.as_bytes()));
        let home = home.filter(|_| !own.contains_key("HOME")).map(|home| ("HOME", home));
        let own = own.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let trigger = trigger.map(|(_, (name, value))| (&**name, value.as_bytes()));
        let secrets = &process.secrets;
        let all = own.chain(home).chain(trigger).chain(base);
        for (name, value) in all.filter(|(name, _)| !secrets.contains_key(*name)) {
            let name = name.as_bytes();
            variables.strings.push(&[name, b"=", value])?;
            variables.hidden_supervisor.extend(shared.supervisor.find(name));
            variables.hidden_jobs.extend(shared.jobs.find(name));
        }
        // P11: the child adds the secrets themselves.
        for name in secrets.keys().map(String::as_bytes) {
            variables.hidden_supervisor.extend(shared.supervisor.find(name));
            variables.hidden_jobs.extend(shared.jobs.find(name));
        }
        variables.hidden_supervisor.sort_unstable();
        variables.hidden_jobs.sort_unstable();
        Ok(variables)
    }
}
