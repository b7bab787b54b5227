//! The table of fields: sections, keys, types, defaults and help.

/// A section of the table.
#[derive(Debug)]
pub struct SectionInfo {
    /// Its name in messages: "a job".
    pub name: &'static str,
    /// Its heading in the reference.
    pub title: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// True if the case of its keys is ignored.
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

/// One row of the table: a key.
#[derive(Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// Its type.
    pub shape: Shape,
    /// The value if the key is absent.
    pub default: DefaultValue,
    /// The rules that it belongs to.
    pub rules: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// The value of a key that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// None.
    None,
    /// This value, as JSON5.
    Is(&'static str),
    /// A value that depends on something, in words.
    Says(&'static str),
    /// The key is required.
    Required,
}

/// The type of a field, for the reference and the schema.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A string.
    Text,
    /// A boolean.
    Flag,
    /// An integer within bounds.
    Whole {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
    },
    /// A port, or a range of ports.
    Ports,
    /// A number of seconds, or a duration.
    Duration,
    /// A number of bytes, or a number with a unit.
    Size,
    /// A duration with a unit.
    DurationWithUnit,
    /// A duration, or `"never"`.
    DurationOrNever,
    /// A program with arguments, as a string or a list.
    Command,
    /// A list of strings.
    Words,
    /// A list of numbers.
    Numbers,
    /// A string or a list of strings.
    WordOrWords,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An object of strings.
    Map,
    /// An object of strings, in which null unsets a variable.
    Variables,
    /// A count, `"unlimited"` or `"never"`.
    Restarts,
    /// A name or a number.
    Principal,
    /// Permission bits, such as `"0600"`.
    Mode,
    /// Resource limits by name.
    Limits,
    /// A list of the names of Linux capabilities.
    Capabilities,
    /// A path, such an object, or a list of them.
    PathsOrObjects(&'static SectionInfo),
    /// An object of such objects by name.
    MapOf(&'static SectionInfo),
    /// An object with keys of its own.
    Object(&'static SectionInfo),
    /// A list of such objects.
    List(&'static SectionInfo),
    /// One such object, or a list of them.
    OneOrMany(&'static SectionInfo),
    /// A duration, or such an object.
    DurationOrObject(&'static SectionInfo),
    /// Such an object, or `false`.
    ObjectOrBool(&'static SectionInfo),
    /// Such an object, or a string that stands for it.
    ObjectOrText(&'static SectionInfo),
    /// A list of strings or such objects.
    TextsOrObjects(&'static SectionInfo),
    /// Such an object, or this word.
    ObjectOrWord(&'static SectionInfo, &'static str),
    /// The name of an event, or a boolean beside `all` and `any`.
    EventOrFlag(&'static [&'static str]),
}

impl Shape {
    /// The section that values of this type contain.
    #[must_use]
    pub fn section(&self) -> Option<&'static SectionInfo> {
        match self {
            Self::Object(inner)
            | Self::List(inner)
            | Self::OneOrMany(inner)
            | Self::DurationOrObject(inner)
            | Self::ObjectOrBool(inner)
            | Self::ObjectOrText(inner)
            | Self::TextsOrObjects(inner)
            | Self::ObjectOrWord(inner, _)
            | Self::PathsOrObjects(inner)
            | Self::MapOf(inner) => Some(inner),
            _ => None,
        }
    }
}
