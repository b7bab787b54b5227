//! The kinds of values: one way of reading for each type of the table of fields.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use containerpilot_core::event::Code;
use containerpilot_core::plan::{
    AtEnd, Command, Format, HttpTarget, Level, Limit, OnUnhealthy, Output, Principal, Resource, Restarts,
    Signal, Status,
};

use crate::command;
use crate::decode::{Cx, Given, Kind, Section, SectionInfo, Shape, found, generous_text, shortened};
use crate::duration::{self, DurationError};
use crate::json5::{Node, Value};

/// Text; numbers and booleans are taken as text (C3).
pub struct Text;

impl Kind for Text {
    type Value = String;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node)
    }
}

/// Text of which an empty one is as good as nothing.
pub struct TextOrUnset;

impl Kind for TextOrUnset {
    type Value = String;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node).filter(|text| !text.is_empty())
    }
}

/// True or false, also as `"true"`, `"1"` or a number (C3).
pub struct Flag;

impl Kind for Flag {
    type Value = bool;
    const SHAPE: Shape = Shape::Flag;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<bool> {
        match &node.value {
            Value::Bool(flag) => return Some(*flag),
            Value::Number(number) => return Some(number.value != 0.0),
            Value::String(text) => match parse_bool(text) {
                Some(flag) => return Some(flag),
                // 3.8 reads an empty text as false; as nothing at all, every default stays the safe one.
                None if text.is_empty() => return None,
                None => {}
            },
            _ => {}
        }
        let help = match &node.value {
            Value::String(text) if matches!(text.to_lowercase().as_str(), "yes" | "on") => "write true",
            Value::String(text) if matches!(text.to_lowercase().as_str(), "no" | "off") => "write false",
            _ => "",
        };
        cx.error(node.span, format!("`{key}` must be true or false, not {}", found(node)), help);
        None
    }
}

/// Go's idea of a boolean in a text.
#[must_use]
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A whole number from `MIN` to `MAX`.
pub struct Whole<const MIN: i64, const MAX: i64>;

/// A port; 0 is none.
pub type Port = Whole<0, 65535>;

impl<const MIN: i64, const MAX: i64> Kind for Whole<MIN, MAX> {
    type Value = i64;
    const SHAPE: Shape = Shape::Whole { min: MIN, max: MAX };
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<i64> {
        let bounds = || format!("a whole number from {MIN} to {MAX}");
        match whole(cx, node) {
            Some(number) if (MIN..=MAX).contains(&number) => Some(number),
            _ => {
                let help = match &node.value {
                    Value::List(_) if key == "port" => {
                        "write one number; another port needs a job of its own"
                    }
                    Value::String(_) if key == "port" => "write the port's number, for example port: 8000",
                    _ => "",
                };
                cx.error(node.span, format!("`{key}` must be {}, not {}", bounds(), found(node)), help);
                None
            }
        }
    }
}

/// A whole number as 3.8 reads one: fractions are cut, booleans are 1 and 0, a text may have a prefix.
fn whole(cx: &mut Cx<'_>, node: &Node) -> Option<i64> {
    match &node.value {
        Value::Number(number) => {
            let cut = number.value.trunc();
            if number.value.fract() != 0.0 {
                cx.warn(node.span, format!("the fraction is cut off: {} counts as {cut}", number.text), "");
            }
            // The bound is an exact power of two, so the comparison is exact too, and NaN fails it.
            const BOUND: f64 = (1_u64 << 63) as f64;
            #[expect(clippy::cast_possible_truncation, reason = "the guard holds it within 64 bits")]
            (-BOUND..BOUND).contains(&cut).then_some(cut as i64)
        }
        Value::Bool(flag) => {
            let number = i64::from(*flag);
            cx.warn(node.span, format!("{flag} counts as {number}"), "write the number");
            Some(number)
        }
        Value::String(text) => parse_whole(text),
        _ => None,
    }
}

/// A whole number in a text: digits are decimal (3.8 takes `010` for 8), `0x`, `0b` and `0o` are prefixes, and
/// `_` may stand between digits.
#[must_use]
pub fn parse_whole(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits, prefixed) = [("0x", 16), ("0b", 2), ("0o", 8)]
        .into_iter()
        .find_map(|(prefix, radix)| Some((radix, lower.strip_prefix(prefix)?, true)))
        .unwrap_or((10, lower.as_str(), false));
    let tidy = |digits: &str| {
        !digits.is_empty()
            && !digits.ends_with('_')
            && !digits.contains("__")
            && (prefixed || !digits.starts_with('_'))
    };
    if !tidy(digits) || digits.starts_with(['+', '-']) {
        return None;
    }
    let plain = digits.replace('_', "");
    let number = i128::from_str_radix(&plain, radix).ok()?;
    i64::try_from(if negative { -number } else { number }).ok()
}

