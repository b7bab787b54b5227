//! What a job requires, and after which jobs it stops (W18, S10). Unknown names are found by `validate`.

use containerpilot_core::plan::{Job, RequiredSource, Requirement};

use super::{Lower, defaults};
use crate::decode::{Section, Spanned};
use crate::fields::{JobFields, RequirementFields};
use crate::values::Either;

impl Lower<'_> {
    /// The requirements of a job. A name that is that of a watch is resolved later, when all names are known.
    pub(super) fn requires(&mut self, fields: &JobFields) -> Option<Vec<Requirement>> {
        let given = fields.requires.iter().flat_map(|given| &given.value);
        let mut requires: Vec<Requirement> = Vec::new();
        let mut complete = true;
        for item in given {
            let Some((name, bind)) = self.requirement(item) else {
                complete = false;
                continue;
            };
            let source = match (name.strip_prefix("watch."), name.strip_prefix("lock.")) {
                (Some(watch), _) => RequiredSource::Watch(watch.to_owned()),
                (None, Some(lock)) => RequiredSource::Lock(lock.to_owned()),
                (None, None) => RequiredSource::Job(name.clone()),
            };
            if matches!(source, RequiredSource::Lock(_)) && bind == Some(false) {
                let message = format!("`{name}` is always bound: without the lock the job must not run");
                self.error(item.place, message, "remove `bind`");
                complete = false;
            }
            let bind = bind.unwrap_or_else(|| defaults::bind(&source));
            if requires.iter().any(|other| other.source == source) {
                self.error(item.place, format!("`{name}` is required twice"), "remove one of them");
                complete = false;
                continue;
            }
            requires.push(Requirement { source, bind });
        }
        complete.then_some(requires)
    }

    fn requirement(&mut self, item: &Spanned<Either<RequirementFields>>) -> Option<(String, Option<bool>)> {
        let (name, bind) = match &item.value {
            Either::Text(name) => (name.clone(), None),
            Either::Object(fields) => match &fields.source {
                Some(source) => {
                    let bind = fields.bind.as_ref()?;
                    (source.value.clone(), bind.written.then_some(bind.value))
                }
                None => {
                    let at = fields.place.first_byte();
                    self.required(&RequirementFields::INFO, fields.place, at, "source");
                    return None;
                }
            },
        };
        if name.is_empty() {
            self.error(
                item.place,
                "a requirement has no name",
                "write the name of a job, watch.NAME, file.NAME or lock.NAME",
            );
            return None;
        }
        Some((name, bind))
    }
}

/// The name that an element of `requires` gives.
pub(crate) fn required_name(item: &Spanned<Either<RequirementFields>>) -> Option<&str> {
    match &item.value {
        Either::Text(name) => Some(name),
        Either::Object(fields) => fields.source.as_ref().map(|source| source.value.as_str()),
    }
}

/// Resolves a required name that is that of a watch but not of a job to the watch, like a source of events (E1).
pub(super) fn resolve_requirements(
    job: &mut Job,
    is_job: impl Fn(&str) -> bool,
    is_watch: impl Fn(&str) -> bool,
) {
    for Requirement { source, .. } in &mut job.requires {
        match source {
            RequiredSource::Job(name) if !is_job(name) && is_watch(name) => {
                *source = RequiredSource::Watch(std::mem::take(name));
            }
            RequiredSource::Job(name) if !is_job(name) && name.starts_with("file.") => {
                *source = RequiredSource::File(name.split_off("file.".len()));
            }
            RequiredSource::Job(_)
            | RequiredSource::Watch(_)
            | RequiredSource::File(_)
            | RequiredSource::Lock(_) => {}
        }
    }
}
