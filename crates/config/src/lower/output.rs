//! The output of a job: L2 and L8.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use containerpilot_core::plan::{Job, JobLogging, JobOutput, LogFile, Output, REPLICA_VARIABLE, Record};

use super::Lower;
use super::replicas::Replicas;
use crate::decode::Spanned;
use crate::diagnostics::Place;
use crate::fields::{ConfigFields, JobFields, JobLoggingFields};
use crate::values::value_of;

/// The smallest `maxSize`: each rotation renames all old files.
const SMALLEST: u64 = 4 << 10;

impl Lower<'_> {
    /// What happens to the output of a job. `None` if that is wrong.
    pub(super) fn output(&mut self, job: &JobFields) -> Option<JobOutput> {
        let Some(given) = &job.logging else { return Some(JobOutput::default()) };
        let fields = &given.value;
        if is_raw(&job.logging) {
            let keys = [
                ("file", written(&fields.file)),
                ("maxSize", written(&fields.max_size)),
                ("keep", written(&fields.keep)),
                ("stderr", written(&fields.stderr)),
                ("join", written(&fields.join)),
            ];
            let Some((key, place)) = keys.into_iter().find_map(|(key, place)| Some((key, place?))) else {
                return Some(JobOutput::Raw);
            };
            let message =
                format!("`{key}` cannot be combined with `raw`: the supervisor does not see the output");
            self.error(place, message, "remove one of them");
            return None;
        }
        let file = self.log_file(job, fields);
        let join = match &fields.join {
            None => Some(None),
            Some(given) => self.pattern("join", given).map(Some),
        };
        Some(JobOutput::Logged(JobLogging { file: file?, stderr: value_of(&fields.stderr)?, join: join? }))
    }

    fn log_file(&mut self, job: &JobFields, fields: &JobLoggingFields) -> Option<Option<LogFile>> {
        let max_size = self.max_size(fields.max_size.as_ref()?);
        let Some(given) = &fields.file else {
            let sizes = [("maxSize", written(&fields.max_size)), ("keep", written(&fields.keep))];
            let alone = sizes.into_iter().find_map(|(key, place)| Some((key, place?)));
            if let Some((key, place)) = alone.filter(|_| !self.is_reported(fields.place, "file")) {
                let message = format!("`{key}` needs `file`: the log of the supervisor is not rotated by it");
                self.error(place, message, "for example: file: \"/var/log/app.log\"");
                return None;
            }
            return Some(None);
        };
        let path = &given.value;
        if let Some(stream) = ["stdout", "stderr"].into_iter().find(|name| *path == format!("/dev/{name}")) {
            let message = format!("`file` must be a regular file, not the {stream} of the supervisor");
            self.error(given.place, message, "remove it: the log is written there; or write raw: true");
            return None;
        }
        let has_number = path.contains(REPLICA_VARIABLE);
        if job.replicas.is_none() && self.is_reported(job.place, "replicas") {
            return None;
        }
        if job.replicas.is_some() != has_number {
            let (message, help) = if has_number {
                ("`$CONTAINERPILOT_REPLICA` in `file` needs `replicas`", "remove it from the path".to_owned())
            } else {
                let (stem, extension) = match path.rsplit_once('.') {
                    Some((stem, extension)) if !extension.contains('/') => (stem, format!(".{extension}")),
                    _ => (path.as_str(), String::new()),
                };
                let help = format!("add the number: \"{stem}-${{{REPLICA_VARIABLE}}}{extension}\"");
                ("each replica needs a `file` of its own", help)
            };
            self.error(given.place, message, &help);
            return None;
        }
        let keep = value_of(&fields.keep).and_then(|keep| u32::try_from(keep).ok())?;
        Some(Some(LogFile { path: path.clone(), max_size: max_size?, keep }))
    }

    fn max_size(&mut self, given: &Spanned<u64>) -> Option<Option<NonZeroU64>> {
        if (1..SMALLEST).contains(&given.value) {
            let help = "for example: \"10MB\"; 0 means no rotation";
            self.error(given.place, "`maxSize` must be at least 4KB", help);
            return None;
        }
        Some(NonZeroU64::new(given.value))
    }

    /// L8: every file belongs to one job, together with the names of its old files.
    pub(super) fn log_files(
        &mut self,
        fields: &ConfigFields,
        jobs: &[Option<Job>],
        replicas: &[Option<Replicas>],
        record: Option<&Record>,
    ) {
        // What each path belongs to, and how many old files it has.
        let mut taken: BTreeMap<String, (String, u32)> = BTreeMap::new();
        let log = fields.logging.as_ref().and_then(|given| value_of(&given.value.output));
        if let Some(Output::File(path)) = log {
            taken.insert(path, ("the supervisor".to_owned(), 0));
        }
        if let Some(Record { file: Some(file), .. }) = record {
            taken.insert(file.path.clone(), ("the recording".to_owned(), file.keep));
        }
        let mut files = Vec::new();
        let written = fields.jobs.iter().flat_map(|given| &given.value);
        for ((fields, job), replicas) in written.zip(jobs).zip(replicas) {
            let (Some(given), Some(job)) = (&fields.logging, job) else { continue };
            let Some(place) = given.value.file.as_ref().map(|given| given.place) else { continue };
            let group = replicas.map(|replicas| replicas.of(job.clone()));
            let made: Vec<Job> = group.map_or_else(|| vec![job.clone()], |group| group.jobs().collect());
            for job in made {
                let Some(LogFile { path, keep, .. }) = job.output.file() else { continue };
                let owner = format!("the job `{}`", job.name);
                match taken.get(path) {
                    Some((other, _)) => {
                        self.not_its_own(format!("`{path}` is the file of {other}, too"), place)
                    }
                    None => {
                        taken.insert(path.clone(), (owner, *keep));
                        files.push((path.clone(), place));
                    }
                }
            }
        }
        for (path, place) in files {
            let rotated = path.rsplit_once('.').and_then(|(file, number)| {
                let (number, (owner, keep)) = (number.parse::<u32>().ok()?, taken.get(file)?);
                (1..=*keep).contains(&number).then(|| owner.clone())
            });
            if let Some(owner) = rotated {
                self.not_its_own(format!("`{path}` is the name of an old file of {owner}"), place);
            }
        }
    }

    fn not_its_own(&mut self, message: String, place: Place) {
        // Each replica, and each job with the same default, has the same problem.
        if !self.problems.iter().any(|problem| problem.place == Some(place)) {
            self.error(place, message, "each job needs a file of its own");
        }
    }
}

/// Returns true if the output of a job is written unchanged (L2).
pub(super) fn is_raw(logging: &Option<Spanned<JobLoggingFields>>) -> bool {
    logging.as_ref().and_then(|given| value_of(&given.value.raw)).unwrap_or(false)
}

/// The key of a field that is written in the file.
pub(super) fn written<T>(given: &Option<Spanned<T>>) -> Option<Place> {
    given.as_ref().filter(|given| given.written).map(|given| given.key)
}
