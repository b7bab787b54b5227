//! The functions of a template: Go's own and ContainerPilot's.

mod compare;
mod escape;
mod float;
mod format;
mod lists;
mod printf;
pub(crate) mod regex;

use std::collections::BTreeMap;
use std::rc::Rc;

use memchr::memmem;

use crate::Dialect;
use crate::budget::{self, Budget};
use crate::data::{self, LookUp, LookUpSource};
use crate::error::FunctionError;
use crate::utf8;
use crate::value::{List, TemplateValue, TextValue};
pub(crate) use format::{LimitedBuffer, print};

/// The values that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    Any,
    Text,
    Texts,
}

/// The name and the parameters of a function.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) fixed: &'static [Parameter],
    /// True if any number of further values may follow.
    pub(crate) more: bool,
    /// An example call, for messages.
    pub(crate) usage: &'static str,
    run: Run,
}

type Run = fn(&mut CallContext<'_>, &[TemplateValue]) -> Result<TemplateValue, FunctionError>;

/// What functions can use besides their arguments.
pub(crate) struct CallContext<'m> {
    pub(crate) budget: &'m mut Budget,
    pub(crate) environment: &'m Rc<BTreeMap<TextValue, TextValue>>,
    /// What the template of a rendered file can look up.
    pub(crate) data: Option<&'m dyn LookUp>,
}

/// A function of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function(&'static Signature);

impl Function {
    pub(crate) fn named(name: &[u8], dialect: Dialect) -> Option<Self> {
        Self::all(dialect).find(|signature| signature.name.as_bytes() == name).map(Self)
    }

    pub(crate) fn names(dialect: Dialect) -> impl Iterator<Item = &'static str> {
        Self::all(dialect).map(|signature| signature.name)
    }

    fn all(dialect: Dialect) -> impl Iterator<Item = &'static Signature> {
        let more = if dialect == Dialect::File { &FILE_FUNCTIONS[..] } else { &[] };
        FUNCTIONS.iter().chain(more)
    }

    /// What it looks up (D15).
    pub(crate) fn source(self) -> Option<LookUpSource> {
        match self.0.name {
            "watch" => Some(LookUpSource::Watch),
            "key" | "keyOrDefault" => Some(LookUpSource::Key),
            "keys" => Some(LookUpSource::Keys),
            "secret" => Some(LookUpSource::Secret),
            _ => None,
        }
    }

    pub(crate) fn signature(self) -> &'static Signature {
        self.0
    }

    /// Returns true for `required` (C9).
    pub(crate) fn is_required(self) -> bool {
        self.0.name == "required"
    }

    /// The value that ends the evaluation of arguments: `and` stops at the first false one, `or` at the first true one.
    pub(crate) fn stops_at(self) -> Option<bool> {
        match self.0.name {
            "and" => Some(false),
            "or" => Some(true),
            _ => None,
        }
    }

    /// Calls the function with arguments that match its signature.
    pub(crate) fn call(
        self,
        context: &mut CallContext<'_>,
        arguments: &[TemplateValue],
    ) -> Result<TemplateValue, FunctionError> {
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

static FUNCTIONS: [Signature; 27] = [
    entry("default", TWO, false, ".NAME | default \"value\"", |context, arguments| {
        default(context, arguments)
    }),
    entry("env", TEXT, false, "env \"NAME\"", |context, arguments| {
        let name = text(arguments, 0);
        Ok(TemplateValue::Text(
            context.environment.get(&name).cloned().unwrap_or_else(|| TextValue::from(&b""[..])),
        ))
    }),
    // C9: the evaluation of a call looks up a name in quotes and reports what is missing.
    entry("required", ONE, false, "required \"NAME\", or .NAME | required", last),
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
                .map(|out| TemplateValue::Text(TextValue::from(out)))
        },
    ),
    entry("loop", &[], true, "loop 3, or loop 2 5", lists::integers),
    entry("and", ONE, true, "and .A .B", last),
    entry("or", ONE, true, "or .A .B", last),
    entry("not", ONE, false, "not .A", |_, arguments| Ok(TemplateValue::Bool(!value(arguments, 0).truth()))),
    entry("eq", ONE, true, "eq .A \"x\"", |_, arguments| compare::equal(arguments).map(TemplateValue::Bool)),
    entry("ne", TWO, false, "ne .A \"x\"", |_, arguments| {
        compare::equal(arguments).map(|equal| TemplateValue::Bool(!equal))
    }),
    entry("lt", TWO, false, "lt 1 2", |_, arguments| compare::less(arguments).map(TemplateValue::Bool)),
    entry("le", TWO, false, "le 1 2", |_, arguments| compare::at_most(arguments).map(TemplateValue::Bool)),
    entry("gt", TWO, false, "gt 2 1", |_, arguments| {
        compare::at_most(arguments).map(|most| TemplateValue::Bool(!most))
    }),
    entry("ge", TWO, false, "ge 2 1", |_, arguments| {
        compare::less(arguments).map(|less| TemplateValue::Bool(!less))
    }),
    entry("len", ONE, false, "len .A", |_, arguments| lists::length(value(arguments, 0))),
    entry("index", ONE, true, "index . \"NAME\"", |_, arguments| lists::index(arguments)),
    entry("slice", ONE, true, "slice .A 1 2", |_, arguments| lists::slice(arguments)),
    entry("print", &[], true, "print .A .B", |context, arguments| {
        printed(context, |out| format::print(out, arguments))
    }),
    entry("println", &[], true, "println .A", |context, arguments| {
        printed(context, |out| format::println(out, arguments))
    }),
    entry("printf", TEXT, true, "printf \"%s-%d\" .A 1", |context, arguments| {
        let format = text(arguments, 0);
        printed(context, |out| printf::printf(out, &format, arguments.get(1..).unwrap_or_default()))
    }),
    entry("html", &[], true, "html .A", |context, arguments| escaped(context, arguments, escape::html)),
    entry("js", &[], true, "js .A", |context, arguments| escaped(context, arguments, escape::js)),
    entry("urlquery", &[], true, "urlquery .A", |context, arguments| {
        escaped(context, arguments, escape::query)
    }),
    entry("call", ONE, true, "call", |_, arguments| {
        let value = value(arguments, 0);
        Err(FunctionError::new(format!("`call` needs a function, not {}", value.described()))
            .help("replace `call` by the name of the function")
            .at(0))
    }),
];

