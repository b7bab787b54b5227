//! The words of the messages about what cannot be read, and what to do about it.

use super::funcs::Function;
use super::letters::decode;
use super::lex::{Flaw, Token, ValueType as Word};
use super::pipe::{Context, Mistake, Words};
use super::tree::Pipe;
use crate::limits;
use crate::span::Span;
use crate::suggest;

fn shown(text: &[u8]) -> String {
    // A message is no place for a page of text.
    const LONGEST: usize = 60;
    let text = String::from_utf8_lossy(text);
    if text.chars().count() > LONGEST {
        let mut cut: String = text.chars().take(LONGEST).collect();
        cut.push('…');
        cut
    } else {
        text.into_owned()
    }
}

/// A pipeline without a command.
pub(super) fn missing_value(token: Token, context: Context, pipe: &Pipe) -> Mistake {
    let mistake = Mistake::new(token.span, format!("{} has no value", context.word));
    if pipe.declared.is_empty() && context.word == "this action" {
        return Mistake::new(token.span, "this action is empty")
            .help("write {{ .NAME }}, or {{/* … */}} for a comment");
    }
    match context.word {
        "`if`" => mistake.help("write {{ if .NAME }}"),
        "`range`" => mistake.help("write {{ range split \",\" .NAME }}"),
        "`with`" => mistake.help("write {{ with .NAME }}"),
        "`block`" => mistake.help("write {{ block \"name\" . }}"),
        _ => mistake.help("put a value here, such as .NAME or \"text\""),
    }
}

const KEYWORDS: [&str; 10] =
    ["true", "false", "end", "else", "range", "with", "define", "template", "block", "continue"];

/// A function nobody knows.
pub(super) fn unknown_function(words: &Words<'_>, span: Span, text: &[u8]) -> Mistake {
    let name = shown(text);
    // `{{ name: "x" }}`: an object that was opened twice.
    if words.tail(span.end as usize).starts_with(b":") && Function::named(text).is_none() {
        return Mistake::new(span, format!("`{name}:` cannot stand inside {{{{ }}}}"))
            .help("two braces begin a template action; an object has one: { key: value }");
    }
    let mistake = Mistake::new(span, format!("unknown function `{name}`"));
    if let Some(near) = suggest::nearest(&name, Function::names().chain(KEYWORDS)) {
        return mistake.help(format!("did you mean `{near}`?"));
    }
    if name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_') {
        return mistake.help(format!("for the variable of the environment write .{name}"));
    }
    let all: Vec<&str> = Function::names().collect();
    mistake.help(format!("for text write \"{name}\"; the functions are {}", all.join(", ")))
}

/// A variable that is not declared, or no longer.
pub(super) fn unknown_variable(span: Span, text: &[u8]) -> Mistake {
    let name = shown(text);
    let bare = name.trim_start_matches('$').to_owned();
    let mistake = Mistake::new(span, format!("the variable `{name}` is not declared here"));
    if bare.chars().any(char::is_lowercase) || bare.is_empty() {
        mistake.help(format!("declare it with {{{{ {name} := … }}}} in the same block or around it"))
    } else {
        mistake.help(format!("for the variable of the environment write .{bare}"))
    }
}

/// `'localhost'`
pub(super) fn not_one_character(span: Span, text: &[u8]) -> Mistake {
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    Mistake::new(span, "text inside {{ }} stands in double quotes, not in single ones")
        .help(format!("write \"{}\"", shown(inner).replace('"', "\\\"")))
}

/// A whole number that fits no integer, or that only looks like one.
pub(super) fn large_number(span: Span, text: &[u8]) -> Mistake {
    Mistake::new(span, format!("the number `{}` is too large, or has a leading 0", shown(text)))
        .help("a leading 0 means base 8; write it in quotes to use it as text")
}

/// Too many parentheses in one another.
pub(super) fn too_deep(span: Span) -> Mistake {
    Mistake::new(span, format!("parentheses nest deeper than {}", limits::TEMPLATE_DEPTH))
        .help("put a part of it in a variable")
}

/// Something that starts like a number.
pub(super) fn bad_number(span: Span, text: &[u8]) -> Mistake {
    let number = shown(text);
    match text {
        b"+" | b"-" => Mistake::new(span, format!("there is no arithmetic in a template: `{number}`"))
            .help("use the program's own options, or a variable of the environment with the sum"),
        _ => Mistake::new(span, format!("`{number}` is not a number"))
            .help("write it in double quotes to use it as text"),
    }
}

