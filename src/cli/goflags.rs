//! ContainerPilot 3.8's flags, read as Go's `flag` package reads them (X3).
//!
//! One dash or two; `-flag value` or `-flag=value`, but a boolean takes a value only with `=`; the first
//! argument that is no flag, or the one after `--`, begins the rest. [`FLAGS`] is the only list of flags:
//! parser, suggestions and usage all come from it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

#[cfg(test)]
mod tests;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagKind {
    /// Nothing, or `=true`, `=false`.
    Bool,
    /// Any text; the last one wins.
    Text,
    /// `KEY=VALUE`, repeatable.
    Pairs,
}

/// One flag.
#[derive(Debug)]
pub(crate) struct Flag {
    /// The name without dashes.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) kind: FlagKind,
    /// One line for the user.
    pub(crate) help: &'static str,
}

const fn flag(name: &'static str, kind: FlagKind, help: &'static str) -> Flag {
    Flag { name, kind, help }
}

/// All flags. `-help` and `-h` are known besides, as in Go.
pub(crate) const FLAGS: [Flag; 9] = [
    flag("config", FlagKind::Text, "path of the configuration; default: the environment's CONTAINERPILOT"),
    flag("maintenance", FlagKind::Text, "`enable` or `disable` maintenance mode of the running supervisor"),
    flag("out", FlagKind::Text, "with -template: where to write the rendered text; `-` or nothing is stdout"),
    flag("ping", FlagKind::Bool, "ask whether the running supervisor answers"),
    flag("putenv", FlagKind::Pairs, "set KEY=VALUE in the running supervisor's environment; repeatable"),
    flag("putmetric", FlagKind::Pairs, "send the metric KEY=VALUE to the running supervisor; repeatable"),
    flag("reload", FlagKind::Bool, "reload the running supervisor's configuration"),
    flag("template", FlagKind::Bool, "render the configuration's template, print it and exit"),
    flag("version", FlagKind::Bool, "print the version and exit"),
];

/// The flags' values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) config: String,
    pub(crate) out: String,
    pub(crate) maintenance: String,
    pub(crate) template: bool,
    pub(crate) reload: bool,
    pub(crate) ping: bool,
    pub(crate) version: bool,
    pub(crate) putenv: BTreeMap<String, String>,
    pub(crate) putmetric: BTreeMap<String, String>,
    /// The arguments after the flags, as they were given.
    pub(crate) rest: Vec<OsString>,
}

/// What the program then does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Version,
    Template,
    Reload,
    Maintenance,
    PutEnv,
    PutMetric,
    Ping,
    Run,
}

impl Flags {
    /// The one action that is taken when several are asked for, in 3.8's order.
    pub(crate) fn action(&self) -> Action {
        if self.version {
            Action::Version
        } else if self.template {
            Action::Template
        } else if self.reload {
            Action::Reload
        } else if !self.maintenance.is_empty() {
            Action::Maintenance
        } else if !self.putenv.is_empty() {
            Action::PutEnv
        } else if !self.putmetric.is_empty() {
            Action::PutMetric
        } else if self.ping {
            Action::Ping
        } else {
            Action::Run
        }
    }

    /// The configuration's path: the flag's, or else that of the environment's `CONTAINERPILOT`.
    pub(crate) fn effective_config<'a>(&'a self, environment: Option<&'a str>) -> &'a str {
        if self.config.is_empty() { environment.unwrap_or_default() } else { &self.config }
    }

    fn bool_mut(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "template" => Some(&mut self.template),
            "reload" => Some(&mut self.reload),
            "ping" => Some(&mut self.ping),
            "version" => Some(&mut self.version),
            _ => None,
        }
    }

    fn text_mut(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "config" => Some(&mut self.config),
            "out" => Some(&mut self.out),
            "maintenance" => Some(&mut self.maintenance),
            _ => None,
        }
    }

    fn pairs_mut(&mut self, name: &str) -> Option<&mut BTreeMap<String, String>> {
        match name {
            "putenv" => Some(&mut self.putenv),
            "putmetric" => Some(&mut self.putmetric),
            _ => None,
        }
    }
}

/// Why the arguments were not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagErrorKind {
    /// `-help` or `-h`: no mistake, but nothing else is done.
    Help,
    UnknownFlag,
    MissingValue,
    BadBoolean,
    BadPair,
    BadSyntax,
}

