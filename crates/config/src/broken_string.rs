//! Values of templates that end or change the string around them.

use crate::diagnostics::{FileId, Place, Problem, Severity, SourceFile};
use crate::json5::{Node, SyntaxError, Value};
use crate::span::Span;

const QUOTE: &str = "a quotation mark, which ends the string around it";
const LINE_BREAK: &str = "a line break, which ends the string around it";
const BACKSLASH: &str = "a backslash, which is read as an escape";

/// The problem that explains a syntax error, if the output of a template action is the reason: it contains a quotation mark or
/// a line break that ends the string around it, or a backslash that is not a valid escape or hides the end of the string.
pub(crate) fn broken_string(id: FileId, file: &SourceFile, error: &SyntaxError) -> Option<Problem> {
    let printed_at = |offset: u32| file.map.printed_at(offset, file.rendered.len());
    let here = error.span.start;
    // After the output comes the quotation mark that was meant to end the string.
    let mut nearby = (0..3).filter_map(|back| printed_at(here.checked_sub(back)?));
    let found = if let Some((action, printed)) = nearby.find(|(_, printed)| ends_string(file, *printed)) {
        (action, printed, QUOTE)
    } else if let Some((action, printed)) = error.cut.and_then(|cut| printed_at(cut.start)) {
        (action, printed, LINE_BREAK)
    } else if let Some((action, printed)) =
        printed_at(here).filter(|_| file.rendered.get(here as usize) == Some(&b'\\'))
    {
        (action, printed, BACKSLASH)
    } else {
        let (action, printed) = hidden_end(file, here.max(error.cut.map_or(0, |cut| cut.start)))?;
        (action, printed, BACKSLASH)
    };
    let (action, printed, what) = found;
    Some(problem(Severity::Error, Place::rendered(id, printed), file, action, what))
}

/// Warns about the values in strings that contain a backslash. 3.8 reads it as an escape, too. The value is not shown: it may
/// be a password, and the supervisor logs the warning.
pub(crate) fn backslashes(id: FileId, file: &SourceFile, root: &Node, problems: &mut Vec<Problem>) {
    let mut nodes = vec![root];
    while let Some(node) = nodes.pop() {
        match &node.value {
            Value::String(_) => {
                let mut rest = node.span;
                while let Some((action, printed)) = file.map.printed_in(rest, file.rendered.len())
                    && problems.len() < crate::limits::PROBLEMS
                {
                    rest.start = printed.end;
                    // An action that prints the quotation marks itself has escaped the value.
                    if node.span.start < printed.start && is_changed(file, action, printed) {
                        let place = Place::source(id, action);
                        problems.push(problem(Severity::Warning, place, file, action, BACKSLASH));
                    }
                }
            }
            Value::List(items) => nodes.extend(items),
            Value::Object(members) => nodes.extend(members.iter().map(|member| &member.value)),
            _ => {}
        }
    }
}

/// Returns true if the output of an action contains a backslash that the action has not added to escape a value.
fn is_changed(file: &SourceFile, action: Span, printed: Span) -> bool {
    let output = file.rendered.get(printed.range()).unwrap_or_default();
    let action = String::from_utf8_lossy(file.source.get(action.range()).unwrap_or_default());
    let mut words = action.split(|letter: char| !letter.is_ascii_alphanumeric());
    // The value of a variable of the template may be escaped already.
    let is_variable = action.contains('$') && !action.contains("$.");
    let escapes = words.any(|word| word == "js") || action.contains("%q") || is_variable;
    output.contains(&b'\\') && !escapes
}

fn problem(severity: Severity, place: Place, file: &SourceFile, action: Span, what: &str) -> Problem {
    let action = String::from_utf8_lossy(file.source.get(action.range()).unwrap_or_default());
    let inside = action.trim_start_matches("{{").trim_end_matches("}}");
    let inside = inside.trim_start_matches("- ").trim_end_matches(" -").trim();
    let is_name = |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let (value, escaped) = match inside.strip_prefix('.').filter(is_name) {
        Some(name) if !name.is_empty() => (name, format!("js .{name}")),
        _ => ("this action", format!("{inside} | js")),
    };
    let message = format!("the value of {value} contains {what}");
    Problem::new(severity, place, message).help(format!("write {{{{ {escaped} }}}} to escape it"))
}

/// Returns true if the output is in a string and contains the quotation mark that ends it.
fn ends_string(file: &SourceFile, printed: Span) -> bool {
    let before = file.rendered.get(..printed.start as usize).unwrap_or_default();
    let mut line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().iter();
    while let Some(quote) = line.find(|byte| matches!(byte, b'"' | b'\'')) {
        if !skip_string(&mut line, *quote) {
            return skip_string(&mut file.rendered.get(printed.range()).unwrap_or_default().iter(), *quote);
        }
    }
    false
}

/// Skips the rest of a string. Returns false if it does not end.
fn skip_string(text: &mut std::slice::Iter<'_, u8>, quote: u8) -> bool {
    while let Some(byte) = text.next() {
        match byte {
            b'\\' => drop(text.next()),
            byte if *byte == quote => return true,
            _ => {}
        }
    }
    false
}

/// The output before `end`, on the same line, whose last byte is a backslash that hides the end of the string around it.
fn hidden_end(file: &SourceFile, end: u32) -> Option<(Span, Span)> {
    let before = file.rendered.get(..end as usize)?;
    let line = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut bytes = before.iter().enumerate().skip(line);
    let mut quote = None;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if quote.is_some() => {
                let next = bytes.next().map(|(_, next)| next);
                let printed = file.map.printed_at(Span::at(at).start, file.rendered.len());
                let printed = printed.filter(|(_, printed)| printed.end as usize == at + 1 && next == quote);
                if printed.is_some() {
                    return printed;
                }
            }
            b'"' | b'\'' if quote.is_none() => quote = Some(byte),
            byte if quote == Some(byte) => quote = None,
            _ => {}
        }
    }
    None
}
