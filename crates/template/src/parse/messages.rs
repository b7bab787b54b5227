//! The error messages of the parser, with advice.

use crate::Dialect;
use crate::functions::Function;
use crate::limits;
use crate::parse::lexer::{ActionToken, ActionTokenKind, LexError};
use crate::parse::words::{ActionWords, ParseError, PipelinePosition};
use crate::span::Span;
use crate::suggest;
use crate::tree::Pipeline;
use crate::unicode::is_print;
use crate::utf8::decode;

fn shown(text: &[u8]) -> String {
    const MAX_LENGTH: usize = 60;
    let text = String::from_utf8_lossy(text);
    if text.chars().count() > MAX_LENGTH {
        let mut cut: String = text.chars().take(MAX_LENGTH).collect();
        cut.push('…');
        cut
    } else {
        text.into_owned()
    }
}

/// A pipeline without a command.
pub(crate) fn missing_value(token: ActionToken, context: PipelinePosition, pipe: &Pipeline) -> ParseError {
    let error = ParseError::new(token.span, format!("{} has no value", context.word));
    if pipe.declared.is_empty() && context.word == "this action" {
        return ParseError::new(token.span, "empty action")
            .help("write {{ .NAME }}, or {{/* … */}} for a comment");
    }
    match context.word {
        "`if`" => error.help("write {{ if .NAME }}"),
        "`range`" => error.help("write {{ range split \",\" .NAME }}"),
        "`with`" => error.help("write {{ with .NAME }}"),
        "`block`" => error.help("write {{ block \"name\" . }}"),
        _ => error.help("put a value here, such as .NAME or \"text\""),
    }
}

const KEYWORDS: [&str; 10] =
    ["true", "false", "end", "else", "range", "with", "define", "template", "block", "continue"];

/// An unknown function.
pub(crate) fn unknown_function(
    words: &ActionWords<'_>,
    span: Span,
    text: &[u8],
    dialect: Dialect,
) -> ParseError {
    let name = shown(text);
    // `{{ name: "x" }}`: an object with two opening braces.
    if words.tail(span.end as usize).starts_with(b":") && Function::named(text, dialect).is_none() {
        return ParseError::new(span, format!("unexpected `{name}:` inside {{{{ }}}}"))
            .help("two braces start a template action; an object has one: { key: value }");
    }
    let error = ParseError::new(span, format!("unknown function `{name}`"));
    if Function::named(text, Dialect::File).is_some() {
        return ParseError::new(span, format!("`{name}` works only in the template of a rendered file"))
            .help("put that template into a file of its own and name it with `from`, or write it in backquotes: {{`…`}}");
    }
    if let Some(near) = suggest::nearest(&name, Function::names(dialect).chain(KEYWORDS)) {
        return error.help(format!("did you mean `{near}`?"));
    }
    if name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_') {
        return error.help(format!("write .{name} for the environment variable"));
    }
    let all: Vec<&str> = Function::names(dialect).collect();
    error.help(format!("write \"{name}\" for a string; the functions are {}", all.join(", ")))
}

/// A variable that is not in scope.
pub(crate) fn unknown_variable(span: Span, text: &[u8]) -> ParseError {
    let name = shown(text);
    let bare = name.trim_start_matches('$').to_owned();
    let error = ParseError::new(span, format!("undeclared variable `{name}`"));
    if bare.chars().any(char::is_lowercase) || bare.is_empty() {
        error.help(format!("declare it with {{{{ {name} := … }}}} in this block or in an enclosing one"))
    } else {
        error.help(format!("write .{bare} for the environment variable"))
    }
}

/// `'localhost'`
pub(crate) fn not_one_character(span: Span, text: &[u8]) -> ParseError {
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    ParseError::new(span, "strings inside {{ }} need double quotes, not single quotes")
        .help(format!("write \"{}\"", shown(inner).replace('"', "\\\"")))
}

/// An integer that is too large, or octal with decimal digits.
pub(crate) fn large_number(span: Span, text: &[u8]) -> ParseError {
    ParseError::new(span, format!("the number `{}` is too large or has a leading 0", shown(text)))
        .help("a leading 0 means base 8; put it in double quotes to use it as a string")
}

/// Parentheses that are nested too deeply.
pub(crate) fn too_deep(span: Span) -> ParseError {
    ParseError::new(span, format!("parentheses are nested more than {} deep", limits::DEPTH))
        .help("move a part into a variable")
}

/// A token that starts like a number.
pub(crate) fn bad_number(span: Span, text: &[u8]) -> ParseError {
    let number = shown(text);
    match text {
        b"+" | b"-" => ParseError::new(span, format!("templates have no arithmetic: `{number}`"))
            .help("compute the value elsewhere and pass it in an environment variable"),
        _ => ParseError::new(span, format!("`{number}` is not a number"))
            .help("put it in double quotes to use it as a string"),
    }
}

