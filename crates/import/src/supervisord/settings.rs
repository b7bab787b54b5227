//! `[supervisord]`: the settings of supervisord itself.

use super::expand::{Names, plain, value};
use super::options::{Options, octal};
use crate::document::{Document, Field, Fields, Value};
use crate::error::ImportError;
use crate::ini::Ini;

/// The number of files that a process may have open in most containers.
const USUAL_FILES: u64 = 1024;
const USUAL_PROCESSES: u64 = 200;

/// Converts `[supervisord]`: the keys of the top level, and those for all jobs, which are returned.
pub(super) fn convert(
    ini: &Ini,
    names: &mut Names,
    document: &mut Document,
) -> Result<Vec<Field>, ImportError> {
    let mut defaults = Vec::new();
    let Some(section) = ini.section("supervisord") else { return Ok(defaults) };
    let mut options = Options::new(section, names);
    if let Some((env, place)) = options.environment(document)? {
        document.top.set("env", Value::Object(env), Some(place));
        *names = options.names.clone();
    }
    if let Some((level, place)) = options.text("loglevel", document)? {
        match level.to_lowercase().as_str() {
            "debug" | "trace" | "blather" => {
                let level = Value::Object(vec![Field::new("level", "debug")]);
                document.top.set("logging", level, Some(place));
            }
            "info" => document.not_needed(place, "the default"),
            _ => document.inexact(place, "a higher `level` would hide the output of jobs, too"),
        }
    }
    if let Some((user, place)) = options.get("user")? {
        match plain(&user).as_deref() {
            Some("root" | "0" | "") => document.not_needed(place, "the user of the container"),
            _ => defaults.set("user", value(&user), Some(place)),
        }
    }
    if let Some((directory, place)) = options.get("directory")?.filter(|(value, _)| !value.is_empty()) {
        defaults.set("cwd", value(&directory), Some(place));
    }
    if let Some((umask, place)) = options.text("umask", document)? {
        let umask = octal(&umask).ok_or_else(|| place.error("the umask is not an octal number"))?;
        defaults.set("umask", umask, Some(place));
    }
    let mut limits = Vec::new();
    for (key, resource, usual) in [("minfds", "nofile", USUAL_FILES), ("minprocs", "nproc", USUAL_PROCESSES)]
    {
        match options.number(key, document)? {
            Some((number, place)) if number > usual => limits.set(resource, number, Some(place)),
            Some((_, place)) => document.not_needed(place, "no more than containers allow"),
            None => {}
        }
    }
    if !limits.is_empty() {
        defaults.set("limits", Value::Object(limits), None);
    }
    for key in ["logfile", "logfile_maxbytes", "logfile_backups", "silent"] {
        if let Some(entry) = options.raw(key) {
            document
                .not_needed(&entry.place, "the log is standard output; `logging: { output }` can be a file");
        }
    }
    for key in ["pidfile", "nodaemon", "identifier", "childlogdir", "nocleanup"] {
        if let Some(entry) = options.raw(key) {
            let why = match key {
                "nodaemon" => "always in the foreground",
                "childlogdir" | "nocleanup" => "the output of jobs is in the log",
                _ => "the control socket finds the supervisor",
            };
            document.not_needed(&entry.place, why);
        }
    }
    match options.flag("strip_ansi", document)? {
        Some((true, place)) => document.inexact(place, "the log keeps the colours of a job"),
        Some((false, place)) => document.not_needed(place, "the default"),
        None => {}
    }
    options.inexact_others(document);
    Ok(defaults)
}
