//! The way back: from a place in the rendered text to the text the user wrote.

use super::{FileId, Location, Place, Problem, Produced, SourceFile};
use crate::span::{Origin, Span};

/// Where the lines of a text begin.
pub(super) struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    pub(super) fn new(text: &[u8]) -> Self {
        let mut starts = vec![0];
        let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        starts.extend(breaks.map(|(offset, _)| Span::at(offset + 1).start));
        Self { starts }
    }

    /// Line and column of an offset, both from 1, the column in characters.
    pub(super) fn position(&self, text: &[u8], offset: u32) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0) as usize;
        let upto = text.get(start..offset as usize).unwrap_or_default();
        (line, String::from_utf8_lossy(upto).chars().count() + 1)
    }
}

/// A place in the source, and what it has to do with the template.
pub(super) struct Traced {
    span: Span,
    /// What the text there became, where that is something else.
    rendered: Option<Span>,
    kind: Trace,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    /// The text was copied, or it came out of an action as a whole.
    Plain,
    /// It is in the middle of what an action printed, inside of a text.
    Breaks,
    /// An action printed nothing where something was expected.
    Nothing,
}

/// Finds the place in the source as people count.
pub(super) fn locate(file: &SourceFile, lines: &LineIndex, id: FileId, traced: Traced) -> Location {
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
pub(super) fn trace(file: &SourceFile, place: Place, cut: Option<Place>) -> Traced {
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
pub(super) fn settle(problem: &mut Problem, file: &SourceFile, traced: &Traced) {
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
pub(super) fn without(text: &str, value: &str) -> String {
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
pub(super) fn shown(source: &[u8], rendered: &[u8]) -> String {
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
