//! The functions a template can call: Go's own and those of ContainerPilot.

use super::budget::{self, Budget};
use super::value::{List, Text, Value};
use super::{compare, format, letters, lists, quote, regex};
use memchr::memmem;
use std::rc::Rc;

use std::collections::BTreeMap;

/// What a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Any,
    Text,
    Texts,
}

/// A function: its name and what it takes.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) fixed: &'static [Parameter],
    /// Whether any number of further values may follow.
    pub(super) more: bool,
    /// How to call it, for messages.
    pub(super) usage: &'static str,
    run: Run,
}

type Run = fn(&mut Context<'_>, &[Value]) -> Result<Value, Problem>;

/// What functions need besides their arguments.
pub(super) struct Context<'m> {
    pub(super) budget: &'m mut Budget,
    pub(super) environment: &'m Rc<BTreeMap<Text, Text>>,
}

/// Why a function gives no value.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The argument it is about, counted from 0.
    pub(super) argument: Option<usize>,
    /// The rendering cannot go on.
    pub(super) fatal: bool,
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, argument: None, fatal: false }
    }

    pub(super) fn fatal(message: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::new(message) }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn at(mut self, argument: usize) -> Self {
        self.argument = Some(argument);
        self
    }
}

/// A function by its place in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function(&'static Signature);

impl Function {
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        FUNCTIONS.iter().find(|signature| signature.name.as_bytes() == name).map(Self)
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|signature| signature.name)
    }

    pub(super) fn signature(self) -> &'static Signature {
        self.0
    }

    /// `and` stops at the first false value, `or` at the first true one: what they stop at.
    pub(super) fn stops_at(self) -> Option<bool> {
        match self.0.name {
            "and" => Some(false),
            "or" => Some(true),
            _ => None,
        }
    }

    /// Calls it with arguments that fit its signature.
    pub(super) fn call(self, context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Problem> {
        (self.0.run)(context, arguments)
    }
}

const ONE: &[Parameter] = &[Parameter::Any];
const TWO: &[Parameter] = &[Parameter::Any, Parameter::Any];
const TEXT: &[Parameter] = &[Parameter::Text];

const fn entry(
    name: &'static str,
    fixed: &'static [Parameter],
    more: bool,
    usage: &'static str,
    run: Run,
) -> Signature {
    Signature { name, fixed, more, usage, run }
}

static FUNCTIONS: [Signature; 26] = [
    entry("default", TWO, false, ".NAME | default \"value\"", |context, arguments| {
        default(context, arguments)
    }),
    entry("env", TEXT, false, "env \"NAME\"", |context, arguments| {
        let name = text(arguments, 0);
        Ok(Value::Text(context.environment.get(&name).cloned().unwrap_or_else(|| Text::from(&b""[..]))))
    }),
    entry("split", &[Parameter::Text, Parameter::Text], false, ".NAME | split \",\"", split),
    entry("join", &[Parameter::Text, Parameter::Texts], false, ".LIST | join \",\"", join),
    entry(
        "replaceAll",
        &[Parameter::Text, Parameter::Text, Parameter::Text],
        false,
        ".NAME | replaceAll \"from\" \"to\"",
        replace_all,
    ),
    entry(
        "regexReplaceAll",
        &[Parameter::Text, Parameter::Text, Parameter::Text],
        false,
        ".NAME | regexReplaceAll \"pattern\" \"to\"",
        |context, arguments| {
            let (pattern, to, subject) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
            regex::replace_all(&pattern, &to, &subject, context.budget)
                .map(|out| Value::Text(Text::from(out)))
        },
    ),
    entry("loop", &[], true, "loop 3, or loop 2 5", lists::count),
    entry("and", ONE, true, "and .A .B", last),
    entry("or", ONE, true, "or .A .B", last),
    entry("not", ONE, false, "not .A", |_, arguments| Ok(Value::Bool(!value(arguments, 0).truth()))),
    entry("eq", ONE, true, "eq .A \"x\"", |_, arguments| compare::equal(arguments).map(Value::Bool)),
    entry("ne", TWO, false, "ne .A \"x\"", |_, arguments| {
        compare::equal(arguments).map(|equal| Value::Bool(!equal))
    }),
    entry("lt", TWO, false, "lt 1 2", |_, arguments| compare::less(arguments).map(Value::Bool)),
    entry("le", TWO, false, "le 1 2", |_, arguments| compare::at_most(arguments).map(Value::Bool)),
    entry("gt", TWO, false, "gt 2 1", |_, arguments| {
        compare::at_most(arguments).map(|most| Value::Bool(!most))
    }),
    entry("ge", TWO, false, "ge 2 1", |_, arguments| compare::less(arguments).map(|less| Value::Bool(!less))),
    entry("len", ONE, false, "len .A", |_, arguments| lists::length(value(arguments, 0))),
    entry("index", ONE, true, "index . \"NAME\"", |_, arguments| lists::index(arguments)),
    entry("slice", ONE, true, "slice .A 1 2", |_, arguments| lists::slice(arguments)),
    entry("print", &[], true, "print .A .B", |context, arguments| {
        made(context, |out| format::print(out, arguments))
    }),
    entry("println", &[], true, "println .A", |context, arguments| {
        made(context, |out| format::println(out, arguments))
    }),
    entry("printf", TEXT, true, "printf \"%s-%d\" .A 1", |context, arguments| {
        let format = text(arguments, 0);
        made(context, |out| format::printf(out, &format, arguments.get(1..).unwrap_or_default()))
    }),
    entry("html", &[], true, "html .A", |context, arguments| escaped(context, arguments, quote::html)),
    entry("js", &[], true, "js .A", |context, arguments| escaped(context, arguments, quote::js)),
    entry("urlquery", &[], true, "urlquery .A", |context, arguments| {
        escaped(context, arguments, quote::query)
    }),
    entry("call", ONE, true, "call", |_, arguments| {
        let value = value(arguments, 0);
        Err(Problem::new(format!("`call` needs a function, and this is {}", value.described()))
            .help("write the function's name in place of `call`")
            .at(0))
    }),
];