/// Seconds as a number, or a duration: where 3.8 has whole seconds (H1, S4, D7).
pub struct Seconds;

impl Kind for Seconds {
    type Value = i64;
    const SHAPE: Shape = Shape::Duration;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<i64> {
        if let Value::String(text) = &node.value
            && parse_whole(text).is_none()
            && !text.is_empty()
        {
            return duration_of(cx, key, node, text, duration::parse_go);
        }
        let seconds = whole(cx, node);
        let nanoseconds = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
        if nanoseconds.is_none() {
            let message = match seconds {
                Some(_) => format!("`{key}` is too long: at most 292 years can be counted"),
                None => format!("`{key}` must be a number of seconds or a duration, not {}", found(node)),
            };
            cx.error(node.span, message, "write for example 5, \"5s\" or \"1m30s\"");
        }
        nanoseconds
    }
}

/// Seconds or a duration, of which 0 is as good as nothing (3.8's global `stopTimeout`).
pub struct SecondsOrUnset;

impl Kind for SecondsOrUnset {
    type Value = i64;
    const SHAPE: Shape = Shape::Duration;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<i64> {
        Seconds::read(cx, key, node).filter(|time| *time != 0)
    }
}

/// A duration; a number or digits are seconds, an empty text is as good as nothing (C3).
pub struct DurationText;

impl Kind for DurationText {
    type Value = i64;
    const SHAPE: Shape = Shape::Duration;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<i64> {
        let text = duration_text(cx, key, node)?;
        duration_of(cx, key, node, &text, duration::parse)
    }
}

fn duration_text(cx: &mut Cx<'_>, key: &str, node: &Node) -> Option<String> {
    let Some(text) = generous_text(&node.value) else {
        let message = format!("`{key}` must be a duration, not {}", found(node));
        cx.error(node.span, message, "write for example 5, \"5s\" or \"1m30s\"");
        return None;
    };
    (!text.is_empty()).then_some(text)
}

fn duration_of(
    cx: &mut Cx<'_>,
    key: &str,
    node: &Node,
    text: &str,
    parse: impl Fn(&str) -> Result<i64, DurationError>,
) -> Option<i64> {
    match parse(text) {
        Ok(nanoseconds) => Some(nanoseconds),
        Err(error) => {
            let message = match &error {
                DurationError::NotADuration => {
                    format!("`{key}` must be a number of seconds or a duration, not {}", found(node))
                }
                _ => format!("`{key}` is not a duration: {error}"),
            };
            let help = match &error {
                DurationError::NotADuration => "write for example 5, \"5s\" or \"1m30s\"".to_owned(),
                // What is missing at the end is the next smaller unit: `1h30` is `1h30m`.
                DurationError::MissingUnit { number } if text.ends_with(number.as_str()) => {
                    let unit = if text.contains('h') { "m" } else { "s" };
                    format!("write \"{text}{unit}\"")
                }
                _ => error.help(),
            };
            cx.error(node.span, message, help);
            None
        }
    }
}

/// A duration that must have a unit, not read yet: it counts only for an advertised job.
pub struct DurationWithUnit;

impl Kind for DurationWithUnit {
    type Value = String;
    const SHAPE: Shape = Shape::DurationWithUnit;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node)
    }
}

/// How long a run may take (P5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// So many nanoseconds.
    For(i64),
    /// For ever.
    Forever,
}

/// A duration, or `"never"`.
pub struct DurationOrNever;

impl Kind for DurationOrNever {
    type Value = Patience;
    const SHAPE: Shape = Shape::DurationOrNever;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Patience> {
        let text = duration_text(cx, key, node)?;
        if text == "never" {
            return Some(Patience::Forever);
        }
        duration_of(cx, key, node, &text, duration::parse).map(Patience::For)
    }
}

