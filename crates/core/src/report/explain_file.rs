//! The state of a rendered file, and what depends on it (D15, X9).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::files::FileOverview;
use crate::ids::{FileIx, JobIx};
use crate::plan::Repeat;
use crate::report::words;
use crate::state::journal::Origin;
use crate::supervisor::Core;

/// The state of a rendered file, and what depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct FileExplanation {
    /// The full status of the file.
    pub file: FileOverview,
    /// The explanation line by line; the first line is a summary.
    pub sentences: Vec<String>,
}

impl Core {
    /// Explains the state of a rendered file. `None` if there is no such file.
    #[must_use]
    pub fn explain_file(&self, file: FileIx) -> Option<FileExplanation> {
        let source = format!("file.{}", self.plan().files.get(file.index())?.name);
        let (files, view) = (&self.plan_state.parts.files, self.file_view());
        let overview = files.overview(file, view);
        let mut lines = files.explain(&overview, view);
        let dependents: Vec<String> =
            self.all_jobs().flat_map(|job| self.uses_of_file(file, job, &source)).collect();
        if dependents.is_empty() {
            lines.push("  no job waits for it".into());
        }
        lines.extend(dependents);
        Some(FileExplanation { file: overview, sentences: lines })
    }

    /// The events of a file that start a job, and whether the job requires it.
    fn uses_of_file(&self, file: FileIx, job: JobIx, source: &str) -> Vec<String> {
        let (when, name) = (&self.planned(job).when, &self.planned(job).name);
        let word = if when.repeat() == Repeat::Each { "each time" } else { "when" };
        let graph = &self.plan_state.graph;
        let patterns = when.patterns().iter().enumerate();
        let own = patterns.filter(|(nth, _)| graph.origin_of_pattern(job, *nth) == Some(Origin::File(file)));
        let starts = own.map(|(_, event)| {
            let condition = words::condition(source, event.code);
            format!("  starts {name} {word} {condition}; {}", self.summary(job))
        });
        let required = graph.file_requirers(file).contains(&job);
        let requires = required.then(|| format!("  required by {name}; {}", self.summary(job)));
        starts.chain(requires).collect()
    }
}
