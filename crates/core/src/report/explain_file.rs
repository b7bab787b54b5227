//! The state of a rendered file, and what depends on it (D15, X9).

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::ids::{FileIx, JobIx};
use crate::plan::{RenderedFile, Repeat};
use crate::report::words;
use crate::rules::watch_names;
use crate::state::file::FileStage;
use crate::state::journal::Origin;
use crate::supervisor::Core;
use crate::time::{Time, fmt_duration};

/// What happens with a rendered file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// It waits for the first answer of a watch.
    Waiting,
    /// Its inputs have changed and may do so again.
    Debouncing,
    /// It is being rendered.
    Rendering,
    /// Its test runs.
    Testing,
    /// It is being replaced.
    Installing,
    /// It has the text of its inputs.
    Rendered,
    /// It could not be rendered, and keeps its old text until its inputs change or the system lets it pass.
    Failed,
}

impl FileStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Debouncing,
        Self::Rendering,
        Self::Testing,
        Self::Installing,
        Self::Rendered,
        Self::Failed,
    ];

    /// Returns true from the start of a rendering to its end.
    #[must_use]
    pub const fn is_in_progress(self) -> bool {
        matches!(self, Self::Rendering | Self::Testing | Self::Installing)
    }

    /// The name in the JSON of the control socket and for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Debouncing => "debouncing",
            Self::Rendering => "rendering",
            Self::Testing => "testing",
            Self::Installing => "installing",
            Self::Rendered => "rendered",
            Self::Failed => "failed",
        }
    }
}

/// Everything known about a rendered file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileOverview {
    /// The file.
    pub file: FileIx,
    /// Its name.
    pub name: String,
    /// The path that is written.
    pub to: String,
    /// What happens with it.
    pub status: FileStatus,
    /// The watches that have not answered.
    pub waits_for: Vec<String>,
    /// When it was last known to have the text of its inputs.
    pub rendered_at: Option<Time>,
    /// Why the last rendering failed, and when.
    pub failure: Option<(Time, String)>,
    /// How often it was written.
    pub changes: u64,
    /// How often it was rendered.
    pub renders: u64,
    /// How often a rendering failed.
    pub failures: u64,
}

/// The state of a rendered file, and what depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct FileExplanation {
    /// The full status of the file.
    pub file: FileOverview,
    /// The explanation line by line; the first line is a summary.
    pub sentences: Vec<String>,
}

impl Core {
    /// Everything known about the rendered files.
    #[must_use]
    pub fn files_overview(&self) -> Vec<FileOverview> {
        (0..self.plan().files.len()).map(|nth| self.file_overview(FileIx::at(nth))).collect()
    }

    fn file_overview(&self, file: FileIx) -> FileOverview {
        let (planned, state) = (self.planned_file(file), self.file(file));
        let waits_for = if state.pending.is_some() { self.unanswered_watches(file) } else { Vec::new() };
        let status = match state.stage {
            FileStage::Debouncing(_) => FileStatus::Debouncing,
            FileStage::Rendering(_) => FileStatus::Rendering,
            FileStage::Testing { .. } => FileStatus::Testing,
            FileStage::Installing(_) => FileStatus::Installing,
            FileStage::Retrying(_) => FileStatus::Failed,
            FileStage::Idle if state.failure.is_some() => FileStatus::Failed,
            FileStage::Idle if state.pending.is_some() || state.rendered_at.is_none() => FileStatus::Waiting,
            FileStage::Idle => FileStatus::Rendered,
        };
        FileOverview {
            file,
            name: planned.name.clone(),
            to: planned.to.clone(),
            status,
            waits_for,
            rendered_at: state.rendered_at,
            failure: state.failure.clone(),
            changes: state.changes,
            renders: state.renders,
            failures: state.failures,
        }
    }

    /// Explains the state of a rendered file. `None` if there is no such file.
    #[must_use]
    pub fn explain_file(&self, file: FileIx) -> Option<FileExplanation> {
        let planned = self.plan().files.get(file.index())?;
        let overview = self.file_overview(file);
        let source = format!("file.{}", planned.name);
        let mut lines = vec![format!("{source}: {}", self.file_words(&overview))];
        if let (Some((at, why)), Some(_)) = (&overview.failure, overview.rendered_at) {
            let ago = fmt_duration(self.now.since(*at));
            lines.push(format!("  the last rendering failed {ago} ago: {why}"));
        }
        if let FileStage::Retrying(timer) = self.file(file).stage {
            lines.push(format!("  tried again in {}", fmt_duration(timer.at().since(self.now))));
        }
        lines.push(format!("  written to {}, {}", planned.to, self.inputs_words(planned)));
        let (changes, renders, failures) = (overview.changes, overview.renders, overview.failures);
        lines
            .push(format!("  rendered {renders} times, of which {failures} failed; written {changes} times"));
        let dependents: Vec<String> =
            self.all_jobs().flat_map(|job| self.uses_of_file(file, job, &source)).collect();
        if dependents.is_empty() {
            lines.push("  no job waits for it".into());
        }
        lines.extend(dependents);
        Some(FileExplanation { file: overview, sentences: lines })
    }

    fn file_words(&self, file: &FileOverview) -> String {
        let ago = |at: Time| fmt_duration(self.now.since(at));
        match (file.status, file.rendered_at, &file.failure) {
            (FileStatus::Waiting, _, _) if !file.waits_for.is_empty() => {
                format!("waiting for the first answer of {}", watch_names(&file.waits_for))
            }
            (FileStatus::Failed, Some(at), _) => format!("has the text of {} ago", ago(at)),
            (FileStatus::Failed, None, Some((at, why))) => {
                format!("could not be rendered {} ago: {why}", ago(*at))
            }
            (FileStatus::Rendered, Some(at), _) => format!("rendered {} ago", ago(at)),
            (status, _, _) => status.name().into(),
        }
    }

    /// `from a.ctmpl with watch.app`
    fn inputs_words(&self, file: &RenderedFile) -> String {
        let template = &file.template_name;
        match file.watches.as_slice() {
            [] => format!("from {template}, which uses no watch"),
            watches => format!("from {template} with {}", watch_names(watches)),
        }
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
