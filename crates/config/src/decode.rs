//! Reading values: from nodes of JSON5 to typed values, generously where 3.8 was generous (C3).
//!
//! A [`ValueType`] is a way to read one value. The table of fields ([`crate::fields`]) names a kind for each key,
//! and the [`section!`](crate::section) macro turns a part of the table into a struct with a reader.

use std::rc::Rc;

use std::collections::BTreeMap;

use crate::diagnostics::{FileId, Place, Problem, Severity};
use crate::json5::{Member, Node, Value};
use crate::limits;
use crate::span::Span;
use crate::suggest;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands; for a default, where its section stands.
    pub place: Place,
    /// Where its key stands; for a default, where its section stands.
    pub key: Place,
    /// Whether the file holds it, or it is a default.
    pub written: bool,
}

/// A way to read one value.
pub trait ValueType {
    /// What is read.
    type Value;
    /// How it is described in the reference and in the schema.
    const SHAPE: Shape;
    /// Reads it, or says what is wrong with it. `None` without a problem means: as if it were not there.
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value>;
}

/// A part of the configuration with keys of its own.
pub trait Section: Rows + Sized {
    /// What the table says about it.
    const INFO: SectionInfo;
    /// One that stands there and holds nothing, not even defaults.
    fn empty(place: Place) -> Self;

    /// Reads it from an object's members.
    fn from_members(cx: &mut DecodeContext<'_>, span: Span, members: &[Member]) -> Self {
        let mut section = Self::empty(cx.at(span));
        cx.section(&Self::INFO, span, members, &mut section);
        section
    }
}

/// The fields of a section by the numbers of their rows in the table, so that one code can read all sections.
pub trait Rows {
    /// Reads what was found for a row, or empties it; says whether it then holds something.
    fn fill(&mut self, row: usize, cx: &mut DecodeContext<'_>, found: Option<&Found<'_>>) -> bool;
}

/// What was found for a row of the table: a member of an object, or the row's default.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    name: &'static str,
    node: &'a Node,
    place: Place,
    key: Place,
    written: bool,
}

/// Reads what was found for a field, or empties it; says whether it then holds something.
pub fn fill<K: ValueType>(
    field: &mut Option<Spanned<K::Value>>,
    cx: &mut DecodeContext<'_>,
    found: Option<&Found<'_>>,
) -> bool {
    *field = None;
    let Some(&Found { name, node, place, key, written }) = found else { return false };
    let Some(value) = K::read(cx, name, node) else { return false };
    // It is empty, so that nothing is forgotten; to drop what is not there would be a third of the code.
    std::mem::forget(field.replace(Spanned { value, place, key, written }));
    true
}

/// What the table says about a section.
#[derive(Debug)]
pub struct SectionInfo {
    /// What a message calls it: "a job".
    pub name: &'static str,
    /// The heading in the reference.
    pub title: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// Whether capital letters in its keys make no difference.
    pub any_case: bool,
    /// Its keys.
    pub fields: &'static [Field],
}

