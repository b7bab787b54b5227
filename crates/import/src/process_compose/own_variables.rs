//! The variables that process-compose adds to the environment of each process: PC_PROC_NAME and PC_REPLICA_NUM.

use containerpilot_core::plan::REPLICA_VARIABLE;

use super::process::Converter;
use super::texts::{NUMBERS_DIFFER, is_shell};
use crate::document::{Field, Fields, Part, Value};
use crate::files::SourceLine;
use crate::yaml::{Map, YamlNode};

const NAME: &str = "PC_PROC_NAME";
const NUMBER: &str = "PC_REPLICA_NUM";
const SET_BY: &str = "process-compose sets it.";

impl Converter<'_> {
    /// Sets those that a text mentions. Variables of the file have precedence, as in the original.
    pub(super) fn own_variables(&mut self, process: &Map, command: &SourceLine) {
        let hook = self.hook.iter().flat_map(|(_, _, fields)| fields);
        let mentioned = |name: &str| {
            let (mut own, mut hook) = (self.fields.iter(), hook.clone());
            own.any(|field| mentions(&field.value, name)) || hook.any(|field| mentions(&field.value, name))
        };
        let mut env = match self.fields.get("env") {
            Some(Value::Object(env)) => env.clone(),
            _ => Vec::new(),
        };
        let mut added = false;
        if mentioned(NAME) && env.get(NAME).is_none() {
            env.set(NAME, self.name, None);
            env.note(NAME, SET_BY);
            added = true;
        }
        if mentioned(NUMBER) && env.get(NUMBER).is_none() {
            if self.texts.replicated {
                self.number_of_replica(process, command);
            } else {
                env.set(NUMBER, "0", None);
                env.note(NUMBER, SET_BY);
                added = true;
            }
        }
        if added {
            let from =
                self.fields.iter().find(|field| field.key == "env").and_then(|field| field.from.clone());
            self.fields.set("env", Value::Object(env), from.as_ref());
        }
    }

    /// A shell can calculate the number. Anything else that mentions it is listed.
    fn number_of_replica(&mut self, process: &Map, command: &SourceLine) {
        let mut fields = std::mem::take(&mut self.fields);
        let mut left = false;
        for field in &mut fields {
            left |= mentions_after_export(&mut field.value);
        }
        self.fields = fields;
        let in_hook = self
            .hook
            .as_ref()
            .is_some_and(|(_, _, hook)| hook.iter().any(|field| mentions(&field.value, NUMBER)));
        if left || in_hook {
            let node =
                process.get("command").filter(|node| node.text().is_some_and(|text| text.contains(NUMBER)));
            let place = node.map_or_else(|| command.clone(), |node: &YamlNode| node.place_of(NUMBER));
            self.document.inexact(&place, NUMBERS_DIFFER);
        }
    }
}

/// Whether a text contains this name.
fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::Text(text) => text.contains(name),
        Value::Template(parts) => {
            parts.iter().any(|part| matches!(part, Part::Literal(text) if text.contains(name)))
        }
        Value::List(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(members) => members.iter().any(|member| mentions(&member.value, name)),
        Value::Commented(_, inner) => mentions(inner, name),
        Value::Number(_) | Value::Flag(_) | Value::Null => false,
    }
}

/// Puts the calculation of the number before each line of a shell that mentions it. Returns whether anything else mentions it.
fn mentions_after_export(value: &mut Value) -> bool {
    let export = format!("export {NUMBER}=$(({REPLICA_VARIABLE} - 1)); ");
    match value {
        Value::List(items) => match items.as_mut_slice() {
            [Value::Text(shell), Value::Text(option), line] if is_shell(shell) && option == "-c" => {
                match line {
                    line if !mentions(line, NUMBER) => {}
                    Value::Text(line) => line.insert_str(0, &export),
                    Value::Template(parts) => parts.insert(0, Part::Literal(export)),
                    _ => {}
                }
                false
            }
            items => items.iter_mut().map(mentions_after_export).fold(false, |any, one| any | one),
        },
        Value::Object(members) => members
            .iter_mut()
            .map(|member: &mut Field| mentions_after_export(&mut member.value))
            .fold(false, |any, one| any | one),
        Value::Commented(_, inner) => mentions_after_export(inner),
        other => mentions(other, NUMBER),
    }
}
