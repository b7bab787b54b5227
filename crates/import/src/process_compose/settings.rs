//! The keys of the top level.

use super::project::Project;
use super::texts::Texts;
use crate::document::{Document, Fields, Value};
use crate::error::ImportError;
use crate::yaml::Map;

/// Why a key of the top level is not needed.
fn not_needed(key: &str) -> &'static str {
    match key {
        "vars" => "its values are written where they are used",
        "shell" => "the commands that need a shell name it",
        "is_strict" => "an unknown key is always refused",
        "disable_env_expansion" => "the texts below are written accordingly",
        "ordered_shutdown" => "jobs always stop in the reverse order of their dependencies",
        _ => "only a description",
    }
}

pub(super) fn top(map: &Map, project: &Project, document: &mut Document) -> Result<(), ImportError> {
    let texts = Texts { project, vars: None, replicated: false };
    let mut logging = Vec::new();
    for entry in map {
        let from = entry.place();
        let why = match entry.key.as_str() {
            _ if entry.value.is_null() => continue,
            "processes" | "extends" => continue,
            "version"
            | "name"
            | "vars"
            | "shell"
            | "is_strict"
            | "disable_env_expansion"
            | "ordered_shutdown" => {
                document.not_needed(&from, not_needed(&entry.key));
                continue;
            }
            "environment" => {
                let env = texts.environment(&entry.value, document)?;
                if !env.is_empty() {
                    document.top.set("env", Value::Object(env), Some(&from));
                }
                continue;
            }
            "log_level" => match entry.value.text() {
                Some(level @ ("debug" | "info" | "warn" | "error" | "fatal" | "panic")) => {
                    logging.set("level", level, Some(&from));
                    continue;
                }
                Some("trace") => {
                    logging.set("level", "debug", Some(&from));
                    continue;
                }
                _ => "expected debug, info, warn or error",
            },
            "log_location" => {
                logging.set("output", texts.value(&entry.value, document)?, Some(&from));
                continue;
            }
            "log_length" | "is_tui_disabled" | "log_format" => "concerns its user interface",
            "log_configuration" => "the log of the container has its own format",
            "env_cmds" => "write a job that runs `containerpilot putenv`, and `requires`",
            "mcp_server" => "no equivalent",
            key if key.starts_with("x-") => continue,
            _ => "unknown key",
        };
        document.inexact(&from, why);
    }
    if !logging.is_empty() {
        document.top.set("logging", Value::Object(logging), None);
    }
    Ok(())
}
