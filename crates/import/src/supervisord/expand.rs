//! Values with `%(name)s`, and how supervisord splits command lines and environments.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::document::{Part, Value};

/// A character of a value, or something that is known only when the supervisor starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Char(char),
    /// What is between `{{` and `}}`.
    Action(Rc<str>),
}

/// A value in which everything is replaced.
pub(super) type Expanded = Vec<Piece>;

/// The maximum number of variables in one `environment`.
const MAX_VARIABLES: usize = 1000;
/// The maximum length of all values together, after everything in them is replaced.
const MAX_LENGTH: usize = 16 << 20;

/// What `%(name)s` can name.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// How much all values together have become.
    used: Rc<Cell<usize>>,
    texts: BTreeMap<String, Rc<Expanded>>,
    numbers: BTreeMap<&'static str, u64>,
}

impl Names {
    pub(super) fn set(&mut self, name: &str, value: Expanded) {
        self.texts.insert(name.to_owned(), Rc::new(value));
    }

    pub(super) fn set_text(&mut self, name: &str, value: &str) {
        self.set(name, value.chars().map(Piece::Char).collect());
    }

    pub(super) fn set_number(&mut self, name: &'static str, value: u64) {
        self.numbers.insert(name, value);
    }

    /// Replaces `%(name)s` and the like, as `%` of Python does.
    pub(super) fn expand(&self, text: &str) -> Result<Expanded, String> {
        let mut out = Expanded::new();
        let mut rest = text;
        self.use_up(text.len())?;
        while let Some((before, after)) = rest.split_once('%') {
            out.extend(before.chars().map(Piece::Char));
            if let Some(after) = after.strip_prefix('%') {
                out.push(Piece::Char('%'));
                rest = after;
                continue;
            }
            let named = after.strip_prefix('(').and_then(|after| after.split_once(')'));
            let (name, after) = named.ok_or("write `%%` for a percent sign, as supervisord needs it")?;
            let flags = after.len() - after.trim_start_matches(['0', '-', ' ', '+', '#']).len();
            let (flags, after) = after.split_at_checked(flags).unwrap_or_default();
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (width, after) = after.split_at_checked(digits).unwrap_or_default();
            let mut chars = after.chars();
            let kind = chars.next().filter(|kind| matches!(kind, 's' | 'd' | 'i'));
            let kind = kind.ok_or_else(|| format!("expected `%({name})s` or `%({name})d`"))?;
            let width = width.parse::<usize>().unwrap_or(0).min(64);
            let value = self.value(name, kind, flags, width)?;
            self.use_up(value.len())?;
            out.extend(value.iter().cloned());
            rest = chars.as_str();
        }
        out.extend(rest.chars().map(Piece::Char));
        Ok(out)
    }

    fn use_up(&self, length: usize) -> Result<(), String> {
        self.used.set(self.used.get().saturating_add(length));
        match self.used.get() > MAX_LENGTH {
            true => {
                Err(format!("the values of all options together are longer than {MAX_LENGTH} characters"))
            }
            false => Ok(()),
        }
    }

    fn value(&self, name: &str, kind: char, flags: &str, width: usize) -> Result<Rc<Expanded>, String> {
        if let Some(number) = self.numbers.get(name) {
            let text = match (kind, flags) {
                (_, flags) if flags.contains('-') => format!("{number:<width$}"),
                ('d' | 'i', flags) if flags.contains('0') => format!("{number:0>width$}"),
                _ => format!("{number:>width$}"),
            };
            return Ok(Rc::new(text.chars().map(Piece::Char).collect()));
        }
        if kind != 's' {
            return Err(format!("`%({name}){kind}` is not a number: write `%({name})s`"));
        }
        if let Some(text) = self.texts.get(name) {
            return Ok(Rc::clone(text));
        }
        let variable = name.strip_prefix("ENV_").filter(|variable| is_variable(variable));
        match variable {
            Some(variable) => Ok(Rc::new(vec![Piece::Action(format!(".{variable}").into())])),
            None => Err(format!("supervisord does not know `%({name})s`")),
        }
    }
}

fn is_variable(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(word) && name.chars().all(|c| word(c) || c.is_ascii_digit())
}

/// The text, if all of it is known.
pub(super) fn plain(pieces: &[Piece]) -> Option<String> {
    let char = |piece: &Piece| match piece {
        Piece::Char(c) => Some(*c),
        Piece::Action(_) => None,
    };
    pieces.iter().map(char).collect()
}

/// The value in the new file.
pub(super) fn value(pieces: &[Piece]) -> Value {
    if let Some(text) = plain(pieces) {
        return text.into();
    }
    let mut parts = Vec::new();
    for piece in pieces {
        match (piece, parts.last_mut()) {
            (Piece::Char(c), Some(Part::Literal(text))) => text.push(*c),
            (Piece::Char(c), _) => parts.push(Part::Literal(c.to_string())),
            (Piece::Action(action), _) => parts.push(Part::Action(action.to_string())),
        }
    }
    Value::Template(parts)
}