/// A duration of a plan: nothing is shorter than nothing.
#[must_use]
pub fn span_of(nanoseconds: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

/// A program and its arguments (P8).
pub struct Exec;

impl Kind for Exec {
    type Value = Command;
    const SHAPE: Shape = Shape::Command;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Command> {
        const HELP: &str = "write the program and its arguments as one text, or as a list of texts";
        let mut words = match &node.value {
            Value::String(text) => command::split(text),
            Value::List(items) => {
                let mut words = Vec::with_capacity(items.len());
                for item in items {
                    words.push(argument(cx, key, item)?);
                }
                words
            }
            _ => {
                cx.error(node.span, format!("`{key}` must be a command, not {}", found(node)), HELP);
                return None;
            }
        };
        if words.first().is_none_or(String::is_empty) {
            cx.error(node.span, format!("`{key}` names no program"), HELP);
            return None;
        }
        if words.iter().any(|word| word.contains('\0')) {
            cx.error(node.span, format!("`{key}` holds a NUL byte, which no argument can"), "");
            return None;
        }
        let program = words.remove(0);
        Some(Command { program, arguments: words })
    }
}

fn argument(cx: &mut Cx<'_>, key: &str, item: &Node) -> Option<String> {
    match &item.value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(command::number_text(number)),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::List(_) | Value::Object(_) => {
            let message = format!("an argument in `{key}` must be text, not {}", found(item));
            let help = match item.value {
                Value::Null => "remove it, or write \"\" for an empty argument",
                Value::List(_) => "write the program and all its arguments as one list",
                _ => "write each argument as a text in quotes",
            };
            cx.error(item.span, message, help);
            None
        }
    }
}

/// A list of texts.
pub struct Words;

impl Kind for Words {
    type Value = Vec<String>;
    const SHAPE: Shape = Shape::Words;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Vec<String>> {
        items(cx, key, node)?.iter().map(|item| cx.text(key, item)).collect()
    }
}

/// The elements of a list. An empty object passes for an empty list, as in 3.8.
fn items<'n>(cx: &mut Cx<'_>, key: &str, node: &'n Node) -> Option<&'n [Node]> {
    match &node.value {
        Value::List(items) => Some(items),
        Value::Object(members) if members.is_empty() => Some(&[]),
        other => {
            let message = format!("`{key}` must be a list, not {}", found(node));
            let help = match other {
                Value::String(text) => format!("write {key}: [\"{}\"]", shortened(text)),
                _ => format!("write {key}: [ … ]"),
            };
            cx.error(node.span, message, help);
            None
        }
    }
}

/// A list of numbers.
pub struct Numbers;

impl Kind for Numbers {
    type Value = Vec<f64>;
    const SHAPE: Shape = Shape::Numbers;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Vec<f64>> {
        let mut numbers = Vec::new();
        for item in items(cx, key, node)? {
            let number = match &item.value {
                Value::Number(number) => Some(number.value),
                Value::String(text) => text.parse().ok(),
                _ => None,
            };
            match number.filter(|number| !number.is_nan()) {
                Some(number) => numbers.push(number),
                None => {
                    cx.error(item.span, format!("`{key}` must hold numbers, not {}", found(item)), "");
                    return None;
                }
            }
        }
        Some(numbers)
    }
}

/// Where an address is taken from (D6): one specification or a list, not read yet: it counts only for an
/// advertised job.
pub struct Interfaces;

impl Kind for Interfaces {
    type Value = Vec<Given<String>>;
    const SHAPE: Shape = Shape::WordOrWords;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Vec<Given<String>>> {
        let items = match &node.value {
            Value::String(_) => std::slice::from_ref(node),
            Value::List(items) => items,
            _ => {
                let message = format!("`{key}` must be a text or a list of texts, not {}", found(node));
                cx.error(node.span, message, format!("write for example {key}: [\"eth0\", \"inet\"]"));
                return None;
            }
        };
        let mut specs = Vec::new();
        for item in items {
            let place = cx.at(item.span);
            specs.push(Given { value: cx.text(key, item)?, place, key: place, written: true });
        }
        Some(specs)
    }
}

/// An object from text to text.
pub struct TextMap;

impl Kind for TextMap {
    type Value = BTreeMap<String, String>;
    const SHAPE: Shape = Shape::Map;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Self::Value> {
        let mut map = BTreeMap::new();
        for member in cx.members(key, node, "{ NAME: \"value\" }")? {
            if member.key.is_empty() || member.key.contains(['=', '\0']) {
                cx.error(member.key_span, format!("a name in `{key}` may not be empty or hold `=`"), "");
                continue;
            }
            let value = cx.text(&member.key, &member.value)?;
            map.insert(member.key.clone(), value);
        }
        Some(map)
    }
}

