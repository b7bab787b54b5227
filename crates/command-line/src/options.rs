//! The values of flags and arguments that several commands have.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use containerpilot_config::duration;
use containerpilot_load::config_source;

use crate::failure::Failure;
use crate::flags::Arguments;

/// The path of the configuration: the first argument, -config or CONTAINERPILOT. `None` means the default paths.
pub fn config_path(args: &Arguments) -> Option<PathBuf> {
    args.rest.first().map(PathBuf::from).or_else(|| named_config(args))
}

/// Like [`config_path`] for a command whose arguments are not paths.
pub fn named_config(args: &Arguments) -> Option<PathBuf> {
    let flag = Some(args.text("config")).filter(|path| !path.is_empty()).map(PathBuf::from);
    let variable = || std::env::var_os("CONTAINERPILOT").filter(|path| !path.is_empty()).map(PathBuf::from);
    flag.or_else(variable)
}

/// Returns true for `--format json`.
pub fn as_json(args: &Arguments) -> Result<bool, Failure> {
    match args.text("format") {
        "" | "human" => Ok(false),
        "json" => Ok(true),
        other => Err(Failure::Usage(format!("unknown format `{other}`: the formats are `human` and `json`"))),
    }
}

/// The value of --timeout.
pub fn time_limit(args: &Arguments) -> Result<Option<Duration>, Failure> {
    args.value("timeout").map(|text| parse_duration("timeout", text)).transpose()
}

/// The value of a flag that is a duration.
pub fn parse_duration(flag: &str, text: &str) -> Result<Duration, Failure> {
    let wrong = |why: String| invalid_value(flag, text, &why);
    if text.is_empty() {
        return Err(wrong("it is empty".to_owned()));
    }
    let time = duration::parse(text).map_err(|error| wrong(format!("{error}; {}", error.help())))?;
    let time = u64::try_from(time).map_err(|_| wrong("it is negative".to_owned()))?;
    Ok(Duration::from_nanos(time))
}

/// The value of --lines; `None` means all lines.
pub fn line_limit(args: &Arguments) -> Result<Option<usize>, Failure> {
    let count = count(args, "lines", 0)?;
    Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}

/// The value of a flag that is a number of at least `min`, if the flag was given.
pub fn count(args: &Arguments, flag: &str, min: u64) -> Result<Option<u64>, Failure> {
    let Some(text) = args.value(flag) else { return Ok(None) };
    let wrong = |why: &str| invalid_value(flag, text, why);
    match (text.parse::<u64>(), text.parse::<i128>()) {
        (Ok(count), _) if count >= min => Ok(Some(count)),
        (Ok(_), _) => Err(wrong(&format!("it must be at least {min}"))),
        (_, Ok(..0)) => Err(wrong(&format!("it must be {min} or more"))),
        _ if text.is_empty() => Err(wrong("it is empty")),
        _ => Err(wrong("not a number")),
    }
}

pub fn invalid_value(flag: &str, text: &str, why: &str) -> Failure {
    Failure::Usage(format!("invalid -{flag} `{text}`: {why}"))
}

/// Returns true if a path is that of a configuration by its name alone.
pub fn names_configuration(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json5" || extension == "json")
        || path.as_os_str() == "-"
}

/// A command-line argument as UTF-8.
pub fn utf8(word: &OsString) -> Result<String, Failure> {
    config_source::utf8(word).map_err(Failure::Usage)
}