/// A command line as `exec`, split as Python's `shlex.split` does. `None` if a quote is not closed or it is empty.
pub(super) fn command(pieces: &[Piece]) -> Option<Value> {
    let words = split(pieces)?;
    let is_simple = |word: &Expanded| {
        !word.is_empty() && !word.iter().any(|piece| matches!(piece, Piece::Char(c) if c.is_whitespace()))
    };
    if plain(pieces).is_none() && words.iter().all(is_simple) {
        // A string is split at spaces after the variables are replaced, as supervisord does it.
        let text = words.join(&Piece::Char(' '));
        return Some(value(&text));
    }
    Some(Value::List(words.iter().map(|word| value(word)).collect())).filter(|_| !words.is_empty())
}

fn split(pieces: &[Piece]) -> Option<Vec<Expanded>> {
    let mut words = Vec::new();
    let mut word: Option<Expanded> = None;
    let mut quote = None;
    let mut pieces = pieces.iter().peekable();
    while let Some(piece) = pieces.next() {
        match (piece, quote) {
            (Piece::Char(c), Some(open)) if *c == open => quote = None,
            (Piece::Char('\\'), Some('"')) => {
                let escaped = pieces.next_if(|next| matches!(next, Piece::Char('"' | '\\')));
                word.get_or_insert_default().push(escaped.unwrap_or(piece).clone());
            }
            (Piece::Char('\\'), None) => word.get_or_insert_default().push(pieces.next()?.clone()),
            (Piece::Char(c @ ('"' | '\'')), None) => {
                quote = Some(*c);
                word.get_or_insert_default();
            }
            (Piece::Char(' ' | '\t' | '\r' | '\n'), None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(piece.clone()),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Variables with their values.
type Variables = Vec<(String, Expanded)>;

/// `KEY="value",KEY2=value2`, read as supervisord does: with Python's `shlex` in its compatible mode. The last item lists what
/// supervisord skips.
pub(super) fn environment(pieces: &[Piece]) -> Result<(Variables, Vec<String>), &'static str> {
    let tokens = tokens(pieces)?;
    let mut variables = Vec::new();
    let mut skipped = Vec::new();
    if tokens.len() > 4 * MAX_VARIABLES {
        return Err("it has more than 1000 variables");
    }
    for group in tokens.chunks(4) {
        let [name, equals, text, ..] = group else {
            return Err("expected KEY=\"value\",KEY2=\"value2\"");
        };
        if plain(equals).as_deref() != Some("=") {
            return Err("expected KEY=\"value\",KEY2=\"value2\": a value with other characters needs quotes");
        }
        let name = plain(name).filter(|name| !name.is_empty() && !name.contains(['\0', '"', '\'']));
        let name = name.ok_or("the name of a variable depends on a variable, or is not a name")?;
        let is_quote = |piece: &Piece| matches!(piece, Piece::Char('"' | '\''));
        let start = text.iter().take_while(|piece| is_quote(piece)).count();
        let end = text.len() - text.iter().rev().take_while(|piece| is_quote(piece)).count();
        variables.push((name, text.get(start..end).unwrap_or_default().to_vec()));
        if let Some(separator) = group.get(3).filter(|token| plain(token).as_deref() != Some(",")) {
            skipped.push(plain(separator).unwrap_or_else(|| "a variable".to_owned()));
        }
    }
    Ok((variables, skipped))
}

fn tokens(pieces: &[Piece]) -> Result<Vec<Expanded>, &'static str> {
    let is_word = |piece: &Piece| match piece {
        Piece::Char(c) => c.is_ascii_alphanumeric() || "_/.+-():".contains(*c),
        Piece::Action(_) => true,
    };
    let mut tokens = Vec::new();
    let mut word = Expanded::new();
    let mut pieces = pieces.iter();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Char('#') => {
                pieces.find(|piece| **piece == Piece::Char('\n'));
            }
            Piece::Char(quote @ ('"' | '\'')) if word.is_empty() => {
                let mut text = vec![piece.clone()];
                loop {
                    let next = pieces.next().ok_or("a quote is not closed")?;
                    text.push(next.clone());
                    if *next == Piece::Char(*quote) {
                        break;
                    }
                }
                tokens.push(text);
            }
            Piece::Char('"' | '\'') => word.push(piece.clone()),
            piece if is_word(piece) => word.push(piece.clone()),
            Piece::Char(' ' | '\t' | '\r' | '\n') => flush(&mut word, &mut tokens),
            piece => {
                flush(&mut word, &mut tokens);
                tokens.push(vec![piece.clone()]);
            }
        }
    }
    flush(&mut word, &mut tokens);
    Ok(tokens)
}

fn flush(word: &mut Expanded, tokens: &mut Vec<Expanded>) {
    if !word.is_empty() {
        tokens.push(std::mem::take(word));
    }
}