/// How often a job runs again (W6).
pub struct RestartLimit;

impl Kind for RestartLimit {
    type Value = Restarts;
    const SHAPE: Shape = Shape::Restarts;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Restarts> {
        let count = match &node.value {
            Value::String(text) if text == "never" => Some(0),
            Value::String(text) if text == "unlimited" => return Some(Restarts::Unlimited),
            Value::String(text) => text.parse::<i64>().ok(),
            Value::Number(number) if number.value >= 0.0 => whole(cx, node),
            _ => None,
        };
        let limit = count.and_then(|count| u64::try_from(count).ok()).map(Restarts::Limited);
        if limit.is_none() {
            let message =
                format!("`{key}` must be a whole number, \"never\" or \"unlimited\", not {}", found(node));
            let others = [
                ("always", "unlimited"),
                ("forever", "unlimited"),
                ("infinite", "unlimited"),
                ("infinity", "unlimited"),
                ("unless-stopped", "unlimited"),
                ("on-failure", "unlimited"),
                ("yes", "unlimited"),
                ("no", "never"),
                ("none", "never"),
            ];
            let near = match &node.value {
                Value::String(text) => crate::suggest::meant(text, &["never", "unlimited"], &others),
                Value::Bool(true) => Some("unlimited"),
                Value::Bool(false) => Some("never"),
                Value::Number(number) if number.value < 0.0 => Some("unlimited"),
                _ => None,
            };
            let help = match near {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "the number is how many times the job runs again after its first run".to_owned(),
            };
            cx.error(node.span, message, help);
        }
        limit
    }
}

/// A user or a group (P9).
pub struct Account;

impl Kind for Account {
    type Value = Principal;
    const SHAPE: Shape = Shape::Principal;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Principal> {
        let text = cx.text(key, node)?;
        if text.is_empty() || text.contains(['\0', ':', '/']) || text.starts_with('-') {
            cx.error(node.span, format!("`{key}` must be a name or a number, not {}", found(node)), "");
            return None;
        }
        Some(match text.parse() {
            Ok(id) => Principal::Id(id),
            Err(_) => Principal::Name(text),
        })
    }
}

/// Permission bits in octal: `"0600"`, `"022"`.
pub struct Mode;

impl Kind for Mode {
    type Value = u16;
    const SHAPE: Shape = Shape::Mode;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<u16> {
        let bits = match &node.value {
            Value::String(text) => {
                let digits = text.strip_prefix("0o").unwrap_or(text);
                let octal = !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
                octal.then(|| u16::from_str_radix(digits, 8).ok()).flatten()
            }
            // A bare number has no octal form in JSON5, so it can only be a mistake: 644 is not 0o644.
            _ => None,
        };
        let bits = bits.filter(|bits| *bits <= 0o777);
        if bits.is_none() {
            let message = format!("`{key}` must be octal digits in quotes, not {}", found(node));
            cx.error(node.span, message, format!("write for example {key}: \"0640\""));
        }
        bits
    }
}

/// Resource limits by name (P9): `{ nofile: 1024, core: "unlimited", nproc: [100, 200] }`.
pub struct Limits;

/// The names of the resources, as `ulimit` and `prlimit` know them.
pub const RESOURCES: [(&str, Resource); 16] = [
    ("as", Resource::As),
    ("core", Resource::Core),
    ("cpu", Resource::Cpu),
    ("data", Resource::Data),
    ("fsize", Resource::Fsize),
    ("locks", Resource::Locks),
    ("memlock", Resource::Memlock),
    ("msgqueue", Resource::Msgqueue),
    ("nice", Resource::Nice),
    ("nofile", Resource::Nofile),
    ("nproc", Resource::Nproc),
    ("rss", Resource::Rss),
    ("rtprio", Resource::Rtprio),
    ("rttime", Resource::Rttime),
    ("sigpending", Resource::Sigpending),
    ("stack", Resource::Stack),
];