/// A word that cannot stand where it does. `before` is the operand in front of it.
pub(super) fn unexpected(words: &Words<'_>, token: Token, before: Option<Span>) -> Mistake {
    let span = token.span;
    let text = words.text(span);
    match token.kind {
        Word::Broken(flaw) => broken(words, span, flaw, before),
        Word::Symbol | Word::Assign | Word::Pipe => symbol(words, span, text, before),
        Word::Declare => {
            Mistake::new(span, "only a variable can be set with `:=`").help("write {{ $name := value }}")
        }
        Word::Keyword(keyword) => {
            let word = keyword.word();
            let mistake = Mistake::new(span, format!("`{word}` cannot stand here"));
            if before.is_none() && word == "define" {
                mistake.help("a template is defined outside all other blocks")
            } else {
                mistake.help(format!("`{word}` is the first word of its own {{{{ … }}}}"))
            }
        }
        Word::Right => Mistake::new(span, "the action ends too early"),
        Word::Open => Mistake::new(span, "a space is missing before `(`")
            .help("arguments follow a function after a space: {{ print (len .A) }}"),
        Word::Close => Mistake::new(span, "this `)` closes nothing"),
        Word::Dot if before.is_some() => {
            Mistake::new(span, "no name follows the dot").help("write .NAME without spaces")
        }
        _ => Mistake::new(span, format!("a space is missing before `{}`", shown(text)))
            .help("arguments are separated by spaces"),
    }
}

fn symbol(words: &Words<'_>, span: Span, text: &[u8], before: Option<Span>) -> Mistake {
    let left = before.map_or_else(|| ".A".to_owned(), |before| shown(words.text(before)));
    let after = words.tail(span.end as usize).get(..1).unwrap_or_default();
    // Signs that are doubled in other languages are shown so.
    let start = span.start as usize;
    let doubled = match text {
        b"=" | b"&" if after == text => Span::new(start, start + 2),
        b"|" if before.is_some() => Span::new(start.saturating_sub(1), start + 1),
        b"!" | b"<" | b">" if after == b"=" => Span::new(start, start + 2),
        _ => span,
    };
    let span = if words.text(doubled).contains(&b' ') { span } else { doubled };
    let sign = shown(words.text(span));
    let operator = |function: &str| {
        Mistake::new(span, format!("there is no operator `{sign}`"))
            .help(format!("write the function in front: {function} {left} …"))
    };
    match text {
        b"!" if after == b"=" => operator("ne"),
        b"!" => Mistake::new(span, "there is no operator `!`").help("write `not` in front: {{ not .A }}"),
        b"=" if before.is_some() => operator("eq"),
        b"<" => operator(if after == b"=" { "le" } else { "lt" }),
        b">" => operator(if after == b"=" { "ge" } else { "gt" }),
        b"&" => operator("and"),
        b"|" if before.is_some() => operator("or"),
        b"|" => Mistake::new(span, "nothing stands before `|`").help("write {{ .NAME | default \"x\" }}"),
        b"?" => Mistake::new(span, "there is no operator `?`")
            .help(format!("write {{{{ if {left} }}}}…{{{{ else }}}}…{{{{ end }}}}")),
        b"*" | b"%" | b"^" => Mistake::new(span, format!("there is no arithmetic in a template: `{sign}`")),
        b"/" if after == b"*" => Mistake::new(span, "a comment must fill its action")
            .help("write {{/* … */}} or {{- /* … */ -}}, with no other space"),
        b"/" => Mistake::new(span, "there is no arithmetic in a template: `/`")
            .help("a path goes in double quotes: \"/etc/app\""),
        b"#" => Mistake::new(span, "`#` starts no comment here").help("write {{/* … */}}"),
        b"," => {
            Mistake::new(span, "arguments are separated by spaces, not by `,`").help("leave the comma out")
        }
        b"\\" => Mistake::new(span, "quotes inside {{ }} are not escaped")
            .help("write \"…\" without backslashes, also within a quoted value"),
        b"{" => Mistake::new(span, "one `{` too many").help("an action is {{ … }}, with two braces"),
        b"}" => Mistake::new(span, "an action ends with two braces").help("write `}}`"),
        b"[" | b"]" => Mistake::new(span, format!("`{sign}` has no meaning here"))
            .help("use `index .LIST 0` for an element, `split` or `loop` for a list"),
        b"@" | b"~" | b";" | b"_" => Mistake::new(span, format!("`{sign}` has no meaning here")),
        _ => Mistake::new(span, format!("`{sign}` cannot stand here")),
    }
}