/// The functions of the templates of rendered files (D15).
static FILE_FUNCTIONS: [Signature; 5] = [
    entry("watch", TEXT, false, "range watch \"NAME\"", |context, arguments| {
        found(context, LookUpSource::Watch, arguments)?
            .ok_or_else(|| absent("watch", arguments, "watches no file or key that exists", None))
    }),
    entry("key", TEXT, false, "key \"path/of/key\"", |context, arguments| {
        found(context, LookUpSource::Key, arguments)?.ok_or_else(|| {
            let name = String::from_utf8_lossy(&text(arguments, 0)).into_owned();
            let help = format!("create it, or write: keyOrDefault \"{name}\" \"value\"");
            absent("key", arguments, "does not exist in Consul", Some(help))
        })
    }),
    entry(
        "keyOrDefault",
        &[Parameter::Text, Parameter::Text],
        false,
        "keyOrDefault \"path/of/key\" \"value\"",
        |context, arguments| {
            let found = found(context, LookUpSource::Key, arguments)?;
            Ok(found.unwrap_or_else(|| TemplateValue::Text(text(arguments, 1))))
        },
    ),
    entry("keys", TEXT, false, "range keys \"path/\"", |context, arguments| {
        Ok(found(context, LookUpSource::Keys, arguments)?.unwrap_or(TemplateValue::Nil))
    }),
    entry("secret", TEXT, false, "secret \"NAME\"", |context, arguments| {
        found(context, LookUpSource::Secret, arguments)?
            .ok_or_else(|| absent("secret", arguments, "is not one of `secrets`", None))
    }),
];

fn found(
    context: &mut CallContext<'_>,
    source: LookUpSource,
    arguments: &[TemplateValue],
) -> Result<Option<TemplateValue>, FunctionError> {
    let name = text(arguments, 0);
    data::value_of(context.data, context.budget, source, &name).map_err(|error| error.at(0))
}

fn absent(what: &str, arguments: &[TemplateValue], problem: &str, help: Option<String>) -> FunctionError {
    let name = text(arguments, 0);
    let error = FunctionError::new(format!("the {what} `{}` {problem}", String::from_utf8_lossy(&name)));
    FunctionError { help, ..error }.at(0)
}

fn value(arguments: &[TemplateValue], index: usize) -> &TemplateValue {
    arguments.get(index).unwrap_or(&TemplateValue::Nil)
}

fn text(arguments: &[TemplateValue], index: usize) -> TextValue {
    match arguments.get(index) {
        Some(TemplateValue::Text(text)) => text.clone(),
        _ => TextValue::from(&b""[..]),
    }
}

/// `and` and `or` return the last value if no earlier one decided.
fn last(_: &mut CallContext<'_>, arguments: &[TemplateValue]) -> Result<TemplateValue, FunctionError> {
    Ok(arguments.last().cloned().unwrap_or(TemplateValue::Nil))
}