impl Kind for Limits {
    type Value = Vec<Limit>;
    const SHAPE: Shape = Shape::Limits;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Vec<Limit>> {
        let mut limits: Vec<Limit> = Vec::new();
        for member in cx.members(key, node, "{ nofile: 1024 }")? {
            let known = RESOURCES.iter().find(|(name, _)| name.eq_ignore_ascii_case(&member.key));
            let Some((_, resource)) = known else {
                let names = || RESOURCES.iter().map(|(name, _)| *name);
                let help = match crate::suggest::nearest(&member.key, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the resources are {}", names().collect::<Vec<_>>().join(", ")),
                };
                cx.error(member.key_span, format!("unknown resource `{}` in `{key}`", member.key), help);
                continue;
            };
            let one = |cx: &mut Cx<'_>, node: &Node| limit_value(cx, &member.key, node);
            let (soft, hard) = match &member.value.value {
                Value::List(pair) => {
                    let [soft, hard] = pair.as_slice() else {
                        let message = format!("`{}` must be one limit, or a soft and a hard one", member.key);
                        cx.error(member.value.span, message, "write for example nofile: [1024, 4096]");
                        continue;
                    };
                    (one(cx, soft)?, one(cx, hard)?)
                }
                _ => {
                    let both = one(cx, &member.value)?;
                    (both, both)
                }
            };
            if soft.unwrap_or(u64::MAX) > hard.unwrap_or(u64::MAX) {
                let message = format!("the soft limit of `{}` is above the hard one", member.key);
                cx.error(member.value.span, message, "write [soft, hard]");
                continue;
            }
            limits.retain(|limit| limit.resource != *resource);
            limits.push(Limit { resource: *resource, soft, hard });
        }
        Some(limits)
    }
}

/// A limit; the inner `None` is unlimited.
fn limit_value(cx: &mut Cx<'_>, key: &str, node: &Node) -> Option<Option<u64>> {
    let number = match &node.value {
        Value::String(text) if text == "unlimited" => return Some(None),
        Value::String(text) => parse_whole(text),
        Value::Number(_) => whole(cx, node),
        _ => None,
    };
    let limit = number.and_then(|number| u64::try_from(number).ok());
    if limit.is_none() {
        let message = format!("the limit of `{key}` must be a number or \"unlimited\", not {}", found(node));
        cx.error(node.span, message, "");
    }
    limit.map(Some)
}

/// The names of signals, as `kill -l` knows them.
const SIGNALS: [(&str, u8); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// A signal by name, with or without `SIG`, or by number.
pub struct SignalName;

impl Kind for SignalName {
    type Value = Signal;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Signal> {
        let text = cx.text(key, node)?;
        let signal = signal_named(&text);
        if signal.is_none() {
            cx.error(
                node.span,
                format!("`{key}` must be a signal, not {}", found(node)),
                "write for example \"SIGINT\"",
            );
        }
        signal
    }
}

/// The signal of that name or number.
#[must_use]
pub fn signal_named(text: &str) -> Option<Signal> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let by_name = SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let realtime = name.strip_prefix("RTMIN").and_then(|rest| match rest {
        "" => Some(34),
        _ => rest.strip_prefix('+')?.parse::<u8>().ok()?.checked_add(34),
    });
    let number = by_name.or(realtime).or_else(|| text.parse().ok())?;
    (1..=64).contains(&number).then_some(Signal(number))
}

/// A value that is one of a few texts.
pub trait Choice: Sized + Copy + 'static {
    /// The texts, the first of equal ones being the one to write.
    const NAMES: &'static [&'static str];
    /// What they stand for, in the same order.
    const VALUES: &'static [Self];
    /// Whether capital letters make no difference (3.8's logging).
    const ANY_CASE: bool = false;
    /// What other programs call them.
    const OTHERS: &'static [(&'static str, &'static str)] = &[];
}

/// One of a few texts. An empty text is as good as nothing.
pub struct OneOf<C>(PhantomData<C>);

impl<C: Choice> Kind for OneOf<C> {
    type Value = C;
    const SHAPE: Shape = Shape::OneOf(C::NAMES);
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<C> {
        let text = cx.text(key, node)?;
        if text.is_empty() {
            return None;
        }
        let same = |name: &str| if C::ANY_CASE { name.eq_ignore_ascii_case(&text) } else { name == text };
        let chosen = C::NAMES.iter().position(|name| same(name)).and_then(|at| C::VALUES.get(at));
        if chosen.is_none() {
            let message = format!("`{key}` must be {}, not {}", listed(C::NAMES), found(node));
            let near = crate::suggest::meant(&text, C::NAMES, C::OTHERS);
            cx.error(
                node.span,
                message,
                near.map(|near| format!("did you mean \"{near}\"?")).unwrap_or_default(),
            );
        }
        chosen.copied()
    }
}

