//! Variables of Compose and process-compose files, `${NAME:-default}`, as template actions.

use crate::document::{Part, Value};

/// How deep defaults may be nested: `${A:-${B:-${C}}}`.
const MAX_DEPTH: usize = 16;

/// A part of a text with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text that stays as it is.
    Literal(String),
    /// A variable, as template actions with text between them.
    Variable(Vec<Part>),
}

/// Splits a text into literal text and variables.
///
/// # Errors
/// What is wrong with a variable.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    match pieces_or_literal(text) {
        (pieces, None) => Ok(pieces),
        (_, Some(why)) => Err(why),
    }
}

/// The same, but what is not supported stays as it is, and the second value says why.
pub(crate) fn pieces_or_literal(text: &str) -> (Vec<Piece>, Option<String>) {
    let mut problem = None;
    let pieces = nested(text, 0, &mut problem);
    (pieces, problem)
}

fn nested(text: &str, depth: usize, problem: &mut Option<String>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        literal.push_str(before);
        let (variable, used) = if let Some(inside) = after.strip_prefix('{') {
            let Some(end) = closing(inside) else {
                problem.get_or_insert_with(|| format!("`${{` without `}}` in `{}`", shown(text)));
                literal.push('$');
                rest = after;
                break;
            };
            (braced(inside.get(..end).unwrap_or_default(), depth, problem), end + 2)
        } else {
            let name = after.get(..name_length(after)).unwrap_or_default();
            let variable = (!name.is_empty()).then(|| vec![Part::Action(format!("js .{name}"))]);
            (variable, name.len())
        };
        let (used_text, after) = after.split_at_checked(used).unwrap_or((after, ""));
        match variable {
            Some(parts) => {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Variable(parts));
                rest = after;
            }
            None => {
                literal.push('$');
                literal.push_str(used_text);
                // `$$` is a dollar sign.
                rest = if used == 0 { after.strip_prefix('$').unwrap_or(after) } else { after };
            }
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    pieces
}

/// The position of the `}` that ends a variable.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0usize;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '{' if last == '$' => open += 1,
            '}' if open == 0 => return Some(at),
            '}' => open -= 1,
            _ => {}
        }
        last = c;
    }
    None
}

