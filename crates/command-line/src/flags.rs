//! A parser for flags that follows Go's `flag` package (X3).
//!
//! A flag has one dash or two. Its value follows as `-flag value` or `-flag=value`; a boolean takes a value only with
//! `=`. The first argument that is not a flag, or `--`, ends the flags. [`crate::table`] lists all flags.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use containerpilot_config::suggest;
use containerpilot_config::values::parse_bool;
use containerpilot_core::inserted;

#[cfg(test)]
mod tests;

/// The value of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// No value, or `=true` or `=false`.
    Bool,
    /// Text, with its name in the help; the last one wins.
    Text(&'static str),
    /// `KEY=VALUE`, repeatable.
    Pairs,
}

#[derive(Debug)]
pub struct Flag {
    /// The name without dashes.
    pub name: &'static str,
    pub kind: FlagKind,
    /// One line for the help.
    pub help: &'static str,
}

impl Flag {
    /// The short form, for flags that are typed often.
    pub fn letter(&self) -> Option<&'static str> {
        match self.name {
            "follow" => Some("f"),
            "lines" => Some("n"),
            "timestamps" => Some("t"),
            "verbose" => Some("v"),
            _ => None,
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.letter() == Some(name)
    }
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    given: Vec<(&'static str, String)>,
    /// The arguments that are not flags.
    pub rest: Vec<OsString>,
    /// True if `--` precedes the rest.
    pub double_dash: bool,
    /// How many of the rest precede a `--` that follows other arguments.
    pub before_dashes: Option<usize>,
}

impl Arguments {
    /// The value of a flag, if it was given.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.given.iter().rfind(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// The value of a text flag; empty if the flag was not given.
    pub fn text(&self, name: &str) -> &str {
        self.value(name).unwrap_or_default()
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// The names of the flags that were given.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.given.iter().map(|(name, _)| *name)
    }

    /// Adds the flags before the subcommand; the subcommand's own flags win.
    pub fn inherit(&mut self, main: &Self) {
        let mut given = main.given.clone();
        given.append(&mut self.given);
        self.given = given;
    }

    /// Adds a flag, as if it were given last.
    pub fn add(&mut self, flag: &'static str, value: String) {
        self.given.push((flag, value));
    }

    /// The flags without the other arguments.
    pub fn flags_only(&self) -> Self {
        Self { given: self.given.clone(), ..Self::default() }
    }