/// Texts in words: `"a", "b" or "c"`.
#[must_use]
pub fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

impl Choice for Level {
    const NAMES: &'static [&'static str] = &["debug", "info", "warn", "warning", "error", "fatal", "panic"];
    const VALUES: &'static [Self] =
        &[Self::Debug, Self::Info, Self::Warn, Self::Warn, Self::Error, Self::Fatal, Self::Panic];
    const ANY_CASE: bool = true;
    const OTHERS: &'static [(&'static str, &'static str)] = &[
        ("trace", "debug"),
        ("verbose", "debug"),
        ("all", "debug"),
        ("notice", "info"),
        ("critical", "fatal"),
        ("quiet", "error"),
    ];
}

impl Choice for Format {
    const NAMES: &'static [&'static str] = &["default", "text", "json"];
    const VALUES: &'static [Self] = &[Self::Default, Self::Text, Self::Json];
    const ANY_CASE: bool = true;
}

impl Choice for Status {
    const NAMES: &'static [&'static str] = &["passing", "warning", "critical"];
    const VALUES: &'static [Self] = &[Self::Passing, Self::Warning, Self::Critical];
}

impl Choice for AtEnd {
    const NAMES: &'static [&'static str] = &["continue", "shutdown"];
    const VALUES: &'static [Self] = &[Self::Continue, Self::Shutdown];
}

impl Choice for OnUnhealthy {
    const NAMES: &'static [&'static str] = &["report", "restart"];
    const VALUES: &'static [Self] = &[Self::Report, Self::Restart];
}

/// The scheme of Consul's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Encrypted.
    Https,
}

impl Choice for Scheme {
    const NAMES: &'static [&'static str] = &["http", "https"];
    const VALUES: &'static [Self] = &[Self::Http, Self::Https];
}

/// The type of a metric (T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are Prometheus' own four types")]
pub enum MetricType {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

impl Choice for MetricType {
    const NAMES: &'static [&'static str] = &["counter", "gauge", "histogram", "summary"];
    const VALUES: &'static [Self] = &[Self::Counter, Self::Gauge, Self::Histogram, Self::Summary];
}

/// Where the log goes: `stdout`, `stderr`, or a file (L1).
pub struct LogOutput;

impl Kind for LogOutput {
    type Value = Output;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Output> {
        let text = cx.text(key, node)?;
        match text.to_ascii_lowercase().as_str() {
            "" => None,
            "stdout" => Some(Output::Stdout),
            "stderr" => Some(Output::Stderr),
            _ => Some(Output::File(text)),
        }
    }
}

/// The code of an event, or a name that 3.8 knows but that never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventName {
    /// A code that can come.
    Code(Code),
    /// 3.8 takes this word too, but no job ever sees such an event.
    NeverSent(&'static str),
}

/// What `once` and `each` hold: an event's name, or whether each one counts (W12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOrFlag {
    /// An event.
    Event(EventName),
    /// True or false, beside `all` or `any`.
    Flag(bool),
}

/// The names that a configuration can write for an event.
pub const EVENT_NAMES: [&str; 12] = {
    let mut names = [""; 12];
    let mut at = 0;
    while at < names.len() {
        names[at] = Code::NAMED[at].name();
        at += 1;
    }
    names
};

/// What people call the events.
const OTHER_EVENTS: [(&str, &str); 18] = [
    ("exit", "exitSuccess"),
    ("exited", "exitSuccess"),
    ("done", "exitSuccess"),
    ("finished", "exitSuccess"),
    ("complete", "exitSuccess"),
    ("completed", "exitSuccess"),
    ("success", "exitSuccess"),
    ("succeeded", "exitSuccess"),
    ("fail", "exitFailed"),
    ("failed", "exitFailed"),
    ("failure", "exitFailed"),
    ("crashed", "exitFailed"),
    ("start", "startup"),
    ("stop", "stopping"),
    ("end", "stopped"),
    ("ready", "healthy"),
    ("up", "healthy"),
    ("down", "unhealthy"),
];

/// An event's name.
pub struct Event;

