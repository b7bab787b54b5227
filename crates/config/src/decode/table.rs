//! The rows of the table of fields: keys, types, defaults and help.

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

impl SectionInfo {
    /// The message and the help for a required key that is missing.
    pub(crate) fn missing(&self, key: &str) -> (String, String) {
        let field = self.fields.iter().find(|field| field.key == key);
        // The first sentence of the help.
        let about = field.and_then(|field| field.help.split(['.', ';']).next()).unwrap_or_default();
        let example = match field.map(|field| &field.shape) {
            // It must be longer than `interval`, whose example is 10.
            Some(Shape::Duration) if key == "ttl" => "30".to_owned(),
            Some(Shape::Duration) => "10".to_owned(),
            Some(Shape::OneOf(names)) => format!("\"{}\"", names.first().copied().unwrap_or("…")),
            _ => "\"…\"".to_owned(),
        };
        let mut about = about.to_owned();
        if let Some(first) = about.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        (format!("{} needs `{key}`", self.name), format!("add for example {key}: {example} ({about})"))
    }
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

/// Keys that are left alone at every level: notes to oneself, and the editor's schema (C4).
#[must_use]
pub fn is_ignored_key(key: &str) -> bool {
    key == "$schema" || key.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
}
