//! The job, watch, lock or file that a name means.

use containerpilot_api::SubjectKind;
use containerpilot_api::job_names::{self, NamedJob, ambiguous_job, name_a_replica, unknown_name_hint};
use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{Plan, Target};

/// The subject of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub kind: SubjectKind,
    pub name: String,
}

/// Why a name does not identify one job, watch, lock or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// Nothing has this name; with a hint which name may be meant.
    NotFound(String),
    /// This many jobs have the name.
    Ambiguous(usize),
    /// It is the name of a job with this many replicas (W20), and not of one of them.
    Replicas(usize),
    /// The loop did not answer: the supervisor is exiting, or answering has failed.
    NoAnswer,
}

impl LookupError {
    /// In one sentence.
    pub fn words(&self, kind: SubjectKind, name: &str) -> String {
        match self {
            Self::NotFound(hint) => format!("there is no {} `{name}`; {hint}", kind.word()),
            Self::Ambiguous(count) => ambiguous_job(name, *count),
            Self::Replicas(count) => name_a_replica(name, *count),
            Self::NoAnswer => {
                "no answer: the supervisor is exiting, or has an internal error (see its log)".to_owned()
            }
        }
    }
}

/// The place of a watch, lock or file with this name.
pub fn find(kind: SubjectKind, name: &str, known: &[&str]) -> Result<usize, LookupError> {
    let place = known.iter().position(|other| *other == name);
    place.ok_or_else(|| LookupError::NotFound(unknown_name_hint(kind, name, known)))
}

/// The job with this name, or all jobs of a group or all replicas of a job (W20, W22).
pub fn find_jobs(plan: &Plan, name: &str) -> Result<Vec<JobIx>, LookupError> {
    match find_job(plan, name) {
        Err(error @ (LookupError::NotFound(_) | LookupError::Replicas(_))) => {
            let target = Target::named(name);
            let included = plan.jobs.iter().enumerate().filter(|(_, job)| target.includes(job));
            let jobs: Vec<JobIx> = included.map(|(nth, _)| JobIx::at(nth)).collect();
            if jobs.is_empty() { Err(error) } else { Ok(jobs) }
        }
        found => found.map(|job| vec![job]),
    }
}

/// The job with this name. One of several jobs with the same name is `NAME:2`.
pub fn find_job(plan: &Plan, name: &str) -> Result<JobIx, LookupError> {
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    // `service.NAME` is the job that advertises the service.
    let job = match name.strip_prefix("service.") {
        Some(service) if !names.contains(&name) => service,
        _ => name,
    };
    match job_names::find_job(job, &names) {
        NamedJob::At(place) => Ok(JobIx::at(place)),
        NamedJob::Ambiguous(count) => Err(LookupError::Ambiguous(count)),
        NamedJob::Unknown => Err(match plan.jobs.iter().filter(|job| job.is_replica_of(name)).count() {
            0 => LookupError::NotFound(unknown_name_hint(SubjectKind::Job, name, &names)),
            replicas => LookupError::Replicas(replicas),
        }),
    }
}

#[cfg(test)]
mod tests {
    use containerpilot_config::host::StaticHost;
    use containerpilot_config::{ConfigFile, Options, load};

    use super::*;

    fn plan(text: &str) -> Plan {
        let input = ConfigFile { name: "test".to_owned(), text: text.as_bytes().to_vec() };
        let options = Options { version: "0" };
        load(vec![input], &StaticHost::default(), options).plan.unwrap()
    }

    const JOBS: &str = "{ jobs: [
        { name: 'web', exec: 'x' }, { name: 'web', exec: 'y' }, { name: 'db', exec: 'z' }, { name: 'web:2', exec: 'z' },
    ] }";

    #[test]
    fn x2_name_identifies_one_job_or_is_an_error() {
        let plan = plan(JOBS);
        let found = |name: &str| find_job(&plan, name);
        assert_eq!(found("db"), Ok(JobIx(2)));
        assert_eq!(found("db:1"), Ok(JobIx(2)));
        assert_eq!(found("web"), Err(LookupError::Ambiguous(2)));
        assert_eq!(found("web:1"), Ok(JobIx(0)));
        assert_eq!(found("web:2"), Ok(JobIx(3)), "an exact name is preferred");
        let not_found = |hint: &str| Err(LookupError::NotFound(hint.to_owned()));
        assert_eq!(found("web:3"), not_found("did you mean `web:2`?"));
        assert_eq!(found("web:0"), not_found("did you mean `web:2`?"));
        assert_eq!(found("dbb"), not_found("did you mean `db`?"));
        assert_eq!(found("postgres"), not_found("the jobs are: web, web, db, web:2"));
        assert_eq!(found(""), not_found("the jobs are: web, web, db, web:2"));
    }
}
