//! Problems: what is wrong, where it stands in the user's own text, and what to do about it (C5).
//!
//! Whoever finds a problem knows a place in the rendered text (or, in the template itself, in the source).
//! [`Report`] traces it back to the source once, at the end, and shows the line with a caret. What came out
//! of a `{{ … }}` is shown as the action that made it, together with what it rendered to.

mod trace;
mod view;

use std::fmt;

use crate::limits;
use crate::span::{SourceMap, Span};

use trace::{LineIndex, locate, settle, trace};
use view::{LineView, one_line, printable, wrapped};

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
        Display { report: self, style }
    }
}

/// How a report is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether a fault is shown as the error it is for `check`, or as a warning.
    pub faults_are_errors: bool,
    /// Whether terminal colours are used.
    pub colour: bool,
}

/// A report on its way to a person.
pub struct Display<'a> {
    report: &'a Report,
    style: Style,
}

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[1;31m";
const YELLOW: &str = "\u{1b}[1;33m";
const BLUE: &str = "\u{1b}[1;34m";
const CYAN: &str = "\u{1b}[1;36m";
const PLAIN: &str = "\u{1b}[0m";

impl Display<'_> {
    fn paint(&self, colour: &'static str) -> &'static str {
        if self.style.colour { colour } else { "" }
    }

    fn one(&self, out: &mut fmt::Formatter<'_>, located: &Located) -> fmt::Result {
        let Located { problem, location } = located;
        let plain = self.paint(PLAIN);
        let (word, colour) = match problem.severity {
            Severity::Error => ("error", RED),
            Severity::Fault if self.style.faults_are_errors => ("error", RED),
            Severity::Fault | Severity::Warning => ("warning", YELLOW),
        };
        let (colour, bold, blue, cyan) =
            (self.paint(colour), self.paint(BOLD), self.paint(BLUE), self.paint(CYAN));
        writeln!(out, "{colour}{word}{plain}{bold}: {}{plain}", one_line(&problem.message))?;
        let mut margin = 1;
        if let Some(at) = location
            && let Some(file) = self.report.files.get(usize::from(at.file.0))
        {
            let number = at.line.to_string();
            margin = number.len();
            let view = LineView::new(&file.source, at.span);
            writeln!(
                out,
                "{:margin$}{blue}-->{plain} {}:{}:{}",
                "",
                one_line(&file.name),
                at.line,
                at.column
            )?;
            writeln!(out, "{:margin$} {blue}|{plain}", "")?;
            writeln!(out, "{blue}{number} |{plain} {}", view.text)?;
            write!(
                out,
                "{:margin$} {blue}|{plain} {}{colour}{}{plain}",
                "",
                " ".repeat(view.before),
                "^".repeat(view.width)
            )?;
            match &problem.label {
                Some(label) => writeln!(out, " {colour}{}{plain}", one_line(label))?,
                None => writeln!(out)?,
            }
            if let Some(produced) = &at.produced {
                let note = one_line(&produced.rendered);
                writeln!(out, "{:margin$} {blue}={plain} {cyan}rendered{plain}: {note}", "")?;
            }
        }
        if let Some(help) = &problem.help {
            let help = printable(help);
            for (nth, line) in help.split('\n').flat_map(wrapped).enumerate() {
                let (sign, word) = if nth == 0 { ("=", "help: ") } else { (" ", "      ") };
                writeln!(out, "{:margin$} {blue}{sign}{plain} {cyan}{word}{plain}{line}", "")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Display<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, located) in self.report.problems.iter().take(limits::ERRORS).enumerate() {
            if nth > 0 {
                writeln!(out)?;
            }
            self.one(out, located)?;
        }
        match self.report.problems.len().saturating_sub(limits::ERRORS) {
            0 => Ok(()),
            more => writeln!(out, "\n… and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::trace::{shown, without};
    use super::*;

    fn report(source: &str, problem: Problem) -> String {
        let file = SourceFile {
            name: "a.json5".into(),
            source: source.into(),
            rendered: source.into(),
            map: SourceMap::identity(source.len()),
        };
        let style = Style { faults_are_errors: true, colour: false };
        Report::new(vec![file], vec![problem]).display(style).to_string()
    }

    fn at(start: usize, end: usize) -> Problem {
        let place = Place::rendered(FileId(0), Span::new(start, end));
        Problem::new(Severity::Error, place, "wrong")
    }

    #[test]
    fn c5_line_column_and_caret() {
        let text = report("{\n  a: 1,\n  b: x\n}\n", at(15, 16));
        assert_eq!(text, "error: wrong\n --> a.json5:3:6\n  |\n3 |   b: x\n  |      ^\n");
    }

    #[test]
    fn c5_the_caret_stands_under_wide_characters_and_tabs() {
        let text = report("\t日本: x", at("\t日本: ".len(), "\t日本: x".len()));
        assert!(text.contains("1 |     日本: x\n  |           ^\n"), "{text}");
        assert!(text.contains("a.json5:1:6"), "{text}");
    }

    #[test]
    fn c5_an_empty_place_stands_after_what_is_before_it() {
        let text = report("{ a: 1\n  b: 2 }", at(6, 6));
        assert!(text.contains("a.json5:1:7"), "{text}");
        assert!(text.contains("1 | { a: 1\n  |       ^\n"), "{text}");
    }

    #[test]
    fn c5_a_line_of_a_megabyte_is_shown_in_part() {
        let source = format!("{}x{}", "a".repeat(1 << 20), "b".repeat(1 << 20));
        let text = report(&source, at(1 << 20, (1 << 20) + 1));
        assert!(text.lines().all(|line| line.chars().count() < 130), "{text}");
        assert!(text.contains("axb"), "{text}");
    }

    #[test]
    fn c5_a_message_has_one_line_whatever_it_quotes() {
        let place = Place::rendered(FileId(0), Span::new(0, 1));
        let text = report("a", Problem::new(Severity::Error, place, "wrong: \"x\nerror: forged\""));
        assert_eq!(text.lines().filter(|line| line.starts_with("error")).count(), 1, "{text}");
    }

    #[test]
    fn c5_control_characters_cannot_play_tricks() {
        let text = report("a\u{1b}[2Jb \u{202e}c", at(0, 1).help("x\u{7}y"));
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}') && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }

    #[test]
    fn c5_what_came_out_of_an_action_is_shown_with_its_value() {
        let mut map = SourceMap::default();
        map.copied(0, Span::new(0, 8));
        map.produced(8, Span::new(8, 19));
        map.copied(11, Span::new(19, 21));
        let file = SourceFile {
            name: "a".into(),
            source: "{ port: {{ .PORT }} }".into(),
            rendered: "{ port: abc }".into(),
            map,
        };
        let style = Style { faults_are_errors: true, colour: false };
        let text = Report::new(vec![file], vec![at(8, 11)]).display(style).to_string();
        assert!(text.contains("--> a:1:9"), "{text}");
        assert!(text.contains("|         ^^^^^^^^^^^\n"), "{text}");
        assert!(text.contains("= rendered: `abc`"), "{text}");
    }

    #[test]
    fn l5_no_part_of_a_secret_is_left_in_a_message() {
        assert_eq!(
            without("`a` must be b, not the text \"hunter2\"", "\"hunter2\""),
            "`a` must be b, not the text \"…\""
        );
        assert_eq!(without("\"nter\" is no unit", "\"3hunter2\""), "\"…\" is no unit");
        assert_eq!(without("the number 12345 is too large", "12345"), "the number … is too large");
        assert_eq!(
            without("`port` must be 1, not the text \"x\"", "x"),
            "`port` must be 1, not the text \"…\""
        );
    }

    #[test]
    fn l5_a_secret_is_not_shown() {
        assert_eq!(shown(b"{{ .CONSUL_TOKEN }}", b"abc"), "(not shown: it may be a secret)");
    }
}
