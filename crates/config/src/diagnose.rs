//! Problems: what is wrong, where it stands in the user's own text, and what to do about it (C5).
//!
//! Whoever finds a problem knows a place in the rendered text (or, in the template itself, in the source).
//! [`Report`] traces it back to the source once, at the end, and shows the line with a caret. What came out
//! of a `{{ … }}` is shown as the action that made it, together with what it rendered to.

use std::fmt;

use unicode_width::UnicodeWidthChar;

use crate::limits;
use crate::span::{Origin, SourceMap, Span};

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
    pub fn nowhere(severity: Severity, message: impl Into<String>) -> Self {
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

/// Where the lines of a text begin.
struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    fn new(text: &[u8]) -> Self {
        let mut starts = vec![0];
        let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        starts.extend(breaks.map(|(offset, _)| Span::at(offset + 1).start));
        Self { starts }
    }

    /// Line and column of an offset, both from 1, the column in characters.
    fn position(&self, text: &[u8], offset: u32) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0) as usize;
        let upto = text.get(start..offset as usize).unwrap_or_default();
        (line, String::from_utf8_lossy(upto).chars().count() + 1)
    }
}

/// A place in the source, and what it has to do with the template.
struct Traced {
    span: Span,
    /// What the text there became, where that is something else.
    rendered: Option<Span>,
    kind: Trace,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trace {
    /// The text was copied, or it came out of an action as a whole.
    Plain,
    /// It is in the middle of what an action printed, inside of a text.
    Breaks,
    /// An action printed nothing where something was expected.
    Nothing,
}

/// Finds the place in the source as people count.
fn locate(file: &SourceFile, lines: &LineIndex, id: FileId, traced: Traced) -> Location {
    let produced = traced.rendered.map(|rendered| {
        let source = file.source.get(traced.span.range()).unwrap_or_default();
        Produced { rendered: shown(source, file.rendered.get(rendered.range()).unwrap_or_default()) }
    });
    let end = Span::at(file.source.len()).start;
    let mut span = Span { start: traced.span.start.min(end), end: traced.span.end.min(end) };
    // "At the end of the file" is of no use behind a last newline: point after the last thing written.
    if span.start == end {
        let written = file.source.trim_ascii_end().len();
        span = Span::at(written);
    }
    let (line, column) = lines.position(&file.source, span.start);
    Location { file: id, span, line, column, produced }
}

/// Traces a place back to the source.
fn trace(file: &SourceFile, place: Place, cut: Option<Place>) -> Traced {
    let span = place.span;
    if place.in_source {
        return Traced { span, rendered: None, kind: Trace::Plain };
    }
    // A line break or a quotation mark in a value ends the text around it: then the value is the place.
    let cut = cut.and_then(|cut| file.map.printed_at(cut.span.start, file.rendered.len()));
    let inside = file.map.printed_around(span.start, file.rendered.len());
    let inside = inside.filter(|(_, printed)| span.is_empty() && in_a_text(file, *printed));
    if let Some((action, printed)) = cut.or(inside) {
        return Traced { span: action, rendered: Some(printed), kind: Trace::Breaks };
    }
    if let Some(action) = nothing_printed(file, span) {
        return Traced { span: action, rendered: Some(Span::at(span.start as usize)), kind: Trace::Nothing };
    }
    let (span, rendered) = trace_back(file, span);
    Traced { span, rendered, kind: Trace::Plain }
}

/// The action that printed nothing where something is missing: around an empty place, or before a comma.
fn nothing_printed(file: &SourceFile, span: Span) -> Option<Span> {
    let rendered = &file.rendered;
    if !span.is_empty() && rendered.get(span.range()) != Some(b",") {
        return None;
    }
    let blanks = |bytes: &[u8]| bytes.len() - bytes.trim_ascii_start().len();
    let before = rendered.get(..span.start as usize).unwrap_or_default();
    let start = before.trim_ascii_end().len();
    let end = span.start as usize + blanks(rendered.get(span.start as usize..).unwrap_or_default());
    file.map.silent_between(Span::at(start).start, Span::at(end).start)
}

/// Whether what was printed stands inside of a quoted text: then the quotes before it on its line are odd.
fn in_a_text(file: &SourceFile, printed: Span) -> bool {
    let before = file.rendered.get(..printed.start as usize).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}

/// What only the way back to the source can tell: advice about the action, and that a secret must not be shown.
fn settle(problem: &mut Problem, file: &SourceFile, traced: &Traced) {
    let source = String::from_utf8_lossy(file.source.get(traced.span.range()).unwrap_or_default());
    match traced.kind {
        Trace::Plain => {}
        Trace::Nothing => {
            let help =
                "the value is empty: is the variable set? A default is written {{ .NAME | default \"…\" }}";
            problem.help = Some(help.to_owned());
        }
        Trace::Breaks => {
            let inside = source.trim_start_matches("{{").trim_end_matches("}}");
            let inside = inside.trim_start_matches("- ").trim_end_matches(" -").trim();
            problem.help = Some(format!(
                "a quotation mark or a line break in the value ends the text around it; \
                 write {{{{ {inside} | js }}}} to escape them"
            ));
        }
    }
    if let Some(rendered) = traced.rendered.filter(|_| looks_secret(&source)) {
        let rendered = file.rendered.get(rendered.range()).unwrap_or_default();
        let value = String::from_utf8_lossy(rendered);
        problem.message = without(&problem.message, &value);
        problem.help = problem.help.take().map(|help| without(&help, &value));
    }
}

/// A message without any part of a value. What a message takes from a value it shows in quotes, or whole.
fn without(text: &str, value: &str) -> String {
    const HIDDEN: &str = "…";
    let value = value.trim_matches(['"', '\'']);
    // A value this short is in every other word; in quotes it is still found below.
    let text = if value.len() > 3 { text.replace(value, HIDDEN) } else { text.to_owned() };
    let mut out = String::with_capacity(text.len());
    for (nth, part) in text.split_inclusive(['"', '`']).enumerate() {
        let inner = part.trim_end_matches(['"', '`']);
        let quoted = nth % 2 == 1 && !inner.is_empty();
        if quoted && value.contains(inner.trim_end_matches('…')) {
            out.push_str(HIDDEN);
            out.push_str(part.get(inner.len()..).unwrap_or_default());
        } else {
            out.push_str(part);
        }
    }
    out
}

/// Traces a range that came out of the template as a whole; the second is what it became, if that differs.
fn trace_back(file: &SourceFile, span: Span) -> (Span, Option<Span>) {
    let last = if span.is_empty() { span.start } else { span.end - 1 };
    // Right after something is a better place than right before the next thing, and it is on the same line.
    let (first, after) = match (span.is_empty(), span.start.checked_sub(1)) {
        (true, Some(before)) => (before, true),
        _ => (span.start, false),
    };
    let (start, mut made) = match file.map.origin(first) {
        Origin::Copied(offset) => (Span::new(offset as usize, offset as usize + 1), false),
        Origin::Produced(action) => (action, true),
    };
    if after {
        return (Span::at(start.end as usize), None);
    }
    let end = match file.map.origin(last) {
        Origin::Copied(offset) => Span::new(offset as usize, offset as usize + 1),
        Origin::Produced(action) => {
            made = true;
            action
        }
    };
    // In a loop the end can stand before the beginning; then the beginning is what counts.
    let whole = if end.end >= start.end && end.start >= start.start { start.to(end) } else { start };
    let source = file.source.get(whole.range()).unwrap_or_default();
    let rendered = file.rendered.get(span.range()).unwrap_or_default();
    made |= source != rendered;
    (whole, made.then_some(span))
}

/// The rendered text for a note, unless it may be a secret (L5).
fn shown(source: &[u8], rendered: &[u8]) -> String {
    if looks_secret(&String::from_utf8_lossy(source)) {
        return "(not shown: it may be a secret)".to_owned();
    }
    if rendered.is_empty() {
        return "nothing".to_owned();
    }
    let text = String::from_utf8_lossy(rendered);
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{short}`")
}

/// Whether a name or an expression speaks of something that must not be shown.
#[must_use]
pub fn looks_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["token", "secret", "passw", "credential", "private", "apikey", "api_key"]
        .iter()
        .any(|w| text.contains(w))
}

/// Control characters as pictures, so that no text can play tricks on a terminal or forge lines of a log.
fn one_line(text: &str) -> String {
    text.chars().map(picture).collect()
}

/// The same for advice, which may have several lines.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { picture(c) }).collect()
}

fn picture(c: char) -> char {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        0x80..0xa0 | 0x200b..=0x200f | 0x2028..=0x202e | 0x2066..=0x2069 | 0xfeff => '\u{fffd}',
        _ => c,
    }
}

/// A line of the source as it fits on a screen, and where the caret goes.
struct LineView {
    text: String,
    before: usize,
    width: usize,
}

const VIEW: usize = 100;
const LEAD: usize = 60;
/// How many bytes around a place are looked at: enough for a line of the widest characters.
const NEAR: usize = 1000;

impl LineView {
    fn new(source: &[u8], span: Span) -> Self {
        let Span { start, end } = span;
        let (start, end) = (start as usize, end as usize);
        let head = source.get(..start).unwrap_or_default();
        let line_start = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let tail = source.get(start..).unwrap_or_default();
        let line_end = tail.iter().position(|byte| *byte == b'\n').map_or(source.len(), |at| start + at);
        let piece = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(source.get(range).unwrap_or_default()).into_owned()
        };
        // Of a line of a megabyte only what is near can be shown, and only that is worth looking at.
        let marked_end = end.clamp(start, line_end);
        let before = expand(&piece(line_start.max(start.saturating_sub(NEAR))..start));
        let marked = expand(piece(start..marked_end.min(start + NEAR)).trim_end_matches('\r'));
        let after = expand(piece(marked_end..line_end.min(marked_end + NEAR)).trim_end_matches('\r'));

        // A line that fits is shown as it is; of a longer one, what is around the place.
        let fits = columns(&before) + columns(&marked) + columns(&after) <= VIEW;
        let (lead, cut) = last_columns(&before, if fits { VIEW } else { LEAD });
        let mut text = String::new();
        if cut {
            text.push('…');
        }
        text.push_str(lead);
        let column = columns(&text);
        let room = VIEW.saturating_sub(column).max(20);
        let (shown, cut) = first_columns(&marked, room);
        let width = columns(shown).max(1);
        text.push_str(shown);
        if cut {
            text.push('…');
        } else {
            let (rest, cut) = first_columns(&after, room.saturating_sub(width));
            text.push_str(rest);
            if cut {
                text.push('…');
            }
        }
        Self { text: text.trim_end().to_owned(), before: column, width }
    }
}

/// A line of help, in pieces that fit on a screen.
fn wrapped(line: &str) -> Vec<String> {
    let mut pieces: Vec<String> = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let room = pieces.last().is_none_or(|piece| columns(piece) + columns(word.trim_end()) <= VIEW);
        match pieces.last_mut().filter(|_| room) {
            Some(piece) => piece.push_str(word),
            None => pieces.push(word.to_owned()),
        }
    }
    pieces.into_iter().map(|piece| piece.trim_end().to_owned()).collect()
}

/// Tabs as four spaces, control characters as pictures.
fn expand(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            _ => out.push(picture(c)),
        }
    }
    out
}

fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(1)).sum()
}

fn first_columns(text: &str, most: usize) -> (&str, bool) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(1);
        if used > most {
            return (text.get(..at).unwrap_or_default(), true);
        }
    }
    (text, false)
}

fn last_columns(text: &str, most: usize) -> (&str, bool) {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(1);
        if used > most {
            return (text.get(at + c.len_utf8()..).unwrap_or_default(), true);
        }
    }
    (text, false)
}

#[cfg(test)]
mod tests {
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
