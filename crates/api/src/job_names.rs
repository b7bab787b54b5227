//! Names of jobs and groups in requests: what is said about one that is unknown or not unique.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_config::suggest;
use containerpilot_core::inserted;

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

/// Which job may be meant by a name that no job has: the nearest name, or all of them.
pub fn unknown_job_hint<'a>(name: &str, jobs: impl Iterator<Item = &'a str> + Clone) -> String {
    let names: Vec<&str> = jobs.clone().collect();
    match suggest::nearest(name, jobs) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.len() > 20 => "`containerpilot status` lists all jobs".to_owned(),
        None => format!("the jobs are: {}", names.join(", ")),
    }
}

/// W22: the jobs of a group, by the names that identify them. An error names the groups.
pub fn group_members<'a>(
    name: &str,
    jobs: impl Iterator<Item = (&'a str, &'a [String])> + Clone,
) -> Result<Vec<String>, String> {
    let group = name.strip_prefix('@').unwrap_or(name);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut members = Vec::new();
    for (job, groups) in jobs.clone() {
        let nth = counts.entry(job).or_default();
        *nth += 1;
        if groups.iter().any(|other| other == group) {
            members.push((job, *nth));
        }
    }
    if members.is_empty() {
        let groups: BTreeSet<String> =
            inserted(jobs.flat_map(|(_, groups)| groups).map(|group| format!("@{group}")));
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let hint = match suggest::nearest(name, groups.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if groups.is_empty() => "no job has `groups`".to_owned(),
            None => format!("the groups are: {}", groups.join(", ")),
        };
        return Err(format!("there is no group `{name}`; {hint}"));
    }
    let is_alone = |job: &str| counts.get(job).is_none_or(|count| *count == 1);
    let names = members
        .into_iter()
        .map(|(job, nth)| if is_alone(job) { job.to_owned() } else { format!("{job}:{nth}") });
    Ok(names.collect())
}
