//! Names in requests: what one stands for, and what is said about one that is unknown or not unique.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_config::suggest;
use containerpilot_core::inserted;

use crate::SubjectKind;

/// The jobs that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedJob {
    At(usize),
    /// This many jobs have the name.
    Ambiguous(usize),
    Unknown,
}

/// The job with this name. One of several jobs with the same name is `NAME:2`.
pub fn find_job(name: &str, jobs: &[&str]) -> NamedJob {
    let places = |name: &str| -> Vec<usize> {
        jobs.iter().enumerate().filter(|(_, job)| **job == name).map(|(place, _)| place).collect()
    };
    let numbered = || {
        let (name, number) = name.rsplit_once(':')?;
        places(name).get(number.parse::<usize>().ok()?.checked_sub(1)?).copied()
    };
    match places(name).as_slice() {
        [place] => NamedJob::At(*place),
        [] => numbered().map_or(NamedJob::Unknown, NamedJob::At),
        several => NamedJob::Ambiguous(several.len()),
    }
}

/// The name that identifies each job, as [`find_job`] understands it.
pub fn job_ids(jobs: &[&str]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for job in jobs {
        *counts.entry(job).or_default() += 1;
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ids = Vec::with_capacity(jobs.len());
    for job in jobs {
        let nth = seen.entry(job).or_default();
        *nth += 1;
        ids.push(if counts.get(job) == Some(&1) { (*job).to_owned() } else { format!("{job}:{nth}") });
    }
    ids
}

/// Why a name does not identify one job.
pub fn ambiguous_job(name: &str, count: usize) -> String {
    let last = if count == 2 { "or" } else { "to" };
    format!("there are {count} jobs named `{name}`: use `{name}:1` {last} `{name}:{count}`")
}

/// Why the name of a job with replicas does not identify one job (W20).
pub fn name_a_replica(name: &str, count: usize) -> String {
    match count {
        1 => format!("`{name}` has `replicas`: use `{name}-1`"),
        2 => format!("`{name}` has 2 replicas: use `{name}-1` or `{name}-2`"),
        _ => format!("`{name}` has {count} replicas: use `{name}-1` to `{name}-{count}`"),
    }
}

/// What may be meant by a name that does not exist: the nearest of the known names, or all of them.
pub fn unknown_name_hint(kind: SubjectKind, name: &str, known: &[&str]) -> String {
    let (prefix, other) = match kind {
        SubjectKind::Job => {
            let many = known.len() > 20;
            (String::new(), many.then(|| "`containerpilot status` lists all jobs".to_owned()))
        }
        SubjectKind::Watch | SubjectKind::Lock | SubjectKind::File => {
            let none = known.is_empty().then(|| format!("the configuration has no {}", kind.plural()));
            (format!("{}.", kind.word()), none)
        }
    };
    hint(name, known, &prefix, kind.plural(), other)
}

/// The nearest of the known names; if there is none, `other`, or else all names.
fn hint(name: &str, known: &[&str], prefix: &str, plural: &str, other: Option<String>) -> String {
    match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{prefix}{near}`?"),
        None => other.unwrap_or_else(|| format!("the {plural} are: {}", known.join(", "))),
    }
}

/// W22: `@web` stands for the jobs of the group.
pub fn is_group(name: &str) -> bool {
    name.starts_with('@')
}

/// W22: the jobs of a group, by the names that identify them. An error names the groups.
pub fn group_members<'a>(
    name: &str,
    jobs: impl Iterator<Item = (&'a str, &'a [String])> + Clone,
) -> Result<Vec<String>, String> {
    let group = name.strip_prefix('@').unwrap_or(name);
    let names: Vec<&str> = jobs.clone().map(|(job, _)| job).collect();
    let members = job_ids(&names).into_iter().zip(jobs.clone());
    let members = members.filter(|(_, (_, groups))| groups.iter().any(|other| other == group));
    let members: Vec<String> = members.map(|(id, _)| id).collect();
    if members.is_empty() {
        let groups: BTreeSet<String> =
            inserted(jobs.flat_map(|(_, groups)| groups).map(|group| format!("@{group}")));
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let none = groups.is_empty().then(|| "no job has `groups`".to_owned());
        let hint = hint(name, &groups, "", "groups", none);
        return Err(format!("there is no group `{name}`; {hint}"));
    }
    Ok(members)
}