impl Kind for Event {
    type Value = EventName;
    const SHAPE: Shape = Shape::OneOf(&EVENT_NAMES);
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<EventName> {
        let text = cx.text(key, node)?;
        event_named(cx, key, node, &text)
    }
}

fn event_named(cx: &mut Cx<'_>, key: &str, node: &Node, text: &str) -> Option<EventName> {
    if text.is_empty() {
        return None;
    }
    if let Some(code) = Code::from_name(text) {
        return Some(EventName::Code(code));
    }
    if let Some(word) = ["SIGHUP", "SIGUSR2", "quit", "error"].into_iter().find(|word| *word == text) {
        return Some(EventName::NeverSent(word));
    }
    let lower = text.to_lowercase();
    let help = match crate::suggest::meant(text, &EVENT_NAMES, &OTHER_EVENTS) {
        _ if matches!(lower.as_str(), "started" | "running") => {
            "no event tells that a job has started; \"healthy\" tells that its health check has passed"
                .to_owned()
        }
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the events are {}", EVENT_NAMES.join(", ")),
    };
    cx.error(node.span, format!("`{key}` must be the name of an event, not {}", found(node)), help);
    None
}

/// An event's name, or true or false.
pub struct EventOrBool;

impl Kind for EventOrBool {
    type Value = EventOrFlag;
    const SHAPE: Shape = Shape::EventOrFlag(&EVENT_NAMES);
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<EventOrFlag> {
        match &node.value {
            Value::Bool(flag) => Some(EventOrFlag::Flag(*flag)),
            _ => {
                let text = cx.text(key, node)?;
                event_named(cx, key, node, &text).map(EventOrFlag::Event)
            }
        }
    }
}

/// A URL that a check asks for (H5).
pub struct HttpUrl;

impl Kind for HttpUrl {
    type Value = HttpTarget;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<HttpTarget> {
        const HELP: &str = "write for example \"http://127.0.0.1:8000/health\"";
        let text = cx.text(key, node)?;
        let Some(rest) = text.strip_prefix("http://") else {
            cx.error(
                node.span,
                format!("`{key}` must be a URL that begins with http://, not {}", found(node)),
                HELP,
            );
            return None;
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let address = host_and_port(authority, Some(80));
        let clean = !path.chars().any(|c| c.is_ascii_control() || c == ' ');
        match address {
            Some((host, port)) if clean => Some(HttpTarget { host, port, path }),
            _ => {
                cx.error(
                    node.span,
                    format!("`{key}` is not a URL that can be asked for: {}", found(node)),
                    HELP,
                );
                None
            }
        }
    }
}

/// An address that a check connects to (H5).
pub struct TcpAddress;

impl Kind for TcpAddress {
    type Value = (String, u16);
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<(String, u16)> {
        let text = cx.text(key, node)?;
        let address = host_and_port(&text, None);
        if address.is_none() {
            let message = format!("`{key}` must be a host and a port, not {}", found(node));
            cx.error(node.span, message, "write for example \"127.0.0.1:5432\" or \"[::1]:5432\"");
        }
        address
    }
}

fn host_and_port(text: &str, default_port: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let bracketed = text.starts_with('[');
    if host.is_empty() || !(bracketed || host.chars().all(plain)) {
        return None;
    }
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        None => default_port?,
    };
    Some((host.to_owned(), port))
}

/// An object with keys of its own.
pub struct Object<S>(PhantomData<S>);

impl<S: Section> Kind for Object<S> {
    type Value = S;
    const SHAPE: Shape = Shape::Object(&S::INFO);
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<S> {
        let members = cx.members(key, node, example(&S::INFO))?;
        Some(S::from_members(cx, node.span, members))
    }
}

/// A section as one would write it, for messages.
fn example(info: &SectionInfo) -> &'static str {
    match info.name {
        "a job" => "{ name: \"server\", exec: \"/bin/server\" }",
        "a watch" => "{ name: \"database\", interval: 5 }",
        "a metric" => "{ name: \"requests\", help: \"…\", type: \"counter\" }",
        "a coprocess" => "{ command: \"/bin/helper\" }",
        "a condition" => "{ source: \"setup\", event: \"exitSuccess\" }",
        "`when`" => "{ source: \"setup\", once: \"exitSuccess\" }",
        "`health`" => "{ exec: \"curl --fail http://localhost:8000/\", interval: 10, ttl: 30 }",
        "`logging`" => "{ level: \"debug\" }",
        "`logging` of a job" => "{ raw: true }",
        "`consul` of a job" => "{ enableTagOverride: true }",
        "`control`" => "{ socket: \"/var/run/containerpilot.socket\" }",
        "`telemetry`" => "{ port: 9090 }",
        "`tls`" => "{ cafile: \"/etc/consul/ca.pem\" }",
        _ => "{ … }",
    }
}