fn value(arguments: &[Value], index: usize) -> &Value {
    arguments.get(index).unwrap_or(&Value::Nil)
}

fn text(arguments: &[Value], index: usize) -> Text {
    match arguments.get(index) {
        Some(Value::Text(text)) => text.clone(),
        _ => Text::from(&b""[..]),
    }
}

/// `and` and `or` when the executor did not stop early: the last value.
fn last(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Problem> {
    Ok(arguments.last().cloned().unwrap_or(Value::Nil))
}

/// Text made by a printer that stops when it has made too much.
fn made(context: &mut Context<'_>, print: impl FnOnce(&mut format::Output)) -> Result<Value, Problem> {
    let mut out = format::Output::new(context.budget.left());
    print(&mut out);
    let bytes = out.finish().ok_or_else(budget::too_much)?;
    context.budget.bytes(bytes.len())?;
    Ok(Value::Text(Text::from(bytes)))
}

fn default(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Problem> {
    if let Value::Text(text) = value(arguments, 1)
        && !text.is_empty()
    {
        return Ok(Value::Text(text.clone()));
    }
    match value(arguments, 0) {
        Value::Text(text) => Ok(Value::Text(text.clone())),
        other => made(context, |out| format::print(out, std::slice::from_ref(other))),
    }
}

fn escaped(
    context: &mut Context<'_>,
    arguments: &[Value],
    escape: fn(&[u8]) -> Vec<u8>,
) -> Result<Value, Problem> {
    let plain = if let [Value::Text(text)] = arguments {
        text.clone()
    } else {
        let shown: Vec<Value> = arguments
            .iter()
            .map(|argument| match argument {
                Value::Nil => Value::Text(Text::from(&b"<no value>"[..])),
                other => other.clone(),
            })
            .collect();
        match made(context, |out| format::print(out, &shown))? {
            Value::Text(text) => text,
            _ => Text::from(&b""[..]),
        }
    };
    // No escape is longer than six bytes for one.
    if plain.len().saturating_mul(6) > context.budget.left() {
        return Err(budget::too_much());
    }
    let out = escape(&plain);
    context.budget.bytes(out.len())?;
    Ok(Value::Text(Text::from(out)))
}

fn split(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Problem> {
    let (separator, subject) = (text(arguments, 0), text(arguments, 1));
    let (start, end) = letters::trimmed(&subject);
    let subject = subject.cut(start, end);
    let mut parts = Vec::new();
    let mut add = |context: &mut Context<'_>, part: Text| {
        context.budget.step(1)?;
        context.budget.bytes(size_of::<Text>())?;
        parts.push(part);
        Ok(())
    };
    if subject.is_empty() {
        // Nothing, not one empty part: this is how 3.8 splits.
    } else if separator.is_empty() {
        let replacement = Text::from("\u{fffd}".as_bytes());
        let mut at = 0;
        while at < subject.len() {
            let (rune, width) = letters::decode(subject.get(at..).unwrap_or_default());
            let end = at + width;
            // Go 1.19 replaces bytes that are no UTF-8, but keeps the last part as it is.
            let kept = end == subject.len() || !letters::is_invalid(rune, width);
            add(context, if kept { subject.cut(at, end) } else { replacement.clone() })?;
            at = end;
        }
    } else {
        let mut at = 0;
        for found in memmem::find_iter(&subject, &*separator) {
            add(context, subject.cut(at, found))?;
            at = found + separator.len();
        }
        add(context, subject.cut(at, subject.len()))?;
    }
    let length = parts.len();
    Ok(Value::Texts(List::new(parts, length)))
}

fn join(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Problem> {
    let separator = text(arguments, 0);
    let Value::Texts(list) = value(arguments, 1) else { return Ok(Value::Text(Text::from(&b""[..]))) };
    let items = list.items();
    let size = items
        .iter()
        .map(|item| item.len())
        .fold(separator.len().saturating_mul(items.len().saturating_sub(1)), usize::saturating_add);
    context.budget.step(items.len() as u64)?;
    context.budget.bytes(size)?;
    let mut out = Vec::with_capacity(size);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(&separator);
        }
        out.extend_from_slice(item);
    }
    Ok(Value::Text(Text::from(out)))
}

fn replace_all(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Problem> {
    let (from, to, subject) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
    let times = if from.is_empty() {
        letters::count(&subject) + 1
    } else {
        memmem::find_iter(&subject, &*from).count()
    };
    let size = subject.len().saturating_add(times.saturating_mul(to.len()));
    context.budget.step(times as u64 + subject.len() as u64 / 64)?;
    context.budget.bytes(size)?;
    let mut out = Vec::with_capacity(size.saturating_sub(times.saturating_mul(from.len())));
    let mut at = 0;
    if from.is_empty() {
        while at < subject.len() {
            out.extend_from_slice(&to);
            let (_, width) = letters::decode(subject.get(at..).unwrap_or_default());
            out.extend_from_slice(subject.get(at..at + width).unwrap_or_default());
            at += width;
        }
        out.extend_from_slice(&to);
    } else {
        for found in memmem::find_iter(&subject, &*from) {
            out.extend_from_slice(subject.get(at..found).unwrap_or_default());
            out.extend_from_slice(&to);
            at = found + from.len();
        }
        out.extend_from_slice(subject.get(at..).unwrap_or_default());
    }
    Ok(Value::Text(Text::from(out)))
}
