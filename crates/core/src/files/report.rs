//! What is known about a rendered file, and how it is said.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::files::Files;
use crate::files::state::FileStage;
use crate::ids::{FileIx, WatchIx};
use crate::plan::{Plan, RenderedFile};
use crate::state::dependency_graph::DependencyGraph;
use crate::time::{Time, fmt_duration};
use crate::watches::Watches;

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

/// What a report about files looks at.
#[derive(Clone, Copy)]
pub(crate) struct FileView<'a> {
    pub(crate) now: Time,
    pub(crate) plan: &'a Plan,
    pub(crate) graph: &'a DependencyGraph,
    pub(crate) watches: &'a Watches,
}

impl Files {
    pub(crate) fn overviews(&self, view: FileView<'_>) -> Vec<FileOverview> {
        self.all().map(|file| self.overview(file, view)).collect()
    }

    pub(crate) fn overview(&self, file: FileIx, view: FileView<'_>) -> FileOverview {
        let (planned, state) = (&view.plan.files[file.index()], &self.states[file.index()]);
        let waits_for = if state.pending.is_some() { unanswered(file, view) } else { Vec::new() };
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

    /// The state of a file, line by line; the first line is a summary.
    pub(crate) fn explain(&self, overview: &FileOverview, view: FileView<'_>) -> Vec<String> {
        let (planned, state) = (&view.plan.files[overview.file.index()], &self.states[overview.file.index()]);
        let mut lines = vec![format!("file.{}: {}", planned.name, words(overview, view.now))];
        if let (Some((at, why)), Some(_)) = (&overview.failure, overview.rendered_at) {
            let ago = fmt_duration(view.now.since(*at));
            lines.push(format!("  the last rendering failed {ago} ago: {why}"));
        }
        if let FileStage::Retrying(timer) = state.stage {
            lines.push(format!("  tried again in {}", fmt_duration(timer.at().since(view.now))));
        }
        lines.push(format!("  written to {}, {}", planned.to, inputs_words(planned)));
        let FileOverview { changes, renders, failures, .. } = overview;
        lines
            .push(format!("  rendered {renders} times, of which {failures} failed; written {changes} times"));
        lines
    }

    /// What a required file is doing, as a clause after "which".
    pub(crate) fn clause(&self, file: FileIx, view: FileView<'_>) -> String {
        let Some(state) = self.states.get(file.index()) else { return "does not exist".into() };
        match (&state.failure, state.rendered_at) {
            (_, Some(_)) => "is rendered".into(),
            (Some((_, why)), None) => format!("could not be rendered: {why}"),
            (None, None) => match unanswered(file, view) {
                open if open.is_empty() => "is being rendered".into(),
                open => format!("waits for the first answer of {}", watch_names(&open)),
            },
        }
    }

    /// Replaces the reasons of failures. The error of a template can quote the value of a variable or of a secret.
    pub(crate) fn redact(&mut self, hidden: &str) {
        for (_, why) in self.states.iter_mut().filter_map(|state| state.failure.as_mut()) {
            *why = hidden.into();
        }
    }
}

/// The watches of a file that have not answered.
fn unanswered(file: FileIx, view: FileView<'_>) -> Vec<String> {
    let keys = view.graph.watches_of_file(file).iter();
    let is_open = |watch: &WatchIx| view.watches.data(*watch).is_none();
    let named = view.plan.files[file.index()].watches.iter().zip(keys);
    named.filter(|(_, watch)| is_open(watch)).map(|(name, _)| name.clone()).collect()
}

fn words(file: &FileOverview, now: Time) -> String {
    let ago = |at: Time| fmt_duration(now.since(at));
    match (file.status, file.rendered_at, &file.failure) {
        (FileStatus::Waiting, _, _) if !file.waits_for.is_empty() => waiting_for_watches(&file.waits_for),
        (FileStatus::Failed, Some(at), _) => format!("has the text of {} ago", ago(at)),
        (FileStatus::Failed, None, Some((at, why))) => {
            format!("could not be rendered {} ago: {why}", ago(*at))
        }
        (FileStatus::Rendered, Some(at), _) => format!("rendered {} ago", ago(at)),
        (status, _, _) => status.name().into(),
    }
}

/// What a file waits for.
#[must_use]
pub fn waiting_for_watches(names: &[String]) -> String {
    format!("waiting for the first answer of {}", watch_names(names))
}

/// `from a.ctmpl with watch.app`
fn inputs_words(file: &RenderedFile) -> String {
    let template = &file.template_name;
    match file.watches.as_slice() {
        [] => format!("from {template}, which uses no watch"),
        watches => format!("from {template} with {}", watch_names(watches)),
    }
}

/// Names of watches as sources.
fn watch_names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("watch.{name}")).collect();
    names.join(" and ")
}