/// A list of such objects; a null in it is passed over, as in 3.8.
pub struct ListOf<S>(PhantomData<S>);

impl<S: Section> Kind for ListOf<S> {
    type Value = Vec<S>;
    const SHAPE: Shape = Shape::List(&S::INFO);
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Vec<S>> {
        let passes = match &node.value {
            Value::List(_) => true,
            Value::Object(members) => {
                members.is_empty() && !matches!(key, "jobs" | "watches" | "coprocesses")
            }
            _ => false,
        };
        if !passes {
            let message = format!("`{key}` must be a list, not {}", found(node));
            cx.error(node.span, message, format!("put it in brackets: {key}: [ {{ … }} ]"));
            return None;
        }
        let mut sections = Vec::new();
        for item in items(cx, key, node)? {
            if item.value == Value::Null {
                cx.warn(item.span, format!("a null in `{key}` is passed over"), "remove it");
                continue;
            }
            let Value::Object(members) = &item.value else {
                let message = format!("each of `{key}` must be an object, not {}", found(item));
                cx.error(item.span, message, format!("write for example {}", example(&S::INFO)));
                continue;
            };
            sections.push(S::from_members(cx, item.span, members));
        }
        Some(sections)
    }
}

/// One such object, or a list of them.
pub struct OneOrMany<S>(PhantomData<S>);

/// What was written where one or many are allowed.
#[derive(Clone, Debug)]
pub struct Several<S> {
    /// The objects.
    pub items: Vec<S>,
    /// Whether they stood in a list.
    pub listed: bool,
}

impl<S: Section> Kind for OneOrMany<S> {
    type Value = Several<S>;
    const SHAPE: Shape = Shape::OneOrMany(&S::INFO);
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Several<S>> {
        match &node.value {
            Value::List(items) if items.is_empty() => {
                cx.error(
                    node.span,
                    format!("`{key}` is an empty list"),
                    "remove it, or write what it should hold",
                );
                None
            }
            Value::List(_) => Some(Several { items: ListOf::<S>::read(cx, key, node)?, listed: true }),
            _ => Some(Several { items: vec![Object::<S>::read(cx, key, node)?], listed: false }),
        }
    }
}

/// Such an object, or `false` to switch it off.
pub struct ObjectOrFalse<S>(PhantomData<S>);

impl<S: Section> Kind for ObjectOrFalse<S> {
    type Value = Option<S>;
    const SHAPE: Shape = Shape::ObjectOrFalse(&S::INFO);
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Option<S>> {
        match &node.value {
            Value::Bool(false) => Some(None),
            Value::Object(members) => Some(Some(S::from_members(cx, node.span, members))),
            _ => {
                let message = format!("`{key}` must be an object or false, not {}", found(node));
                cx.error(node.span, message, "");
                None
            }
        }
    }
}

/// Such an object, or a text that stands for one of its fields.
pub struct ObjectOrText<S>(PhantomData<S>);

/// What was written where an object or a text is allowed.
#[derive(Clone, Debug)]
pub enum Either<S> {
    /// A text.
    Text(String),
    /// An object.
    Object(S),
}

impl<S: Section> Kind for ObjectOrText<S> {
    type Value = Either<S>;
    const SHAPE: Shape = Shape::ObjectOrText(&S::INFO);
    fn read(cx: &mut Cx<'_>, key: &'static str, node: &Node) -> Option<Either<S>> {
        match &node.value {
            Value::String(text) => Some(Either::Text(text.clone())),
            Value::Object(members) => Some(Either::Object(S::from_members(cx, node.span, members))),
            _ => {
                let message = format!("`{key}` must be a text or an object, not {}", found(node));
                cx.error(node.span, message, format!("write for example {key}: \"localhost:8500\""));
                None
            }
        }
    }
}

/// The value of a field, whatever its place.
pub fn value_of<T: Clone>(given: &Option<Given<T>>) -> Option<T> {
    given.as_ref().map(|given| given.value.clone())
}
