//! Reading values: from nodes of JSON5 to typed values, generously where 3.8 was generous (C3).
//!
//! A [`Kind`] is a way to read one value. The table of fields ([`crate::fields`]) names a kind for each key,
//! and the [`section!`](crate::section) macro turns a part of the table into a struct with a reader.

use crate::diagnose::{FileId, Place, Problem, Severity};
use crate::json5::{Member, Node, Value};
use crate::limits;
use crate::span::Span;
use crate::suggest;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Given<T> {
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
pub trait Kind {
    /// What is read.
    type Value;
    /// How it is described in the reference and in the schema.
    const SHAPE: Shape;
    /// Reads it, or says what is wrong with it. `None` without a problem means: as if it were not there.
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Self::Value>;
}

/// A part of the configuration with keys of its own.
pub trait Section: Sized {
    /// What the table says about it.
    const INFO: SectionInfo;
    /// Reads it from an object's members.
    fn from_members(cx: &mut Cx<'_>, span: Span, members: &[Member]) -> Self;
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
pub struct Cx<'a> {
    /// The file that is read.
    pub file: FileId,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Cx<'a> {
    /// A reader of one file.
    pub fn new(file: FileId, problems: &'a mut Vec<Problem>) -> Self {
        Self { file, problems }
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

    /// Reads the value of a member for a row of the table.
    pub fn field<K: Kind>(&mut self, field: &Field, member: &Member) -> Option<Given<K::Value>> {
        let node = &member.value;
        if node.value == Value::Null {
            return None;
        }
        let value = K::read(self, field.key, node)?;
        Some(Given { value, place: self.at(node.span), key: self.at(member.key_span), written: true })
    }

    /// The default that a row of the table states.
    pub fn default<K: Kind>(&mut self, field: &Field, section: Span) -> Option<Given<K::Value>> {
        let DefaultValue::Is(text) = field.default else { return None };
        let parsed = crate::json5::parse(format!("{{v:{text}}}").as_bytes());
        let Some(Value::Object(members)) = parsed.root.map(|node| node.value) else { return None };
        let value = K::read(self, field.key, &members.first()?.value)?;
        let place = self.at(section);
        Some(Given { value, place, key: place, written: false })
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
    if let Some(meant) = suggest::meant(key, &known, &OTHER_NAMES) {
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
/// A row reads `field: Kind = "key", default, "rules", "help";`.
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
            pub place: $crate::diagnose::Place,
            $(#[doc = $help] pub $field: Option<$crate::decode::Given<<$kind as $crate::decode::Kind>::Value>>,)*
        }

        impl $crate::decode::Section for $section {
            const INFO: $crate::decode::SectionInfo = $crate::decode::SectionInfo {
                name: $name,
                title: $title,
                help: $about,
                fields: &[$($crate::section!(@row $kind, $key, $default, $rules, $help)),*],
            };

            fn from_members(
                cx: &mut $crate::decode::Cx<'_>,
                span: $crate::span::Span,
                members: &[$crate::json5::Member],
            ) -> Self {
                let mut this = Self { place: cx.at(span), $($field: None,)* };
                for member in members {
                    $(
                        if $crate::section!(@same $keys, member.key, $key) {
                            let row = const { $crate::section!(@row $kind, $key, $default, $rules, $help) };
                            this.$field = cx.field::<$kind>(&row, member);
                            continue;
                        }
                    )*
                    if !$crate::decode::is_ignored_key(&member.key) {
                        cx.unknown_key(&<Self as $crate::decode::Section>::INFO, member);
                    }
                }
                $(
                    if this.$field.is_none() {
                        let row = const { $crate::section!(@row $kind, $key, $default, $rules, $help) };
                        this.$field = cx.default::<$kind>(&row, span);
                    }
                )*
                this
            }
        }
    };
    (@row $kind:ty, $key:literal, $default:expr, $rules:literal, $help:literal) => {
        $crate::decode::Field {
            key: $key,
            shape: <$kind as $crate::decode::Kind>::SHAPE,
            default: $default,
            rules: $rules,
            help: $help,
        }
    };
    (@same any_case, $left:expr, $right:literal) => { $left.eq_ignore_ascii_case($right) };
    (@same exact, $left:expr, $right:literal) => { $left == $right };
}
