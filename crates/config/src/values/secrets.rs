//! Secrets by name (P11).

use std::collections::BTreeMap;

use super::list::variable_name_error;
use crate::decode::{DecodeContext, Section, Shape, Spanned, ValueType, found};
use crate::fields::SecretFields;
use crate::json5::{Node, Value};

/// Secrets by the name of their variable: `{ DB_PASSWORD: { file: "/run/secrets/db" } }`.
pub struct Secrets;

const EXAMPLE: &str = "{ DB_PASSWORD: { file: \"/run/secrets/db\" } }";

impl ValueType for Secrets {
    type Value = BTreeMap<String, Spanned<SecretFields>>;
    const SHAPE: Shape = Shape::MapOf(&SecretFields::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value> {
        let mut secrets: Self::Value = BTreeMap::new();
        let mut keys = BTreeMap::new();
        for member in cx.members(key, node, EXAMPLE)? {
            if let Some(earlier) = keys.insert(&member.key, member.key_span) {
                cx.replaced(&member.key, earlier, member.key_span);
            }
            if let Some(message) = variable_name_error(key, &member.key) {
                cx.error(member.key_span, message, "");
                continue;
            }
            let Value::Object(members) = &member.value.value else {
                // What stands here may be the secret itself, so it is not shown.
                let message = match &member.value.value {
                    Value::String(_) => format!("a secret in `{key}` must be an object, not a string"),
                    _ => format!("a secret in `{key}` must be an object, not {}", found(&member.value)),
                };
                cx.error(member.value.span, message, format!("for example: {key}: {EXAMPLE}"));
                continue;
            };
            let (place, key) = (cx.at(member.value.span), cx.at(member.key_span));
            let value = SecretFields::from_members(cx, member.value.span, members);
            secrets.insert(member.key.clone(), Spanned { value, place, key, written: true });
        }
        Some(secrets)
    }
}
