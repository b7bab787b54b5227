//! Why something is in its current state.

use std::borrow::Cow;

use containerpilot_api::SubjectKind;
use containerpilot_core::catalog::connectivity::Known;
use containerpilot_core::ids::{FileIx, LockIx, WatchIx};
use containerpilot_core::plan::Command;
use containerpilot_core::report::explain::Explanation;
use containerpilot_core::report::explain_file::FileExplanation;
use containerpilot_core::report::explain_lock::LockExplanation;
use containerpilot_core::report::explain_watch::WatchExplanation;
use containerpilot_core::report::redact::Disclosure;
use containerpilot_core::{Core, Time};

use crate::catalog::CatalogKnowledge;
use crate::clock::WallClock;
use crate::lookup::{LookupError, Subject, find, find_job};

/// Why something is in its current state.
#[derive(Debug)]
pub struct Explained {
    pub subject: ExplainedSubject,
    pub now: Time,
    pub clock: WallClock,
}

#[derive(Debug)]
pub enum ExplainedSubject {
    Job(Box<ExplainedJob>),
    Watch(WatchExplanation),
    Lock(LockExplanation),
    File(FileExplanation),
}

/// Why a job is in its current state.
#[derive(Debug)]
pub struct ExplainedJob {
    pub explanation: Explanation,
    /// What is known about its service.
    pub service: Option<Known>,
    /// The names of all jobs, to which the explanation refers by index.
    pub names: Vec<String>,
    /// The name under which the log keeps its lines. The explanation has another one if that is not disclosed.
    pub logged_as: String,
    /// Its command line, if that is disclosed.
    pub command: Option<String>,
}

impl ExplainedSubject {
    pub fn sentences(&self) -> Vec<String> {
        match self {
            Self::Job(job) => job.explanation.sentences(),
            Self::Watch(explained) => explained.sentences.clone(),
            Self::Lock(explained) => explained.sentences.clone(),
            Self::File(explained) => explained.sentences.clone(),
        }
    }
}

/// Why something is in its current state, without the texts that are not disclosed.
pub fn explain(
    core: &Core,
    catalog: &impl CatalogKnowledge,
    subject: &Subject,
    shown: Option<Disclosure>,
) -> Result<ExplainedSubject, LookupError> {
    let viewed = shown.map_or(Cow::Borrowed(core), |shown| Cow::Owned(core.redacted(shown)));
    let name = &subject.name;
    Ok(match subject.kind {
        SubjectKind::Watch => {
            let names: Vec<&str> = viewed.plan().watches.iter().map(|watch| watch.name.as_str()).collect();
            let watch = WatchIx::at(find(subject.kind, name, &names)?);
            let explained = viewed.explain_watch(watch, catalog.watch_trouble(name).as_ref());
            ExplainedSubject::Watch(explained.ok_or(LookupError::NoAnswer)?)
        }
        SubjectKind::Lock => {
            let names: Vec<&str> = viewed.plan().locks.iter().map(|lock| lock.name.as_str()).collect();
            let lock = LockIx::at(find(subject.kind, name, &names)?);
            let explained = viewed.explain_lock(lock, catalog.lock_trouble(name).as_ref());
            ExplainedSubject::Lock(explained.ok_or(LookupError::NoAnswer)?)
        }
        SubjectKind::File => {
            let names: Vec<&str> = viewed.plan().files.iter().map(|file| file.name.as_str()).collect();
            let file = FileIx::at(find(subject.kind, name, &names)?);
            ExplainedSubject::File(viewed.explain_file(file).ok_or(LookupError::NoAnswer)?)
        }
        SubjectKind::Job => {
            let job = find_job(viewed.plan(), name)?;
            // Not of the copy: a name may be another one there.
            let planned = core.plan().jobs.get(job.index()).ok_or(LookupError::NoAnswer)?;
            let service = planned.service.as_ref().and_then(|service| catalog.known(service));
            let mut explanation = viewed.explain(job, service.as_ref());
            explanation.add_troubles(|watch| catalog.watch_trouble(watch));
            let command = planned.exec.program().filter(|_| shown.is_none_or(|shown| shown.commands));
            ExplainedSubject::Job(Box::new(ExplainedJob {
                explanation,
                service,
                names: viewed.plan().jobs.iter().map(|job| job.name.clone()).collect(),
                logged_as: planned.name.clone(),
                command: command.map(Command::line),
            }))
        }
    })
}

#[cfg(test)]
mod tests {
    use containerpilot_config::host::StaticHost;
    use containerpilot_config::{ConfigFile, Options, load};
    use containerpilot_core::catalog::connectivity::Trouble;
    use containerpilot_core::plan::Service;

    use super::*;
    use crate::catalog::ConsulReport;

    /// Nothing is known.
    struct Unknown;

    impl CatalogKnowledge for Unknown {
        fn consul(&self) -> Option<ConsulReport> {
            None
        }
        fn known(&self, _: &Service) -> Option<Known> {
            None
        }
        fn watch_trouble(&self, _: &str) -> Option<Trouble> {
            None
        }
        fn lock_trouble(&self, _: &str) -> Option<Trouble> {
            None
        }
    }

    fn core(text: &str) -> Core {
        let input = ConfigFile { name: "test".to_owned(), text: text.as_bytes().to_vec() };
        let options = Options { version: "0" };
        Core::new(load(vec![input], &StaticHost::default(), options).plan.unwrap())
    }

    #[test]
    fn x9_unknown_name_of_a_watch_lock_or_file_has_a_hint() {
        let core = core(
            "{ jobs: [{ name: 'a', exec: 'x' }], locks: [{ name: 'leader' }],
               watches: [{ name: 'db', tcp: 'localhost:1', interval: 1 }] }",
        );
        let hint = |kind, name: &str| {
            let subject = Subject { kind, name: name.to_owned() };
            match explain(&core, &Unknown, &subject, None) {
                Err(LookupError::NotFound(hint)) => hint,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(hint(SubjectKind::Watch, "bd"), "did you mean `watch.db`?");
        assert_eq!(hint(SubjectKind::Lock, "other"), "the locks are: leader");
        assert_eq!(hint(SubjectKind::File, "x"), "the configuration has no files");
        assert_eq!(hint(SubjectKind::Job, "b"), "the jobs are: a");
    }
}
