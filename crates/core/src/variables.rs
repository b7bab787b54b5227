//! The variables of a process, in addition to the supervisor's own (P7).
//!
//! The variables that all processes have in common are kept up to date and shared. Building them for every process
//! would make the start of n jobs quadratic in n.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::SortedMap;
use crate::ids::{JobIx, LockIx, WatchIx};
use crate::plan::{Plan, Watch};

/// The path of the control socket, for every process; where the configuration has none, the supervisor reads it, too.
pub const SOCKET_VARIABLE: &str = "CONTAINERPILOT_SOCKET";

/// The variables of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessEnvironment {
    /// The variables of every process started at this moment.
    pub jobs: Arc<JobVariables>,
    /// The variables that describe what started this process. They win over `jobs`.
    pub cause: Arc<CauseVariables>,
}

/// Names and values that describe what started a process.
pub type CauseVariables = Vec<(Cow<'static, str>, String)>;

impl ProcessEnvironment {
    /// All variables. Of two with the same name, the later one wins.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.jobs.iter().chain(self.cause.iter().map(|(name, value)| (&**name, value.as_str())))
    }
}

/// Variables set by `putenv`. `None` unsets a variable, even one of the supervisor's own environment.
pub type Overrides = BTreeMap<String, Option<String>>;

/// The addresses of services, the pids of running jobs, what watches have found, and the variables set by `putenv`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobVariables {
    version: u64,
    /// Changes with the version, except for the pid of a job.
    settings: u64,
    /// Shared with the runs that were started with them.
    #[serde(skip)]
    overrides: Arc<Overrides>,
    /// The names of the variables of jobs and locks, in this order. They are those of the plan.
    #[serde(skip)]
    names: Arc<[String]>,
    /// The values, by the index of the name. Only these are gone through for a start, so that its cost depends on the
    /// jobs that run, and not on those that wait (P14).
    #[serde(serialize_with = "crate::recorded::as_is")]
    values: SortedMap<usize, String>,
    /// For each job, the index of its pid in `names`.
    #[serde(skip)]
    pid_indices: Arc<[usize]>,
    /// For each watch, its variable (D12).
    watches: Vec<WatchVariable>,
    /// The index of the first lock in `names`. The others follow.
    #[serde(skip)]
    first_lock: usize,
}

/// The variable of a watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WatchVariable {
    #[serde(serialize_with = "crate::recorded::as_is")]
    name: String,
    text: Option<WatchText>,
}

/// What a watch has found, as the text of its variable (D12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WatchText {
    /// The addresses of instances, or the names of entries.
    List(#[serde(serialize_with = "crate::recorded::as_is")] Arc<str>),
    /// A value.
    Value(Arc<str>),
}

impl WatchVariable {
    fn of(watch: &Watch) -> Self {
        Self { name: watch_variable(&watch.name), text: None }
    }
}

impl WatchText {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::List(text) | Self::Value(text) => text,
        }
    }
}

/// The longest variable with what a watch has found, and the longest sum of all. The kernel starts no process with a
/// longer text, or with too many of them.
pub(crate) const MAX_WATCH_VARIABLE: usize = 64 * 1024;
const MAX_WATCH_VARIABLES: usize = 512 * 1024;

impl JobVariables {
    /// The variables of jobs that do not run yet.
    pub(crate) fn new(plan: &Plan) -> Self {
        let (mut new, mut names, mut pids) = (Self::default(), Vec::new(), Vec::new());
        for job in &plan.jobs {
            if let Some(service) = &job.service {
                new.values.insert(names.len(), service.address.to_string());
                names.push(ip_variable(&job.name));
            }
            pids.push(names.len());
            names.push(format!("CONTAINERPILOT_{}_PID", variable_name(base_name(&job.name))));
        }
        new.watches = plan.watches.iter().map(WatchVariable::of).collect();
        new.first_lock = names.len();
        names.extend(plan.locks.iter().map(|lock| lock_variable(&lock.name)));
        (new.names, new.pid_indices) = (names.into(), pids.into());
        new
    }