/// One row of the table.
#[derive(Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// The type.
    pub shape: Shape,
    /// What holds when the key is absent.
    pub default: DefaultValue,
    /// The rules it belongs to.
    pub rules: &'static str,
    /// One line about it.
    pub help: &'static str,
}

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// Nothing.
    None,
    /// This value, as it would be written.
    Is(&'static str),
    /// It depends; in words.
    Says(&'static str),
    /// The key must be there.
    Required,
}

/// The type of a field, for the reference and for the schema.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Text.
    Text,
    /// True or false.
    Flag,
    /// A whole number within bounds.
    Whole {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// Seconds as a number, or a duration.
    Duration,
    /// A duration with a unit.
    DurationWithUnit,
    /// A duration, or `"never"`.
    DurationOrNever,
    /// A program with arguments, as one text or a list.
    Command,
    /// A list of texts.
    Words,
    /// A list of numbers.
    Numbers,
    /// One text or a list of texts.
    WordOrWords,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An object from text to text.
    Map,
    /// A count, `"unlimited"` or `"never"`.
    Restarts,
    /// A name or a number.
    Principal,
    /// Permission bits, such as `"0600"`.
    Mode,
    /// Resource limits by name.
    Limits,
    /// An object with keys of its own.
    Object(&'static SectionInfo),
    /// A list of such objects.
    List(&'static SectionInfo),
    /// One such object, or a list of them.
    OneOrMany(&'static SectionInfo),
    /// Such an object, or `false`.
    ObjectOrFalse(&'static SectionInfo),
    /// Such an object, or a text that stands for it.
    ObjectOrText(&'static SectionInfo),
    /// An event's name, or (with conditions) whether each one counts.
    EventOrFlag(&'static [&'static str]),
}

impl Shape {
    /// The section that a value of this type is, or is made of.
    #[must_use]
    pub fn section(&self) -> Option<&'static SectionInfo> {
        match self {
            Self::Object(inner)
            | Self::List(inner)
            | Self::OneOrMany(inner)
            | Self::ObjectOrFalse(inner)
            | Self::ObjectOrText(inner) => Some(inner),
            _ => None,
        }
    }
}

/// What reading needs to know, and where it says what it found.
pub struct DecodeContext<'a> {
    /// The file that is read.
    pub file: FileId,
    problems: &'a mut Vec<Problem>,
    /// The defaults that were needed so far: a thousand jobs have the same ones.
    defaults: BTreeMap<&'static str, Option<Rc<Node>>>,
}

impl<'a> DecodeContext<'a> {
    /// A reader of one file.
    pub fn new(file: FileId, problems: &'a mut Vec<Problem>) -> Self {
        Self { file, problems, defaults: BTreeMap::new() }
    }

    /// The place of a range of the file that is read.
    #[must_use]
    pub fn at(&self, span: Span) -> Place {
        Place::rendered(self.file, span)
    }

    /// Says that something is wrong, and what to do about it.
    pub fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.say(Severity::Error, span, message.into(), help.into());
    }

    /// Says that something is probably not meant, and what to do about it.
    pub fn warn(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.say(Severity::Warning, span, message.into(), help.into());
    }

    /// Says that something can never work, and what to do about it.
    pub fn fault(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.say(Severity::Fault, span, message.into(), help.into());
    }

    /// Whether an error inside a section speaks of a key already.
    #[must_use]
    pub fn told(&self, section: Place, key: &str) -> bool {
        crate::lower::told(self.problems, Some(section), key)
    }

    /// Whether there are errors in the file that is read.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        let here = |problem: &Problem| problem.place.is_some_and(|place| place.file == self.file);
        self.problems.iter().any(|problem| problem.severity == Severity::Error && here(problem))
    }

    fn say(&mut self, severity: Severity, span: Span, message: String, help: String) {
        if self.problems.len() >= limits::PROBLEMS {
            return;
        }
        let problem = Problem::new(severity, self.at(span), message);
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    /// Reads the members of an object into the rows of a section, and defaults where there are none. Of two members with the
    /// same key the last one counts.
    fn section(&mut self, info: &SectionInfo, span: Span, members: &[Member], rows: &mut dyn Rows) {
        let mut filled = vec![false; info.fields.len()];
        for member in members {
            let same = |field: &Field| match info.any_case {
                true => member.key.eq_ignore_ascii_case(field.key),
                false => member.key == field.key,
            };
            let row = info.fields.iter().zip(&mut filled).enumerate().find(|(_, (field, _))| same(field));
            let Some((row, (field, filled))) = row else {
                if !is_ignored_key(&member.key) {
                    self.unknown_key(info, member);
                }
                continue;
            };
            let node = &member.value;
            let (place, key) = (self.at(node.span), self.at(member.key_span));
            let found = Found { name: field.key, node, place, key, written: true };
            *filled = rows.fill(row, self, Some(&found).filter(|_| node.value != Value::Null));
        }
        for (row, (field, filled)) in info.fields.iter().zip(filled).enumerate() {
            if let DefaultValue::Is(text) = field.default
                && !filled
                && let Some(node) = self.defaults.entry(text).or_insert_with(|| default_node(text)).clone()
            {
                let place = self.at(span);
                let found = Found { name: field.key, node: &node, place, key: place, written: false };
                rows.fill(row, self, Some(&found));
            }
        }
    }

    /// Says that a key is not known, with the nearest one that is (C4).
    pub fn unknown_key(&mut self, info: &SectionInfo, member: &Member) {
        // Advice costs more than a message that nobody will read is worth.
        if self.problems.len() >= limits::PROBLEMS {
            return;
        }
        let message = format!("unknown key `{}` in {}", member.key, info.name);
        self.error(member.key_span, message, advice(info, &member.key));
    }

    /// The members of an object, or a complaint that it is none.
    pub fn members<'n>(&mut self, key: &str, node: &'n Node, example: &str) -> Option<&'n [Member]> {
        if let Value::Object(members) = &node.value {
            return Some(members);
        }
        let message = format!("`{key}` must be an object, not {}", found(node));
        self.error(node.span, message, format!("write for example {key}: {example}"));
        None
    }

    /// The text of a value that may be written as text, number or boolean (C3).
    pub fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = generous_text(&node.value);
        if text.is_none() {
            let help = match &node.value {
                Value::List(items) => match items.as_slice() {
                    [Node { value: Value::String(only), .. }] => {
                        format!("write {key}: \"{}\"", shortened(only))
                    }
                    _ => format!("write one text: {key}: \"…\""),
                },
                _ => format!("write {key}: \"…\""),
            };
            self.error(node.span, format!("`{key}` must be text, not {}", found(node)), help);
        }
        text
    }
}