/// A word that could not be read to its end.
fn broken(words: &Words<'_>, span: Span, flaw: Flaw, before: Option<Span>) -> Mistake {
    let text = words.text(span);
    let quote = Span::new(span.start as usize, span.start as usize + 1);
    match flaw {
        Flaw::Unclosed => unclosed(span),
        Flaw::UnclosedParenthesis => {
            Mistake::new(words.lexer.parenthesis().unwrap_or(span), "this `(` is not closed")
                .help("write the missing `)`")
        }
        Flaw::LooseParenthesis => Mistake::new(span, "this `)` closes nothing"),
        Flaw::Colon => {
            let mistake = Mistake::new(span, "`:` has no meaning here");
            match before.map(|before| shown(words.text(before))) {
                Some(word) if Function::named(word.as_bytes()).is_some() => {
                    mistake.help(format!("write `{word} \"x\"` without the colon"))
                }
                Some(word) if word.starts_with('$') => mistake.help(format!("write `{word} := value`")),
                _ => mistake.help("a function takes its arguments after a space"),
            }
        }
        Flaw::Quote => Mistake::new(quote, "this quote is not closed on its line")
            .help("write the closing \", or use `backquotes` for text of several lines"),
        Flaw::RawQuote => Mistake::new(quote, "this backquote is never closed"),
        Flaw::CharacterQuote => Mistake::new(quote, "this single quote is not closed on its line")
            .help("text goes in double quotes"),
        Flaw::Number => bad_number(span, text),
        Flaw::Name => bad_name(words, span, text),
        Flaw::Unknown => {
            let (rune, _) = decode(text);
            let code = format!("U+{:04X}", u32::from(rune));
            match rune {
                '“' | '”' | '„' | '«' | '»' => {
                    Mistake::new(span, format!("{rune} is a typographic quote"))
                        .help("use straight quotes: \"…\"")
                }
                '‘' | '’' | '‚' => Mistake::new(span, format!("{rune} is a typographic quote"))
                    .help("use straight double quotes: \"…\""),
                _ if !super::letters::is_print(rune) => {
                    Mistake::new(span, format!("an invisible character ({code}) stands here"))
                        .help("delete it")
                }
                '–' | '—' => {
                    Mistake::new(span, format!("{rune} is a typographic dash")).help("write a plain `-`")
                }
                _ => Mistake::new(span, format!("the character {rune} ({code}) has no meaning here")),
            }
        }
    }
}

/// An action that the text ends in.
pub(super) fn unclosed(span: Span) -> Mistake {
    Mistake::new(span, "this action is not closed").help("write the missing `}}`")
}

/// An action at `open` that the text ends in. A lone `}` on its line was most likely meant to close it, unless
/// the quotes before it say that it stands outside of the text around the action.
pub(super) fn unclosed_at(source: &[u8], open: usize) -> Mistake {
    let rest = source.get(open..).unwrap_or_default();
    let line = rest.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    // `default "localhost }}`: the closing braces are there, but in a text that has not ended before them.
    let close = line.windows(2).position(|pair| pair == b"}}");
    let quotes = |end: usize| line.iter().take(end).filter(|byte| **byte == b'"').count();
    if let Some(quote) = close
        .filter(|close| quotes(*close) % 2 == 1)
        .and_then(|close| line.get(..close)?.iter().rposition(|byte| *byte == b'"'))
    {
        let span = Span::new(open + quote, open + quote + 1);
        return Mistake::new(span, "this quote is not closed before the action ends")
            .help("write the closing \" before the `}}`");
    }
    let brace = line.iter().position(|byte| *byte == b'}').filter(|end| quotes(*end) % 2 == 0);
    match brace {
        Some(brace) => {
            Mistake::new(Span::new(open + brace, open + brace + 1), "an action ends with two braces")
                .help("write `}}`")
        }
        None => unclosed(Span::new(open, open + 2)),
    }
}

/// A name with something in it that names cannot have, such as `.WITH-DASH`.
fn bad_name(words: &Words<'_>, span: Span, text: &[u8]) -> Mistake {
    let end = span.end as usize;
    let (rune, width) = decode(words.tail(end));
    let mistake = Mistake::new(
        Span::new(end, end + width.max(1)),
        format!("`{rune}` cannot be part of the name after `{}`", shown(text)),
    );
    let rest = words.tail(end);
    let length = rest
        .iter()
        .position(|&byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/')))
        .unwrap_or(rest.len());
    let name = rest.get(..length).unwrap_or_default();
    match (text.first(), rune) {
        (Some(b'.'), '-' | '/') => {
            let start = String::from_utf8_lossy(text.get(1..).unwrap_or_default()).into_owned();
            mistake.help(format!("write: index . \"{start}{}\"", String::from_utf8_lossy(name)))
        }
        (_, '"' | '`' | '\'') => mistake.help("put a space between two arguments"),
        (_, '+' | '*' | '/') => mistake.help("there is no arithmetic in a template"),
        (_, '=' | '<' | '>' | '!') => mistake.help("use eq, ne, lt, le, gt or ge: {{ if eq .A \"x\" }}"),
        (_, '[') => mistake.help("use `index .LIST 0` for an element"),
        _ => mistake.help("a name has letters, digits and `_`"),
    }
}