/// An unexpected token. `before` is the operand before it.
pub(crate) fn unexpected(words: &ActionWords<'_>, token: ActionToken, before: Option<Span>) -> ParseError {
    let span = token.span;
    let text = words.text(span);
    match token.kind {
        ActionTokenKind::Broken(error) => broken(words, span, error, before),
        ActionTokenKind::Symbol | ActionTokenKind::Assign | ActionTokenKind::Pipe => {
            symbol(words, span, text, before)
        }
        ActionTokenKind::Declare => ParseError::new(span, "only a variable can be declared with `:=`")
            .help("write {{ $name := value }}"),
        ActionTokenKind::Keyword(keyword) => {
            let word = keyword.word();
            let error = ParseError::new(span, format!("unexpected `{word}`"));
            if before.is_none() && word == "define" {
                error.help("move the definition out of all other blocks")
            } else {
                error.help(format!("write `{word}` as the first word of its own {{{{ … }}}}"))
            }
        }
        ActionTokenKind::Right => ParseError::new(span, "unexpected end of the action"),
        ActionTokenKind::Open => ParseError::new(span, "missing space before `(`")
            .help("separate a function and its arguments by a space: {{ print (len .A) }}"),
        ActionTokenKind::Close => ParseError::new(span, "unmatched `)`"),
        ActionTokenKind::Dot if before.is_some() => {
            ParseError::new(span, "missing name after the dot").help("write .NAME without spaces")
        }
        _ => ParseError::new(span, format!("missing space before `{}`", shown(text)))
            .help("separate arguments by spaces"),
    }
}

fn symbol(words: &ActionWords<'_>, span: Span, text: &[u8], before: Option<Span>) -> ParseError {
    let left = before.map_or_else(|| ".A".to_owned(), |before| shown(words.text(before)));
    let after = words.tail(span.end as usize).get(..1).unwrap_or_default();
    // Operators of two characters in other languages are shown as a whole.
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
        ParseError::new(span, format!("unknown operator `{sign}`"))
            .help(format!("write it as a function: {function} {left} …"))
    };
    match text {
        b"!" if after == b"=" => operator("ne"),
        b"!" => ParseError::new(span, "unknown operator `!`").help("write {{ not .A }}"),
        b"=" if before.is_some() => operator("eq"),
        b"<" => operator(if after == b"=" { "le" } else { "lt" }),
        b">" => operator(if after == b"=" { "ge" } else { "gt" }),
        b"&" => operator("and"),
        b"|" if before.is_some() => operator("or"),
        b"|" => ParseError::new(span, "missing value before `|`").help("write {{ .NAME | default \"x\" }}"),
        b"?" => ParseError::new(span, "unknown operator `?`")
            .help(format!("write {{{{ if {left} }}}}…{{{{ else }}}}…{{{{ end }}}}")),
        b"*" | b"%" | b"^" => ParseError::new(span, format!("templates have no arithmetic: `{sign}`")),
        b"/" if after == b"*" => ParseError::new(span, "a comment must be an action of its own")
            .help("write {{/* … */}} or {{- /* … */ -}}, with no other space"),
        b"/" => ParseError::new(span, "templates have no arithmetic: `/`")
            .help("put a path in double quotes: \"/etc/app\""),
        b"#" => ParseError::new(span, "`#` does not start a comment inside {{ }}").help("write {{/* … */}}"),
        b"," => {
            ParseError::new(span, "arguments are separated by spaces, not commas").help("remove the comma")
        }
        b"\\" => ParseError::new(span, "quotes inside {{ }} must not be escaped")
            .help("write \"…\" without backslashes, even inside a quoted value"),
        b"{" => ParseError::new(span, "one `{` too many").help("an action is {{ … }}, with two braces"),
        b"}" => ParseError::new(span, "an action ends with two braces").help("write `}}`"),
        b"[" | b"]" => ParseError::new(span, format!("unexpected `{sign}`"))
            .help("use `index .LIST 0` for an element, and `split` or `loop` for a list"),
        b"@" | b"~" | b";" | b"_" => ParseError::new(span, format!("unexpected `{sign}`")),
        _ => ParseError::new(span, format!("unexpected `{sign}`")),
    }
}

