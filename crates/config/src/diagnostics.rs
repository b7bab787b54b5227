//! Problems: what is wrong, where it is in the user's text, and what to do about it (C5).
//!
//! A problem is found at a place in the rendered text, or in the source of the template. [`Report`] maps all places to the
//! source at the end. The output of a `{{ … }}` is shown as the action, together with the rendered value.

mod display;
pub(crate) mod secrets;
mod trace;
mod view;

use crate::span::{SourceMap, Span};

use containerpilot_core::sort_by;
use secrets::message_without_passwords;
use trace::{LineIndex, amend, locate, trace};

pub use display::{Display, Style};

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration is invalid. Nothing is started.
    Error,
    /// The configuration is valid, but a part of it can never work (C7). 3.8 starts such a file without a message, so the
    /// supervisor starts it with a warning; `check` rejects it.
    Fault,
    /// It works, but probably not as intended.
    Warning,
}

/// The index of a file in a [`Report`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u16);

impl FileId {
    /// The id of the file at an index.
    #[must_use]
    pub fn at(index: usize) -> Self {
        Self(u16::try_from(index).unwrap_or(u16::MAX))
    }
}

/// A place in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// The range in the rendered text or in the source.
    pub span: Span,
    /// True if `span` is a range of the source.
    pub in_source: bool,
}

impl Place {
    /// A place in the rendered text.
    #[must_use]
    pub fn rendered(file: FileId, span: Span) -> Self {
        Self { file, span, in_source: false }
    }

    /// A place in the source.
    #[must_use]
    pub fn source(file: FileId, span: Span) -> Self {
        Self { file, span, in_source: true }
    }

    /// The first byte of the place, which is enough to point at a section.
    #[must_use]
    pub fn first_byte(self) -> Self {
        let start = self.span.start as usize;
        Self { span: Span::new(start, start + 1), ..self }
    }

    /// Returns true if `other` is inside this place.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.file == other.file && self.span.start <= other.span.start && other.span.end <= self.span.end
    }
}

/// A problem in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its severity.
    pub severity: Severity,
    /// What is wrong, without a full stop.
    pub message: String,
    /// Its place. A problem in an environment variable has none.
    pub place: Option<Place>,
    /// What to do.
    pub help: Option<String>,
    /// Another place that the problem is about, which is named in the help.
    pub other: Option<Place>,
}

impl Problem {
    /// A problem at a place.
    #[must_use]
    pub fn new(severity: Severity, place: Place, message: impl Into<String>) -> Self {
        Self { severity, message: message.into(), place: Some(place), help: None, other: None }
    }

    /// A problem without a place.
    #[must_use]
    pub fn unlocated(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, message: message.into(), place: None, help: None, other: None }
    }

    /// Adds help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Returns true if an error in a section, or in any file, already mentions a key. A consequence of such an error is not
/// reported again: the key itself was wrong, or an unknown key was probably meant to be it.
#[must_use]
pub fn is_reported(problems: &[Problem], section: Option<Place>, key: &str) -> bool {
    let quoted = format!("`{key}`");
    let mentions = |problem: &Problem| {
        problem.message.contains(&quoted) || problem.help.as_ref().is_some_and(|help| help.contains(&quoted))
    };
    let inside = |place: Place| section.is_none_or(|section| section.contains(place));
    let mut errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.any(|problem| problem.place.is_some_and(inside) && mentions(problem))
}

/// A file and its rendered text.
#[derive(Clone, Debug, Default)]
pub struct SourceFile {
    /// Its name for the user.
    pub name: String,
    /// The source.
    pub source: Vec<u8>,
    /// The rendered text.
    pub rendered: Vec<u8>,
    /// The map from the rendered text to the source.
    pub map: SourceMap,
}

/// All problems of a configuration, with its files.
#[derive(Clone, Debug, Default)]
pub struct Report {
    files: Vec<SourceFile>,
    problems: Vec<Located>,
}

/// A problem and its location in the source.
#[derive(Clone, Debug)]
pub struct Located {
    /// The problem.
    pub problem: Problem,
    /// Its location, if any.
    pub location: Option<Location>,
}

/// A location in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: FileId,
    /// The range in the source.
    pub span: Span,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The rendered value, if a template action printed the text.
    pub produced: Option<Produced>,
}

/// The output of a template action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Produced {
    /// The rendered text, shortened, or hidden if it may be a secret.
    pub rendered: String,
}

/// A place in the source: `FILE:LINE:COLUMN`.
#[must_use]
pub fn position(files: &[SourceFile], place: Place) -> Option<String> {
    let file = files.get(usize::from(place.file.0))?;
    let at = locate(file, &LineIndex::new(&file.source), place.file, trace(file, place));
    Some(format!("{}:{}:{}", file.name, at.line, at.column))
}

impl Report {
    /// Locates the problems, removes duplicates (a `range` renders the same line many times) and sorts them by place.
    #[must_use]
    pub fn new(files: Vec<SourceFile>, problems: Vec<Problem>) -> Self {
        let lines: Vec<LineIndex> = files.iter().map(|file| LineIndex::new(&file.source)).collect();
        let mut located: Vec<Located> = problems
            .into_iter()
            .map(|mut problem| {
                let location = problem.place.and_then(|place| {
                    let index = usize::from(place.file.0);
                    let (file, lines) = (files.get(index)?, lines.get(index)?);
                    let traced = trace(file, place);
                    amend(&mut problem, file, &traced);
                    Some(locate(file, lines, place.file, traced))
                });
                if let (Some(place), Some(help)) = (problem.other, &mut problem.help)
                    && let Some(at) = position(&files, place)
                {
                    help.push_str(&format!("; the other one is at {at}"));
                }
                problem.message = message_without_passwords(&problem.message);
                problem.help = problem.help.map(|help| message_without_passwords(&help));
                Located { problem, location }
            })
            .collect();
        let place = |one: &Located| one.location.as_ref().map(|at| (at.file, at.span.start, at.span.end));
        sort_by(&mut located, |one, other| place(one).cmp(&place(other)));
        located.dedup_by(|a, b| {
            a.problem.message == b.problem.message
                && a.location.as_ref().map(|at| (at.file, at.span))
                    == b.location.as_ref().map(|at| (at.file, at.span))
        });
        Self { files, problems: located }
    }

    /// The report with one more problem, which has no place.
    #[must_use]
    pub fn with(mut self, problem: Problem) -> Self {
        self.problems.insert(0, Located { problem, location: None });
        self
    }

    /// The problems, in the order of their places.
    #[must_use]
    pub fn problems(&self) -> &[Located] {
        &self.problems
    }

    /// The files.
    #[must_use]
    pub fn into_files(self) -> Vec<SourceFile> {
        self.files
    }

    /// The name of a file.
    #[must_use]
    pub fn file_name(&self, file: FileId) -> &str {
        self.files.get(usize::from(file.0)).map_or("", |file| &file.name)
    }

    /// The number of problems of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|one| one.problem.severity == severity).count()
    }

    /// The report with every warning as a fault, which `check` rejects (C9).
    #[must_use]
    pub fn strict(mut self) -> Self {
        for located in &mut self.problems {
            located.problem.severity = located.problem.severity.min(Severity::Fault);
        }
        self
    }

    /// The report for a person.
    #[must_use]
    pub fn display(&self, style: Style) -> Display<'_> {
        Display::new(self, style)
    }
}