    /// The values of a pairs flag; the last value of a key wins.
    pub fn pairs(&self, name: &str) -> BTreeMap<&str, &str> {
        let given = self.given.iter().filter(|(given, _)| *given == name);
        inserted(given.filter_map(|(_, pair)| pair.split_once('=')))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagErrorKind {
    /// `-help` or `-h`, which is not an error.
    Help,
    UnknownFlag,
    MissingValue,
    BadBoolean,
    BadPair,
    BadSyntax,
}

/// The arguments are invalid, or they request help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagError {
    pub kind: FlagErrorKind,
    /// Go's wording, because scripts may match it, and perhaps a suggestion.
    pub message: String,
}

impl FlagError {
    fn new(kind: FlagErrorKind, message: String) -> Self {
        Self { kind, message }
    }
}

impl fmt::Display for FlagError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// Parses flags up to the first argument that is not a flag, as Go does.
pub fn parse<A: AsRef<OsStr>>(flags: &[&'static Flag], args: &[A]) -> Result<Arguments, FlagError> {
    let mut found = Arguments::default();
    let mut args = args.iter().map(AsRef::as_ref).peekable();
    while let Some(arg) = args.next_if(|arg| is_flag(arg)) {
        if arg == "--" {
            found.double_dash = true;
            break;
        }
        let arg = utf8(arg)?;
        let (name, value) = name_and_value(arg)?;
        let Some(flag) = flags.iter().find(|flag| flag.is_called(name)) else {
            return Err(unknown(flags, name));
        };
        let value = match (flag.kind, value) {
            (FlagKind::Bool, value) => boolean(name, value.unwrap_or("true"))?,
            (_, Some(value)) => value.to_owned(),
            (_, None) => utf8(args.next().ok_or_else(|| missing_value(name))?)?.to_owned(),
        };
        if flag.kind == FlagKind::Pairs && !value.contains('=') {
            return Err(bad_pair(name, &value));
        }
        found.given.push((flag.name, value));
    }
    found.rest = args.map(OsStr::to_owned).collect();
    Ok(found)
}

/// Parses the arguments of a subcommand, where flags may also follow other arguments.
pub fn parse_mixed(flags: &[&'static Flag], args: &[OsString]) -> Result<Arguments, FlagError> {
    let mut all = Arguments::default();
    let mut rest = args.to_vec();
    loop {
        let found = parse(flags, &rest)?;
        all.given.extend(found.given);
        rest = found.rest;
        if found.double_dash || rest.is_empty() {
            all.double_dash = found.double_dash && all.rest.is_empty();
            all.before_dashes = found.double_dash.then_some(all.rest.len());
            all.rest.extend(rest);
            return Ok(all);
        }
        all.rest.push(rest.remove(0));
    }
}

/// Returns true for a dash with something after it.
fn is_flag(arg: &OsStr) -> bool {
    let bytes = arg.as_encoded_bytes();
    bytes.len() > 1 && bytes.starts_with(b"-")
}

fn utf8(arg: &OsStr) -> Result<&str, FlagError> {
    arg.to_str().ok_or_else(|| {
        let message = format!("bad flag syntax: {} is not UTF-8", arg.to_string_lossy());
        FlagError::new(FlagErrorKind::BadSyntax, message)
    })
}

/// Splits `--name=value`.
fn name_and_value(arg: &str) -> Result<(&str, Option<&str>), FlagError> {
    let body = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-')).unwrap_or(arg);
    if body.is_empty() || body.starts_with(['-', '=']) {
        return Err(FlagError::new(FlagErrorKind::BadSyntax, format!("bad flag syntax: {arg}")));
    }
    Ok(body.split_once('=').map_or((body, None), |(name, value)| (name, Some(value))))
}

fn missing_value(name: &str) -> FlagError {
    FlagError::new(FlagErrorKind::MissingValue, format!("flag needs an argument: -{name}"))
}

fn boolean(name: &str, value: &str) -> Result<String, FlagError> {
    match parse_bool(value) {
        Some(value) => Ok(value.to_string()),
        None => {
            let message = format!("invalid boolean value {value:?} for -{name}: parse error");
            Err(FlagError::new(FlagErrorKind::BadBoolean, message))
        }
    }
}

fn bad_pair(name: &str, value: &str) -> FlagError {
    FlagError::new(FlagErrorKind::BadPair, not_a_pair(&format!("the value of -{name}"), value))
}

/// The message about a value without `=`. The value may be a secret that was separated from its key by mistake, so it
/// is shown only if it looks like the name of a variable.
pub fn not_a_pair(description: &str, value: &str) -> String {
    let is_name = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let shown = if is_name { format!("`{value}`") } else { description.to_owned() };
    format!("{shown} is not KEY=VALUE")
}

fn unknown(flags: &[&'static Flag], name: &str) -> FlagError {
    if matches!(name, "help" | "h") {
        return FlagError::new(FlagErrorKind::Help, "flag: help requested".to_owned());
    }
    let mut message = format!("flag provided but not defined: -{name}");
    let nearest = nearest(flags, name);
    if !nearest.is_empty() {
        message += &format!(" (did you mean -{}?)", nearest.join(" or -"));
    }
    FlagError::new(FlagErrorKind::UnknownFlag, message)
}

/// The flags that start with `name`, or else the most similar one.
fn nearest(flags: &[&'static Flag], name: &str) -> Vec<&'static str> {
    let name = name.trim().to_ascii_lowercase();
    let names = || flags.iter().map(|flag| flag.name).chain(["help"]);
    let matching: Vec<_> = names().filter(|flag| !name.is_empty() && flag.starts_with(&name)).collect();
    if matching.is_empty() { suggest::nearest(&name, names()).into_iter().collect() } else { matching }
}