fn name_length(text: &str) -> usize {
    let word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => 0,
        false => text.find(|c| !word(c)).unwrap_or(text.len()),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

/// What is between `${` and `}`; `None` if it is not supported.
fn braced(inside: &str, depth: usize, problem: &mut Option<String>) -> Option<Vec<Part>> {
    let (name, rest) = inside.split_at(name_length(inside));
    let action = |text: String| Some(vec![Part::Action(text)]);
    let operator = |marks: &[&str]| marks.iter().find_map(|mark| rest.strip_prefix(*mark));
    if depth > MAX_DEPTH {
        problem.get_or_insert_with(|| format!("variables are nested more than {MAX_DEPTH} deep"));
        return None;
    }
    if name.is_empty() {
        problem.get_or_insert_with(|| format!("`${{{}}}` is not a variable", shown(inside)));
        return None;
    }
    if rest.is_empty() {
        return action(format!("js .{name}"));
    }
    if operator(&[":?", "?"]).is_some() {
        return action(format!("required {name:?} | js"));
    }
    if let Some(default) = operator(&[":-", "-", ":=", "="]) {
        let default = nested(default, depth + 1, problem);
        return match default.as_slice() {
            [] => action(format!("js .{name}")),
            [Piece::Literal(text)] => action(format!(".{name} | default {} | js", go_string(text))),
            _ => {
                let own = [Part::Action(format!("js .{name}"))];
                Some(choice(&format!("if .{name}"), &own, &parts(default)))
            }
        };
    }
    if let Some(other) = operator(&[":+", "+"]) {
        return Some(choice(&format!("if .{name}"), &parts(nested(other, depth + 1, problem)), &[]));
    }
    let why = format!("`${{{}}}` is not supported: use `${{NAME}}` or `${{NAME:-default}}`", shown(inside));
    problem.get_or_insert(why);
    None
}

fn choice(condition: &str, then: &[Part], otherwise: &[Part]) -> Vec<Part> {
    let action = |text: &str| Part::Action(text.to_owned());
    let mut parts = vec![action(condition)];
    parts.extend_from_slice(then);
    if !otherwise.is_empty() {
        parts.push(action("else"));
        parts.extend_from_slice(otherwise);
    }
    parts.push(action("end"));
    parts
}

/// A text as a string of a template.
fn go_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '{' | '}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// All pieces as parts of a template.
pub(crate) fn parts(pieces: Vec<Piece>) -> Vec<Part> {
    pieces
        .into_iter()
        .flat_map(|piece| match piece {
            Piece::Literal(text) => vec![Part::Literal(text)],
            Piece::Variable(parts) => parts,
        })
        .collect()
}

/// A text with variables as a value.
pub(crate) fn value(mut pieces: Vec<Piece>) -> Value {
    match pieces.as_mut_slice() {
        [] => Value::Text(String::new()),
        [Piece::Literal(text)] => Value::Text(std::mem::take(text)),
        _ => Value::Template(parts(pieces)),
    }
}

/// A command line with variables: its words, or a template that is split at spaces after it is rendered.
///
/// # Errors
/// If a quote is not closed.
pub(crate) fn command(pieces: Vec<Piece>) -> Result<Value, String> {
    let quotes =
        |piece: &Piece| matches!(piece, Piece::Literal(text) if text.contains(['"', '\'', '\\', '#']));
    let variables = pieces.iter().any(|piece| matches!(piece, Piece::Variable(_)));
    if variables && !pieces.iter().any(quotes) {
        // The value of a variable may have several words.
        let last = pieces.len() - 1;
        let line = pieces.into_iter().enumerate().map(|(index, piece)| match piece {
            Piece::Literal(text) => {
                let text = text.replace(['\n', '\t', '\r'], " ");
                let text = if index == 0 { text.trim_start() } else { &text };
                Piece::Literal(if index == last { text.trim_end() } else { text }.to_owned())
            }
            variable @ Piece::Variable(_) => variable,
        });
        let line = line.filter(|piece| *piece != Piece::Literal(String::new())).collect();
        return Ok(Value::Template(parts(line)));
    }
    words(pieces).map(Value::List)
}

/// The words of a command line with variables; a variable is never split.
///
/// # Errors
/// If a quote is not closed.
pub(crate) fn words(pieces: Vec<Piece>) -> Result<Vec<Value>, String> {
    // A character of a private plane stands for each variable.
    const FIRST: u32 = 0xf_0000;
    let mut variables = Vec::new();
    let mut line = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => line.push_str(&text),
            Piece::Variable(parts) => {
                let mark =
                    u32::try_from(variables.len()).ok().and_then(|index| char::from_u32(FIRST + index));
                line.push(mark.ok_or("too many variables")?);
                variables.push(parts);
            }
        }
    }
    let words = shlex::split(&line).ok_or("a quote is not closed")?;
    let variable = |c: char| {
        let index = u32::from(c).checked_sub(FIRST)?;
        variables.get(usize::try_from(index).ok()?)
    };
    Ok(words
        .into_iter()
        .map(|word| {
            let mut pieces = Vec::new();
            let mut literal = String::new();
            for c in word.chars() {
                match variable(c) {
                    None => literal.push(c),
                    Some(parts) => {
                        if !literal.is_empty() {
                            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                        }
                        pieces.push(Piece::Variable(parts.clone()));
                    }
                }
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal));
            }
            value(pieces)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let parts = parts(pieces(text).unwrap());
        let part = |part: Part| match part {
            Part::Literal(text) => text,
            Part::Action(action) => format!("{{{{ {action} }}}}"),
        };
        parts.into_iter().map(part).collect()
    }

    #[test]
    fn c11_variables_become_template_actions() {
        assert_eq!(shown("a$X-b"), "a{{ js .X }}-b");
        assert_eq!(shown("${X}$$Y $5 $"), "{{ js .X }}$Y $5 $");
        assert_eq!(shown("${X:-a\"b}"), "{{ .X | default \"a\\\"b\" | js }}");
        assert_eq!(shown("${X-}"), "{{ js .X }}");
        assert_eq!(shown("${X:?must be set}"), "{{ required \"X\" | js }}");
        assert_eq!(shown("${X:+-v}"), "{{ if .X }}-v{{ end }}");
        assert_eq!(
            shown("${X:-${Y:-z}}"),
            "{{ if .X }}{{ js .X }}{{ else }}{{ .Y | default \"z\" | js }}{{ end }}"
        );
        assert!(pieces("${X").is_err());
        assert!(pieces("${}").is_err());
        assert!(pieces("${X^^}").is_err());
        let (found, why) = pieces_or_literal("$A ${X^^} $$");
        let kept = Piece::Literal(" ${X^^} $".to_owned());
        assert_eq!(found, [Piece::Variable(vec![Part::Action("js .A".to_owned())]), kept]);
        assert!(why.is_some());
        assert!(pieces(&"${X:-".repeat(1000)).is_err());
        let deep = format!("{}{}", "${X:-".repeat(1000), "}".repeat(1000));
        assert!(pieces(&deep).is_err());
    }

    #[test]
    fn c11_variables_in_a_command_line() {
        let command = |text| command(pieces(text).unwrap());
        let action = |text: &str| Part::Action(text.to_owned());
        assert_eq!(command("a 'b c'"), Ok(vec!["a", "b c"].into()));
        assert_eq!(
            command("run $X \n"),
            Ok(Value::Template(vec![
                Part::Literal("run ".into()),
                action("js .X"),
                Part::Literal(String::new())
            ]))
            .map(|value| match value {
                Value::Template(parts) => Value::Template(parts.into_iter().take(2).collect()),
                other => other,
            })
        );
        assert_eq!(
            command("run \"$X y\""),
            Ok(Value::List(vec![
                "run".into(),
                Value::Template(vec![action("js .X"), Part::Literal(" y".into())])
            ]))
        );
        assert!(command("a 'b").is_err());
    }
}
