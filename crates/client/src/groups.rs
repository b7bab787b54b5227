//! Groups of jobs on the command line: `@web` stands for the jobs of the group (W22).

use containerpilot_api::job_names::group_members;
use containerpilot_api::responses::Status;
use containerpilot_command_line::failure::Failure;

use super::client::Client;

/// The jobs that names mean. The status is read only if one of them is a group.
pub(super) fn expanded(client: &Client, names: &[&str]) -> Result<Vec<String>, Failure> {
    if !names.iter().any(|name| is_group(name)) {
        return Ok(names.iter().map(|name| (*name).to_owned()).collect());
    }
    let status: Status = client.get("/v3/status")?.json()?;
    in_status(&status, names)
}

/// The same for a known status. Of several groups with the same job, the job is named once.
pub(super) fn in_status(status: &Status, names: &[&str]) -> Result<Vec<String>, Failure> {
    let mut jobs: Vec<String> = Vec::new();
    for name in names {
        if !is_group(name) {
            jobs.push((*name).to_owned());
            continue;
        }
        let known = status.jobs.iter().map(|job| (job.name.as_str(), job.groups.as_slice()));
        for member in group_members(name, known).map_err(Failure::Failed)? {
            if !jobs.contains(&member) {
                jobs.push(member);
            }
        }
    }
    Ok(jobs)
}

pub(super) fn is_group(name: &str) -> bool {
    name.starts_with('@')
}

#[cfg(test)]
mod tests {
    use super::*;
    use containerpilot_api::responses::Job;

    fn status() -> Status {
        let job = |name: &str, groups: &[&str]| Job {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..Job::default()
        };
        let jobs = vec![job("a", &["web"]), job("b", &["web", "blue"]), job("c", &[]), job("a", &["web"])];
        Status { jobs, ..Status::default() }
    }

    #[test]
    fn w22_a_group_stands_for_its_jobs() {
        let jobs = |names: &[&str]| in_status(&status(), names).map_err(|failure| failure.to_string());
        assert_eq!(jobs(&["@web"]).unwrap(), ["a:1", "b", "a:2"]);
        assert_eq!(jobs(&["c", "@blue", "@web"]).unwrap(), ["c", "b", "a:1", "a:2"]);
        assert_eq!(jobs(&["c", "c"]).unwrap(), ["c", "c"]);
    }

    #[test]
    fn w22_an_unknown_group_names_the_groups() {
        let error = |name: &str| in_status(&status(), &[name]).unwrap_err().to_string();
        assert_eq!(error("@wob"), "there is no group `@wob`; did you mean `@web`?");
        assert_eq!(error("@other"), "there is no group `@other`; the groups are: @blue, @web");
        let none = in_status(&Status::default(), &["@web"]).unwrap_err().to_string();
        assert_eq!(none, "there is no group `@web`; no job has `groups`");
    }
}