/// An invalid token.
fn broken(words: &ActionWords<'_>, span: Span, error: LexError, before: Option<Span>) -> ParseError {
    let text = words.text(span);
    let quote = Span::new(span.start as usize, span.start as usize + 1);
    match error {
        LexError::Unclosed => unclosed(span),
        LexError::UnclosedParenthesis => {
            ParseError::new(words.lexer.parenthesis().unwrap_or(span), "unclosed `(`")
                .help("add the missing `)`")
        }
        LexError::LooseParenthesis => ParseError::new(span, "unmatched `)`"),
        LexError::Colon => {
            let error = ParseError::new(span, "unexpected `:`");
            match before.map(|before| shown(words.text(before))) {
                Some(word) if Function::named(word.as_bytes(), Dialect::File).is_some() => {
                    error.help(format!("write `{word} \"x\"` without the colon"))
                }
                Some(word) if word.starts_with('$') => error.help(format!("write `{word} := value`")),
                _ => error.help("separate a function and its arguments by a space"),
            }
        }
        LexError::Quote => ParseError::new(quote, "unterminated string")
            .help("add the closing \" on the same line, or use `backquotes` for a string of several lines"),
        LexError::RawQuote => ParseError::new(quote, "unterminated string in backquotes"),
        LexError::CharacterQuote => {
            ParseError::new(quote, "unterminated single quote").help("put strings in double quotes")
        }
        LexError::Number => bad_number(span, text),
        LexError::Name => bad_name(words, span, text),
        LexError::Unknown => {
            let (rune, _) = decode(text);
            let code = format!("U+{:04X}", u32::from(rune));
            match rune {
                '“' | '”' | '„' | '«' | '»' => {
                    ParseError::new(span, format!("{rune} is a typographic quote"))
                        .help("use straight quotes: \"…\"")
                }
                '‘' | '’' | '‚' => ParseError::new(span, format!("{rune} is a typographic quote"))
                    .help("use straight double quotes: \"…\""),
                _ if !is_print(rune) => {
                    ParseError::new(span, format!("invisible character {code}")).help("remove it")
                }
                '–' | '—' => {
                    ParseError::new(span, format!("{rune} is a typographic dash")).help("write a plain `-`")
                }
                _ => ParseError::new(span, format!("unexpected character {rune} ({code})")),
            }
        }
    }
}

/// An action that is not closed before the end of the source.
pub(crate) fn unclosed(span: Span) -> ParseError {
    ParseError::new(span, "unclosed action").help("add the missing `}}`")
}

/// The same, for the action at `open`. A single `}` on its line was probably meant to close it, unless the quotes
/// before it show that it is outside of the string around the action.
pub(crate) fn unclosed_at(source: &[u8], open: usize) -> ParseError {
    let rest = source.get(open..).unwrap_or_default();
    let line = rest.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    // The braces after the next `{{` belong to another action.
    let next = line.windows(2).skip(2).position(|pair| pair == b"{{").map_or(line.len(), |length| length + 2);
    let line = line.get(..next).unwrap_or_default();
    // `default "localhost }}`: the closing braces are inside an unterminated string.
    let close = line.windows(2).position(|pair| pair == b"}}");
    let quotes = |end: usize| line.iter().take(end).filter(|byte| **byte == b'"').count();
    if let Some(quote) = close
        .filter(|close| quotes(*close) % 2 == 1)
        .and_then(|close| line.get(..close)?.iter().rposition(|byte| *byte == b'"'))
    {
        let span = Span::new(open + quote, open + quote + 1);
        return ParseError::new(span, "unterminated string").help("add the closing \" before the `}}`");
    }
    let brace = line.iter().position(|byte| *byte == b'}').filter(|end| quotes(*end) % 2 == 0);
    match brace {
        Some(brace) => {
            ParseError::new(Span::new(open + brace, open + brace + 1), "an action ends with two braces")
                .help("write `}}`")
        }
        None => unclosed(Span::new(open, open + 2)),
    }
}

/// A name with a character that names cannot contain, such as `.WITH-DASH`.
fn bad_name(words: &ActionWords<'_>, span: Span, text: &[u8]) -> ParseError {
    let end = span.end as usize;
    let (rune, width) = decode(words.tail(end));
    let error = ParseError::new(
        Span::new(end, end + width.max(1)),
        format!("unexpected `{rune}` after the name `{}`", shown(text)),
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
            error.help(format!("write: index . \"{start}{}\"", String::from_utf8_lossy(name)))
        }
        (_, '"' | '`' | '\'') => error.help("separate arguments by a space"),
        (_, '+' | '*' | '/') => error.help("templates have no arithmetic"),
        (_, '=' | '<' | '>' | '!') => error.help("use eq, ne, lt, le, gt or ge: {{ if eq .A \"x\" }}"),
        (_, '[') => error.help("use `index .LIST 0` for an element"),
        _ => error.help("a name consists of letters, digits and `_`"),
    }
}
