//! Settings of a process: restarts, users and groups, modes, resource limits, signals.

use containerpilot_core::plan::{Limit, Principal, Resource, Restarts, Signal};

use super::number::{parse_whole, whole};
use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// The number of restarts of a job (W6).
pub struct RestartLimit;

impl ValueType for RestartLimit {
    type Value = Restarts;
    const SHAPE: Shape = Shape::Restarts;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Restarts> {
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
                format!("`{key}` must be an integer, \"never\" or \"unlimited\", not {}", found(node));
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
                Value::String(text) => crate::suggest::best_match(text, &["never", "unlimited"], &others),
                Value::Bool(true) => Some("unlimited"),
                Value::Bool(false) => Some("never"),
                Value::Number(number) if number.value < 0.0 => Some("unlimited"),
                _ => None,
            };
            let help = match near {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "a number is the number of runs after the first one".to_owned(),
            };
            cx.error(node.span, message, help);
        }
        limit
    }
}

/// A user or a group (P9).
pub struct Account;

impl ValueType for Account {
    type Value = Principal;
    const SHAPE: Shape = Shape::Principal;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Principal> {
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

impl ValueType for Mode {
    type Value = u16;
    const SHAPE: Shape = Shape::Mode;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<u16> {
        let bits = match &node.value {
            Value::String(text) => {
                let digits = text.strip_prefix("0o").unwrap_or(text);
                let octal = !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
                octal.then(|| u16::from_str_radix(digits, 8).ok()).flatten()
            }
            // JSON5 has no octal numbers, so a number can only be a mistake: 644 is not 0o644.
            _ => None,
        };
        let bits = bits.filter(|bits| *bits <= 0o777);
        if bits.is_none() {
            let message = format!("`{key}` must be octal digits in quotes, not {}", found(node));
            cx.error(node.span, message, format!("for example: {key}: \"0640\""));
        }
        bits
    }
}

/// Resource limits by name (P9): `{ nofile: 1024, core: "unlimited", nproc: [100, 200] }`.
pub struct Limits;

/// The names of the resources, as in `prlimit`.
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

impl ValueType for Limits {
    type Value = Vec<Limit>;
    const SHAPE: Shape = Shape::Limits;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<Limit>> {
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
            let one = |cx: &mut DecodeContext<'_>, node: &Node| limit_value(cx, &member.key, node);
            let (soft, hard) = match &member.value.value {
                Value::List(pair) => {
                    let [soft, hard] = pair.as_slice() else {
                        let message =
                            format!("`{}` must be one limit, or a soft and a hard limit", member.key);
                        cx.error(member.value.span, message, "for example: nofile: [1024, 4096]");
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
                let message = format!("the soft limit of `{}` is larger than the hard limit", member.key);
                cx.error(member.value.span, message, "write [soft, hard]");
                continue;
            }
            limits.retain(|limit| limit.resource != *resource);
            limits.push(Limit { resource: *resource, soft, hard });
        }
        Some(limits)
    }
}

/// Decodes a limit; the inner `None` means unlimited.
fn limit_value(cx: &mut DecodeContext<'_>, key: &str, node: &Node) -> Option<Option<u64>> {
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

/// A signal by name, with or without `SIG`, or by number.
pub struct SignalName;

impl ValueType for SignalName {
    type Value = Signal;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Signal> {
        let text = cx.text(key, node)?;
        let signal = Signal::from_name(&text);
        if signal.is_none() {
            cx.error(
                node.span,
                format!("`{key}` must be a signal, not {}", found(node)),
                "for example: \"SIGINT\"",
            );
        }
        signal
    }
}