/// The arguments were not understood, or help was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlagError {
    pub(crate) kind: FlagErrorKind,
    /// Go's own sentence, which scripts may know, and perhaps a suggestion.
    pub(crate) message: String,
}

impl FlagError {
    fn new(kind: FlagErrorKind, message: String) -> Self {
        Self { kind, message }
    }

    /// The exit status that belongs to it (X6).
    pub(crate) fn exit_code(&self) -> u8 {
        if self.kind == FlagErrorKind::Help { 0 } else { 2 }
    }
}

impl fmt::Display for FlagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FlagError {}

/// Reads the arguments after the program's name. Those that are not UTF-8 may stand in the rest, not in a flag.
pub(crate) fn parse<A: AsRef<OsStr>>(args: &[A]) -> Result<Flags, FlagError> {
    let mut flags = Flags::default();
    let mut args = args.iter().map(AsRef::as_ref).peekable();
    while let Some(arg) = args.next_if(|arg| is_flag(arg)) {
        if arg == "--" {
            break;
        }
        let arg = utf8(arg)?;
        let (name, value) = name_and_value(arg)?;
        let Some(flag) = FLAGS.iter().find(|flag| flag.name == name) else { return Err(unknown(name)) };
        if flag.kind == FlagKind::Bool {
            set_bool(&mut flags, name, value.unwrap_or("true"))?;
            continue;
        }
        let value = match value {
            Some(value) => value,
            None => utf8(args.next().ok_or_else(|| missing_value(name))?)?,
        };
        set(&mut flags, flag, value)?;
    }
    flags.rest = args.map(OsStr::to_owned).collect();
    Ok(flags)
}

/// Whether an argument is taken for a flag: a dash, and something after it.
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

/// `--name=value` in its parts.
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

fn set_bool(flags: &mut Flags, name: &str, value: &str) -> Result<(), FlagError> {
    let value = match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
        "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
        _ => {
            let message = format!("invalid boolean value {value:?} for -{name}: parse error");
            return Err(FlagError::new(FlagErrorKind::BadBoolean, message));
        }
    };
    if let Some(slot) = flags.bool_mut(name) {
        *slot = value;
    }
    Ok(())
}

fn set(flags: &mut Flags, flag: &Flag, value: &str) -> Result<(), FlagError> {
    let name = flag.name;
    if let Some(slot) = flags.text_mut(name) {
        value.clone_into(slot);
    } else if let Some(pairs) = flags.pairs_mut(name) {
        let Some((key, value)) = value.split_once('=') else {
            let message = format!(
                "invalid value {value:?} for flag -{name}: flag value '{value}' was not in the format 'key=val'"
            );
            return Err(FlagError::new(FlagErrorKind::BadPair, message));
        };
        pairs.insert(key.to_owned(), value.to_owned());
    }
    Ok(())
}

fn unknown(name: &str) -> FlagError {
    if matches!(name, "help" | "h") {
        return FlagError::new(FlagErrorKind::Help, "flag: help requested".to_owned());
    }
    let mut message = format!("flag provided but not defined: -{name}");
    let nearest = nearest(name);
    if !nearest.is_empty() {
        message += &format!(" (did you mean -{}?)", nearest.join(" or -"));
    }
    FlagError::new(FlagErrorKind::UnknownFlag, message)
}

/// The flags that begin like `name`, or else the one that differs in the fewest letters, if those are few.
fn nearest(name: &str) -> Vec<&'static str> {
    let name = name.trim().to_lowercase();
    // Flags are short; nothing long is worth measuring.
    if name.is_empty() || name.len() > 20 {
        return Vec::new();
    }
    let names = FLAGS.iter().map(|flag| flag.name).chain(["help"]);
    let begins: Vec<_> = names.clone().filter(|flag| flag.starts_with(&name)).collect();
    if !begins.is_empty() {
        return begins;
    }
    let nearest = names.map(|flag| (distance(&name, flag), flag)).min();
    nearest.filter(|(distance, flag)| *distance <= flag.len() / 3).map(|(_, flag)| flag).into_iter().collect()
}

/// How many letters must be put in, taken out or changed to make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let best = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The flags and what they do, one per line.
pub(crate) fn usage() -> String {
    let line = |flag: &Flag| {
        let value = match flag.kind {
            FlagKind::Bool => "",
            FlagKind::Text => " TEXT",
            FlagKind::Pairs => " KEY=VALUE",
        };
        format!("  {:24}{}\n", format!("-{}{value}", flag.name), flag.help)
    };
    FLAGS.iter().map(line).collect()
}