/// Prints within the budget.
fn printed(
    context: &mut CallContext<'_>,
    print: impl FnOnce(&mut format::LimitedBuffer),
) -> Result<TemplateValue, FunctionError> {
    let mut out = format::LimitedBuffer::new(context.budget.remaining());
    print(&mut out);
    let bytes = out.finish().ok_or_else(budget::too_many_bytes)?;
    context.budget.bytes(bytes.len())?;
    Ok(TemplateValue::Text(TextValue::from(bytes)))
}

fn default(
    context: &mut CallContext<'_>,
    arguments: &[TemplateValue],
) -> Result<TemplateValue, FunctionError> {
    if let TemplateValue::Text(text) = value(arguments, 1)
        && !text.is_empty()
    {
        return Ok(TemplateValue::Text(text.clone()));
    }
    match value(arguments, 0) {
        TemplateValue::Text(text) => Ok(TemplateValue::Text(text.clone())),
        other => printed(context, |out| format::print(out, std::slice::from_ref(other))),
    }
}

fn escaped(
    context: &mut CallContext<'_>,
    arguments: &[TemplateValue],
    escape: fn(&[u8]) -> Vec<u8>,
) -> Result<TemplateValue, FunctionError> {
    let plain = if let [TemplateValue::Text(text)] = arguments {
        text.clone()
    } else {
        let shown: Vec<TemplateValue> = arguments
            .iter()
            .map(|argument| match argument {
                TemplateValue::Nil => TemplateValue::Text(TextValue::from(&b"<no value>"[..])),
                other => other.clone(),
            })
            .collect();
        match printed(context, |out| format::print(out, &shown))? {
            TemplateValue::Text(text) => text,
            _ => TextValue::from(&b""[..]),
        }
    };
    // No escape is longer than six bytes for one.
    if plain.len().saturating_mul(6) > context.budget.remaining() {
        return Err(budget::too_many_bytes());
    }
    let out = escape(&plain);
    context.budget.bytes(out.len())?;
    Ok(TemplateValue::Text(TextValue::from(out)))
}

fn split(context: &mut CallContext<'_>, arguments: &[TemplateValue]) -> Result<TemplateValue, FunctionError> {
    let (separator, subject) = (text(arguments, 0), text(arguments, 1));
    let (start, end) = utf8::trimmed(&subject);
    let subject = subject.cut(start, end);
    let mut parts = Vec::new();
    let mut add = |context: &mut CallContext<'_>, part: TextValue| {
        context.budget.step(1)?;
        context.budget.bytes(size_of::<TextValue>())?;
        parts.push(part);
        Ok(())
    };
    if subject.is_empty() {
        // Nothing, not one empty part: this is how 3.8 splits.
    } else if separator.is_empty() {
        let replacement = TextValue::from("\u{fffd}".as_bytes());
        let mut at = 0;
        while at < subject.len() {
            let (rune, width) = utf8::decode(subject.get(at..).unwrap_or_default());
            let end = at + width;
            // Go 1.19 replaces invalid UTF-8, except in the last part.
            let kept = end == subject.len() || !utf8::is_invalid(rune, width);
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
    Ok(TemplateValue::Texts(List::new(parts, length)))
}

fn join(context: &mut CallContext<'_>, arguments: &[TemplateValue]) -> Result<TemplateValue, FunctionError> {
    let separator = text(arguments, 0);
    let TemplateValue::Texts(list) = value(arguments, 1) else {
        return Ok(TemplateValue::Text(TextValue::from(&b""[..])));
    };
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
    Ok(TemplateValue::Text(TextValue::from(out)))
}

fn replace_all(
    context: &mut CallContext<'_>,
    arguments: &[TemplateValue],
) -> Result<TemplateValue, FunctionError> {
    let (from, to, subject) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
    let times =
        if from.is_empty() { utf8::count(&subject) + 1 } else { memmem::find_iter(&subject, &*from).count() };
    let size = subject.len().saturating_add(times.saturating_mul(to.len()));
    context.budget.step(times as u64 + subject.len() as u64 / 64)?;
    context.budget.bytes(size)?;
    let mut out = Vec::with_capacity(size.saturating_sub(times.saturating_mul(from.len())));
    let mut at = 0;
    if from.is_empty() {
        while at < subject.len() {
            out.extend_from_slice(&to);
            let (_, width) = utf8::decode(subject.get(at..).unwrap_or_default());
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
    Ok(TemplateValue::Text(TextValue::from(out)))
}