    /// A number that changes with every change of the variables.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The variables. Of two with the same name, the later one wins.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        let set = self.overrides.iter().map(|(name, value)| (name, value.as_deref()));
        let of_jobs = self.values.iter();
        let of_jobs =
            of_jobs.filter_map(|(index, value)| Some((self.names.get(*index)?, Some(value.as_str()))));
        let of_watches = self.watches.iter();
        let of_watches = of_watches.map(|watch| (&watch.name, watch.text.as_ref().map(WatchText::as_str)));
        set.chain(of_jobs).chain(of_watches).filter_map(|(name, value)| Some((name.as_str(), value?)))
    }

    /// All variables that `putenv` has set or unset.
    #[must_use]
    pub const fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }

    /// The variables that a process must not inherit from the supervisor.
    pub fn unset(&self) -> impl Iterator<Item = &str> {
        self.overrides.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str())
    }

    /// Returns true if a later version has other pids, and nothing else has changed since.
    pub(crate) const fn differs_only_in_pids(&self, later: &Self) -> bool {
        self.settings == later.settings
    }

    /// Takes what follows from the plan.
    pub(crate) fn take_names(&mut self, of_plan: &Self) {
        self.names = Arc::clone(&of_plan.names);
        self.pid_indices = Arc::clone(&of_plan.pid_indices);
        self.first_lock = of_plan.first_lock;
    }

    pub(crate) const fn overrides_mut(&mut self) -> &mut Arc<Overrides> {
        &mut self.overrides
    }

    const fn change_settings(&mut self) {
        self.version += 1;
        self.settings = self.version;
    }

    pub(crate) fn set(&mut self, name: String, value: Option<String>) {
        self.change_settings();
        Arc::make_mut(&mut self.overrides).insert(name, value.filter(|value| !value.is_empty()));
    }

    pub(crate) fn set_pid(&mut self, job: JobIx, pid: Option<i32>) {
        self.version += 1;
        if let Some(index) = self.pid_indices.get(job.index()).copied() {
            self.set_value(index, pid.map(|pid| pid.to_string()));
        }
    }

    fn set_value(&mut self, index: usize, value: Option<String>) {
        match value {
            Some(value) => self.values.insert(index, value),
            None => self.values.remove(&index),
        };
    }

    /// Sets what a watch has found. Returns false if it is too long for a variable, which then is not set.
    pub(crate) fn set_watch(&mut self, watch: WatchIx, text: Option<WatchText>) -> bool {
        self.change_settings();
        let others = self.watches.iter().enumerate().filter(|(nth, _)| *nth != watch.index());
        let others = others.filter_map(|(_, other)| other.text.as_ref());
        let others: usize = others.map(|text| text.as_str().len()).sum();
        let fits = |text: &WatchText| {
            let length = text.as_str().len();
            length <= MAX_WATCH_VARIABLE && length + others <= MAX_WATCH_VARIABLES
        };
        let all_fit = text.as_ref().is_none_or(fits);
        if let Some(variable) = self.watches.get_mut(watch.index()) {
            variable.text = text.filter(|_| all_fit);
        }
        all_fit
    }

    /// Sets the fencing number of a lock, while it is held (D14).
    pub(crate) fn set_lock(&mut self, lock: LockIx, fencing: Option<u64>) {
        self.change_settings();
        self.set_value(self.first_lock + lock.index(), fencing.map(|fencing| fencing.to_string()));
    }

    /// Takes the variables set by `putenv` from the previous plan, and a version that was never used before.
    pub(crate) fn continue_from(&mut self, old: &Self) {
        self.version = old.version;
        self.change_settings();
        self.overrides = Arc::clone(&old.overrides);
    }
}

/// The variable with the address of an advertised job.
#[must_use]
pub fn ip_variable(job: &str) -> String {
    format!("CONTAINERPILOT_{}_IP", variable_name(job))
}

/// The variable with what a watch has found (D12).
#[must_use]
pub fn watch_variable(watch: &str) -> String {
    format!("CONTAINERPILOT_WATCH_{}", variable_name(watch))
}

/// The variable with the fencing number of a lock.
#[must_use]
pub fn lock_variable(lock: &str) -> String {
    format!("CONTAINERPILOT_LOCK_{}", variable_name(lock))
}

/// A name in upper case, with every run of other characters replaced by one `_`.
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

/// The base name without its extension, as 3.8 names the pid of every job. A name that is only an extension is kept.
fn base_name(name: &str) -> &str {
    let base = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
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

    #[test]
    fn p7_pid_is_named_by_the_base_name_without_extension() {
        let names = ["db", "db.sh", "/usr/bin/app.sh", "/opt/set.up.sh", "my-db.2", ".profile", "bin/app/"];
        assert_eq!(names.map(base_name), ["db", "db", "app", "set.up", "my-db", ".profile", "app"]);
    }
}