/// The default that a row of the table states, as if it were written.
fn default_node(text: &str) -> Option<Rc<Node>> {
    let parsed = crate::json5::parse(format!("{{v:{text}}}").as_bytes());
    match parsed.root?.value {
        Value::Object(members) => Some(Rc::new(members.into_iter().next()?.value)),
        _ => None,
    }
}

/// What other programs, and older versions of this one, call a key.
const OTHER_NAMES: [(&str, &str); 27] = [
    ("command", "exec"),
    ("cmd", "exec"),
    ("run", "exec"),
    ("program", "exec"),
    ("entrypoint", "exec"),
    ("healthcheck", "health"),
    ("check", "health"),
    ("depends_on", "when"),
    ("dependsOn", "when"),
    ("after", "when"),
    ("src", "source"),
    ("from", "source"),
    ("poll", "interval"),
    ("period", "interval"),
    ("every", "interval"),
    ("workdir", "cwd"),
    ("working_dir", "cwd"),
    ("host", "address"),
    ("url", "address"),
    ("labels", "tags"),
    ("datacenter", "dc"),
    ("sensors", "metrics"),
    ("metrics", "sensors"),
    ("interval", "poll"),
    ("frequency", "poll"),
    ("exec", "command"),
    ("exec", "health"),
];

/// What to do about a key that a section does not know.
fn advice(info: &SectionInfo, key: &str) -> String {
    let known: Vec<&str> = info.fields.iter().map(|field| field.key).collect();
    if let Some(same) = known.iter().find(|known| known.eq_ignore_ascii_case(key)) {
        return format!("did you mean `{same}`?");
    }
    let has = |inner: &SectionInfo| inner.fields.iter().any(|field| field.key.eq_ignore_ascii_case(key));
    let inner = info.fields.iter().filter(|field| field.shape.section().is_some_and(has));
    let inner: Vec<String> = inner.map(|field| format!("`{}`", field.key)).collect();
    if let [first, ..] = inner.as_slice() {
        let first = first.trim_matches('`');
        return format!("it belongs inside {}: write {first}: {{ {key}: … }}", alternatives(&inner));
    }
    if let Some(meant) = suggest::best_match(key, &known, &OTHER_NAMES) {
        return format!("did you mean `{meant}`?");
    }
    let akin = known.iter().filter(|known| is_prefix(key, known) || is_prefix(known, key));
    let akin: Vec<String> = akin.map(|known| format!("`{known}`")).collect();
    if !akin.is_empty() {
        return format!("did you mean {}?", alternatives(&akin));
    }
    let top = &crate::fields::ConfigFields::INFO;
    let old = &crate::legacy::fields::LegacyFields::INFO;
    if info.title == top.title
        && let Some(meant) = crate::legacy::meant(key)
    {
        return format!("did you mean `{meant}`, of ContainerPilot 2?");
    }
    let mut elsewhere = Vec::new();
    let is_old = info.title.starts_with("ContainerPilot 2");
    owners(if is_old { old } else { top }, key, true, &mut elsewhere);
    let known = format!("{} knows: {}", info.name, known.join(", "));
    if elsewhere.is_empty() { known } else { format!("it is a key of {}; {known}", alternatives(&elsewhere)) }
}

