//! Maps a place in the rendered text back to the source.

use super::secrets::{self, shown};
use super::{FileId, Location, Place, Problem, Produced, SourceFile};
use crate::span::{ByteOrigin, Span};

/// The offsets of the lines of a text.
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

    /// The line and the column of an offset, both from 1. Columns count characters.
    pub(super) fn position(&self, text: &[u8], offset: u32) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0) as usize;
        let upto = text.get(start..offset as usize).unwrap_or_default();
        (line, String::from_utf8_lossy(upto).chars().count() + 1)
    }
}

/// A place in the source, and its relation to the template.
pub(super) struct Traced {
    span: Span,
    /// The rendered range, if it differs from the source.
    rendered: Option<Span>,
    kind: Trace,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    /// The text was copied, or an action printed all of it.
    Plain,
    /// It is inside the output of an action, which is inside a string.
    Breaks,
    /// An action printed nothing where something was expected.
    Nothing,
}

/// The line and column of a place.
pub(super) fn locate(file: &SourceFile, lines: &LineIndex, id: FileId, traced: Traced) -> Location {
    let produced = traced.rendered.map(|rendered| {
        let source = file.source.get(traced.span.range()).unwrap_or_default();
        Produced { rendered: shown(source, file.rendered.get(rendered.range()).unwrap_or_default()) }
    });
    let end = Span::at(file.source.len()).start;
    let mut span = Span { start: traced.span.start.min(end), end: traced.span.end.min(end) };
    // At the end of the file, point after the last character that is not white space.
    if span.start == end {
        let written = file.source.trim_ascii_end().len();
        span = Span::at(written);
    }
    let (line, column) = lines.position(&file.source, span.start);
    Location { file: id, span, line, column, produced }
}

/// Maps a place back to the source.
pub(super) fn trace(file: &SourceFile, place: Place) -> Traced {
    let span = place.span;
    if place.in_source {
        return Traced { span, rendered: None, kind: Trace::Plain };
    }
    // If a quotation mark in a value ends the string around it, the place is the action.
    let inside = file.map.printed_around(span.start, file.rendered.len());
    let inside = inside.filter(|(_, printed)| span.is_empty() && is_in_string(file, *printed));
    if let Some((action, printed)) = inside {
        return Traced { span: action, rendered: Some(printed), kind: Trace::Breaks };
    }
    if let Some(action) = nothing_printed(file, span) {
        return Traced { span: action, rendered: Some(Span::at(span.start as usize)), kind: Trace::Nothing };
    }
    let (span, rendered) = trace_back(file, span);
    Traced { span, rendered, kind: Trace::Plain }
}

/// The action that printed nothing at an empty place or before a comma.
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

/// Returns true if the output is inside a string: the number of quotes before it on its line is odd.
fn is_in_string(file: &SourceFile, printed: Span) -> bool {
    let before = file.rendered.get(..printed.start as usize).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}

/// Adds help about the template action, and removes secrets from the message.
pub(super) fn amend(problem: &mut Problem, file: &SourceFile, traced: &Traced) {
    let source = String::from_utf8_lossy(file.source.get(traced.span.range()).unwrap_or_default());
    match traced.kind {
        Trace::Plain => {}
        Trace::Nothing => {
            let help = "the value is empty: set the variable, or add a default: {{ .NAME | default \"…\" }}";
            problem.help = Some(help.to_owned());
        }
        Trace::Breaks => {
            let inside = source.trim_start_matches("{{").trim_end_matches("}}");
            let inside = inside.trim_start_matches("- ").trim_end_matches(" -").trim();
            problem.help = Some(format!(
                "a quotation mark in the value ends the string around it; write {{{{ {inside} | js }}}} to escape it"
            ));
        }
    }
    if let Some(rendered) = traced.rendered {
        secrets::remove(problem, &source, file.rendered.get(rendered.range()).unwrap_or_default());
    }
}

/// The source of a rendered range, and the rendered range if it differs from the source.
fn trace_back(file: &SourceFile, span: Span) -> (Span, Option<Span>) {
    if span.is_empty() && span.start == 0 {
        return (Span::at(0), None);
    }
    let last = if span.is_empty() { span.start } else { span.end - 1 };
    // The place after a token is better than the place before the next one, because it is on the same line.
    let (first, after) = match (span.is_empty(), span.start.checked_sub(1)) {
        (true, Some(before)) => (before, true),
        _ => (span.start, false),
    };
    let (start, mut differs) = match file.map.origin(first) {
        ByteOrigin::Copied(offset) => (Span::new(offset as usize, offset as usize + 1), false),
        ByteOrigin::Produced(action) => (action, true),
    };
    if after {
        return (Span::at(start.end as usize), None);
    }
    let end = match file.map.origin(last) {
        ByteOrigin::Copied(offset) => Span::new(offset as usize, offset as usize + 1),
        ByteOrigin::Produced(action) => {
            differs = true;
            action
        }
    };
    // In a loop, the end can be before the start in the source. Then the start is used.
    let whole = if end.end >= start.end && end.start >= start.start { start.to(end) } else { start };
    let source = file.source.get(whole.range()).unwrap_or_default();
    let rendered = file.rendered.get(span.range()).unwrap_or_default();
    differs |= source != rendered;
    (whole, differs.then_some(span))
}
