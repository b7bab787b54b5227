//! `stdout_logfile`, `stderr_logfile` and what belongs to them.

use std::collections::BTreeSet;

use super::expand::{Expanded, Piece, plain, value};
use super::options::Options;
use crate::document::{Document, Field, Fields, Value};
use crate::error::ImportError;
use crate::files::SourceLine;

/// The defaults of supervisord.
const MAX_BYTES: u64 = 50 << 20;
const BACKUPS: u64 = 10;
/// The smallest size at which a file is rotated.
const SMALLEST: u64 = 4096;

/// Where output goes.
enum LogTarget {
    /// A temporary file of supervisord.
    Automatic,
    /// Standard output or standard error of the supervisor.
    Stream,
    None,
    Syslog,
    File(Expanded),
}

/// The key `logging` of a job. `taken` has the files of other jobs; returns the line that names one of them. `suffix` is added to the name of
/// the file.
pub(super) fn convert<'a>(
    options: &mut Options<'a>,
    fields: &mut Vec<Field>,
    suffix: Option<&str>,
    taken: &mut BTreeSet<String>,
    document: &mut Document,
) -> Result<Option<&'a SourceLine>, ImportError> {
    let redirect = options.flag("redirect_stderr", document)?;
    let out = target(options, "stdout_logfile")?;
    let err = target(options, "stderr_logfile")?;
    let mut logging = Vec::new();
    let mut shared = None;
    match &out {
        Some((LogTarget::File(path), place)) => {
            let file = file(path, suffix);
            if taken.insert(format!("{file:?}")) {
                logging.set("file", file, Some(place));
                if suffix.is_some() {
                    logging.note("file", "Each process needs a file of its own.");
                }
                rotation(options, "stdout", &mut logging, document)?;
            } else {
                shared = Some(*place);
                unused(options, "stdout", "there is no file", document);
            }
        }
        Some((LogTarget::Stream, place)) => {
            logging.set("raw", true, Some(place));
            unused(options, "stdout", "the output is passed through", document);
        }
        Some((LogTarget::None, place)) => {
            document.inexact(place, "output is not discarded: it is in the log");
            unused(options, "stdout", "there is no file", document);
        }
        Some((LogTarget::Syslog, place)) => {
            document.inexact(place, "no syslog: the output is in the log");
            unused(options, "stdout", "there is no file", document);
        }
        Some((LogTarget::Automatic, place)) => {
            document.not_needed(place, "the output is in the log");
            unused(options, "stdout", "there is no file", document);
        }
        None => unused(options, "stdout", "there is no file", document),
    }
    if let Some((joined, place)) = redirect {
        match joined {
            true => document.not_needed(place, "stdout and stderr have the same log"),
            false => document.not_needed(place, "each entry of the log has its stream"),
        }
    }
    let is_redirected = redirect.is_some_and(|(joined, _)| joined);
    match (&err, &out) {
        (None, _) => {}
        (Some((_, place)), _) if is_redirected => document.not_needed(place, "stderr goes where stdout goes"),
        (Some((LogTarget::File(err), place)), Some((LogTarget::File(out), _))) if err == out => {
            document.not_needed(place, "stdout and stderr are in one file");
        }
        (Some((LogTarget::File(_), place)), Some((LogTarget::File(_), _))) => {
            document.inexact(place, "stdout and stderr are in one file");
        }
        (Some((LogTarget::File(_), place)), _) => {
            document.inexact(place, "stderr has no file of its own: it goes where stdout goes");
        }
        (Some((LogTarget::Stream, place)), Some((LogTarget::Stream, _)) | None) => match out.is_some() {
            true => document.not_needed(place, "stderr is passed through to stderr"),
            false => logging.set("raw", true, Some(place)),
        },
        (Some((LogTarget::Automatic, place)), _) => {
            document.not_needed(place, "stderr goes where stdout goes")
        }
        (Some((LogTarget::None, place)), Some((LogTarget::None, _))) => {
            document.not_needed(place, "stderr goes where stdout goes");
        }
        (Some((LogTarget::Stream | LogTarget::None, place)), _) => {
            document.inexact(place, "stderr goes where stdout goes");
        }
        (Some((LogTarget::Syslog, place)), _) => {
            document.inexact(place, "no syslog: the output is in the log")
        }
    }
    unused(options, "stderr", "stderr goes where stdout goes", document);
    if !logging.is_empty() {
        fields.set("logging", Value::Object(logging), None);
    }
    for stream in ["stdout", "stderr"] {
        for (key, why) in [("events_enabled", "jobs get no events"), ("syslog", "no syslog")] {
            match options.flag(&format!("{stream}_{key}"), document)? {
                Some((true, place)) => document.inexact(place, format!("{why}: the output is in the log")),
                Some((false, place)) => document.not_needed(place, "the default"),
                None => {}
            }
        }
        match options.bytes(&format!("{stream}_capture_maxbytes"), document)? {
            Some((0, place)) => document.not_needed(place, "the default"),
            Some((_, place)) => document.inexact(place, "the output is not captured for events"),
            None => {}
        }
    }
    Ok(shared)
}