/// Whether a word is the beginning of another one, and long enough for that to mean something.
fn is_prefix(short: &str, long: &str) -> bool {
    short.len() >= 2 && long.get(..short.len()).is_some_and(|start| start.eq_ignore_ascii_case(short))
}

/// The sections that know a key.
fn owners(info: &SectionInfo, key: &str, top: bool, found: &mut Vec<String>) {
    for (field, inner) in info.fields.iter().filter_map(|field| Some((field, field.shape.section()?))) {
        let alone = top && matches!(field.shape, Shape::Object(_) | Shape::ObjectOrText(_));
        let name = format!("{}{}", inner.name, if alone { " at the top of the file" } else { "" });
        let has = inner.fields.iter().any(|field| field.key.eq_ignore_ascii_case(key));
        if has && !found.contains(&name) {
            found.push(name);
        }
        owners(inner, key, false, found);
    }
}

/// Words as alternatives: `a, b or c`.
#[must_use]
pub fn alternatives(words: &[String]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Keys that are left alone at every level: notes to oneself, and the editor's schema (C4).
#[must_use]
pub fn is_ignored_key(key: &str) -> bool {
    key == "$schema" || key.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
}

/// Text as 3.8 made it of other values: numbers in decimals, booleans as 1 and 0, null as nothing.
#[must_use]
pub fn generous_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(flag) => Some(if *flag { "1" } else { "0" }.to_owned()),
        Value::Number(number) => Some(crate::command::number_text(number)),
        Value::String(text) => Some(text.clone()),
        Value::List(_) | Value::Object(_) => None,
    }
}

/// A value in words, for messages.
#[must_use]
pub fn found(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {}", number.text),
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) => format!("the text \"{}\"", shortened(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The beginning of a text, for messages.
#[must_use]
pub fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Makes a part of the table of fields: a struct with one field a row, its reader, and its description.
///
/// A row reads `field: ValueType = "key", default, "rules", "help";`.
#[macro_export]
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $section:ident = $name:literal, $title:literal, $keys:ident, $about:literal {
            $($field:ident: $kind:ty = $key:literal, $default:expr, $rules:literal, $help:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $section {
            /// Where it stands.
            pub place: $crate::diagnostics::Place,
            $(#[doc = $help] pub $field: Option<$crate::decode::Spanned<<$kind as $crate::decode::ValueType>::Value>>,)*
        }

        impl $crate::decode::Section for $section {
            const INFO: $crate::decode::SectionInfo = $crate::decode::SectionInfo {
                name: $name,
                title: $title,
                help: $about,
                any_case: $crate::section!(@any_case $keys),
                fields: &[$($crate::section!(@row $kind, $key, $default, $rules, $help)),*],
            };

            fn empty(place: $crate::diagnostics::Place) -> Self {
                Self { place, $($field: None,)* }
            }
        }

        impl $crate::decode::Rows for $section {
            fn fill(
                &mut self,
                row: usize,
                cx: &mut $crate::decode::DecodeContext<'_>,
                found: Option<&$crate::decode::Found<'_>>,
            ) -> bool {
                #[expect(non_camel_case_types, reason = "they are the names of the fields, to count them")]
                enum Row { $($field,)* }
                match row {
                    $(_ if row == Row::$field as usize => $crate::decode::fill::<$kind>(&mut self.$field, cx, found),)*
                    _ => false,
                }
            }
        }
    };
    (@row $kind:ty, $key:literal, $default:expr, $rules:literal, $help:literal) => {
        $crate::decode::Field {
            key: $key,
            shape: <$kind as $crate::decode::ValueType>::SHAPE,
            default: $default,
            rules: $rules,
            help: $help,
        }
    };
    (@any_case any_case) => { true };
    (@any_case exact) => { false };
}
