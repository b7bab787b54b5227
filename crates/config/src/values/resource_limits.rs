//! Resource limits (P9).

use containerpilot_core::plan::{Limit, LimitedResource};

use super::number::{parse_whole, whole};
use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// Resource limits by name (P9): `{ nofile: 1024, core: "unlimited", nproc: [100, 200] }`.
pub struct Limits;

/// The names of the resources, as in `prlimit`.
pub const RESOURCES: [(&str, LimitedResource); 16] = [
    ("as", LimitedResource::As),
    ("core", LimitedResource::Core),
    ("cpu", LimitedResource::Cpu),
    ("data", LimitedResource::Data),
    ("fsize", LimitedResource::Fsize),
    ("locks", LimitedResource::Locks),
    ("memlock", LimitedResource::Memlock),
    ("msgqueue", LimitedResource::Msgqueue),
    ("nice", LimitedResource::Nice),
    ("nofile", LimitedResource::Nofile),
    ("nproc", LimitedResource::Nproc),
    ("rss", LimitedResource::Rss),
    ("rtprio", LimitedResource::Rtprio),
    ("rttime", LimitedResource::Rttime),
    ("sigpending", LimitedResource::Sigpending),
    ("stack", LimitedResource::Stack),
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
        let is_negative = number.is_some_and(|number| number < 0);
        cx.error(node.span, message, if is_negative { "did you mean \"unlimited\"?" } else { "" });
    }
    limit.map(Some)
}