fn target<'a>(
    options: &mut Options<'a>,
    key: &str,
) -> Result<Option<(LogTarget, &'a SourceLine)>, ImportError> {
    let Some((path, place)) = options.get(key)? else { return Ok(None) };
    let target = match plain(&path).unwrap_or_default().to_lowercase().as_str() {
        "" if path.is_empty() => LogTarget::Automatic,
        "auto" => LogTarget::Automatic,
        "none" | "off" | "/dev/null" => LogTarget::None,
        "syslog" => LogTarget::Syslog,
        "/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2" | "/proc/self/fd/1" | "/proc/self/fd/2"
        | "/proc/1/fd/1" | "/proc/1/fd/2" | "/dev/console" | "/dev/tty" => LogTarget::Stream,
        _ => LogTarget::File(path),
    };
    Ok(Some((target, place)))
}

/// The path of the file, with the suffix before its extension.
fn file(path: &[Piece], suffix: Option<&str>) -> Value {
    let Some(suffix) = suffix else { return value(path) };
    let is = |wanted: char| move |piece: &Piece| *piece == Piece::Char(wanted);
    let name = path.iter().rposition(is('/')).map_or(0, |slash| slash + 1);
    let dot = path.iter().rposition(is('.')).filter(|dot| *dot > name).unwrap_or(path.len());
    let (before, after) = path.split_at_checked(dot).unwrap_or((path, &[]));
    let number = suffix.chars().map(Piece::Char);
    let path: Vec<Piece> = before.iter().cloned().chain(number).chain(after.iter().cloned()).collect();
    value(&path)
}

fn rotation(
    options: &mut Options<'_>,
    stream: &str,
    logging: &mut Vec<Field>,
    document: &mut Document,
) -> Result<(), ImportError> {
    let bytes = options.bytes(&format!("{stream}_logfile_maxbytes"), document)?;
    let size = match bytes.map_or(MAX_BYTES, |(bytes, _)| bytes) {
        0 => 0,
        bytes => bytes.max(SMALLEST),
    };
    logging.set("maxSize", size, bytes.map(|(_, place)| place));
    let backups = options.number(&format!("{stream}_logfile_backups"), document)?;
    let keep = backups.map_or(BACKUPS, |(backups, _)| backups.min(1000));
    if size > 0 {
        logging.set("keep", keep, backups.map(|(_, place)| place));
    } else if let Some((_, place)) = backups {
        document.not_needed(place, "the file is not rotated");
    }
    Ok(())
}

/// The keys about a file that is not there.
fn unused(options: &mut Options<'_>, stream: &str, why: &str, document: &mut Document) {
    for key in ["maxbytes", "backups"] {
        if let Some(entry) = options.raw(&format!("{stream}_logfile_{key}")) {
            document.not_needed(&entry.place, why);
        }
    }
}
