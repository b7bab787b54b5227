//! Problems: what is wrong, where it stands in the user's own text, and what to do about it (C5).
//!
//! Whoever finds a problem knows a place in the rendered text (or, in the template itself, in the source).
//! [`Report`] traces it back to the source once, at the end, and shows the line with a caret. What came out
//! of a `{{ … }}` is shown as the action that made it, together with what it rendered to.

mod display;
mod trace;
mod view;

use crate::span::{SourceMap, Span};

use trace::{LineIndex, locate, settle, trace};

pub use display::{Display, Style};
pub use trace::looks_secret;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The text cannot be understood, or asks for something impossible. Nothing is started.
    Error,
    /// The text is understood, but part of it can never work (C7). 3.8 starts such a file without a word,
    /// so the supervisor starts it with a warning; `check` refuses it.
    Fault,
    /// It works, but probably not as meant.
    Warning,
}

/// The number of a file in a [`Report`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u16);

impl FileId {
    /// The number of the file at an index.
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
    /// The range, in the rendered text or in the source.
    pub span: Span,
    /// Whether `span` counts in the source.
    pub in_source: bool,
}

impl Place {
    /// A place in the rendered text.
    #[must_use]
    pub fn rendered(file: FileId, span: Span) -> Self {
        Self { file, span, in_source: false }
    }

    /// A place in the text as the user wrote it.
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

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where; a problem of the environment has no place.
    pub place: Option<Place>,
    /// A few words beside the caret.
    pub label: Option<String>,
    /// What to do.
    pub help: Option<String>,
    /// Where a text was cut off before its end. If that came out of a template, it is the place to show.
    pub cut: Option<Place>,
}

impl Problem {
    /// A problem at a place.
    #[must_use]
    pub fn new(severity: Severity, place: Place, message: impl Into<String>) -> Self {
        Self { severity, message: message.into(), place: Some(place), label: None, help: None, cut: None }
    }

    /// A problem that is not in any file.
    #[must_use]
    pub fn unlocated(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, message: message.into(), place: None, label: None, help: None, cut: None }
    }

    /// With words beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// With advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Returns true if an error in a section, or in any file, already mentions a key. A consequence of such an error is not
/// reported again: the key itself was wrong, or an unknown key was probably meant to be it.
pub(crate) fn is_reported(problems: &[Problem], section: Option<Place>, key: &str) -> bool {
    let quoted = format!("`{key}`");
    let mentions = |problem: &Problem| {
        problem.message.contains(&quoted) || problem.help.as_ref().is_some_and(|help| help.contains(&quoted))
    };
    let inside = |place: Place| section.is_none_or(|section| section.contains(place));
    let mut errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.any(|problem| problem.place.is_some_and(inside) && mentions(problem))
}

/// A file as it was written and as it was rendered.
#[derive(Clone, Debug, Default)]
pub struct SourceFile {
    /// The name the user knows it by.
    pub name: String,
    /// The text as written.
    pub source: Vec<u8>,
    /// The text after rendering.
    pub rendered: Vec<u8>,
    /// From rendered to written positions.
    pub map: SourceMap,
}

/// All problems of a configuration, with the files they are in.
#[derive(Clone, Debug, Default)]
pub struct Report {
    files: Vec<SourceFile>,
    problems: Vec<Located>,
}

/// A problem with its place found in the source.
#[derive(Clone, Debug)]
pub struct Located {
    /// The problem.
    pub problem: Problem,
    /// Where it stands, if anywhere.
    pub location: Option<Location>,
}

/// A place in the source, as people count.
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
    /// Action and what it rendered to, where the text came out of a template.
    pub produced: Option<Produced>,
}

/// What an action made of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Produced {
    /// The rendered text, shortened; hidden where it looks like a secret.
    pub rendered: String,
}

impl Report {
    /// Locates the problems, drops repetitions (a `range` renders the same line many times) and sorts them
    /// by place.
    #[must_use]
    pub fn new(files: Vec<SourceFile>, problems: Vec<Problem>) -> Self {
        let lines: Vec<LineIndex> = files.iter().map(|file| LineIndex::new(&file.source)).collect();
        let mut located: Vec<Located> = problems
            .into_iter()
            .map(|mut problem| {
                let location = problem.place.and_then(|place| {
                    let index = usize::from(place.file.0);
                    let file = files.get(index)?;
                    let traced = trace(file, place, problem.cut.filter(|cut| cut.file == place.file));
                    settle(&mut problem, file, &traced);
                    Some(locate(file, lines.get(index)?, place.file, traced))
                });
                Located { problem, location }
            })
            .collect();
        located.sort_by_key(|one| one.location.as_ref().map(|at| (at.file, at.span.start, at.span.end)));
        located.dedup_by(|a, b| {
            a.problem.message == b.problem.message
                && a.location.as_ref().map(|at| (at.file, at.span))
                    == b.location.as_ref().map(|at| (at.file, at.span))
        });
        Self { files, problems: located }
    }

    /// The problems, in the order of their places.
    #[must_use]
    pub fn problems(&self) -> &[Located] {
        &self.problems
    }

    /// The name of a file.
    #[must_use]
    pub fn file_name(&self, file: FileId) -> &str {
        self.files.get(usize::from(file.0)).map_or("", |file| &file.name)
    }

    /// How many problems there are of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|one| one.problem.severity == severity).count()
    }

    /// The report for a person.
    #[must_use]
    pub fn display(&self, style: Style) -> Display<'_> {
        Display::new(self, style)
    }
}
