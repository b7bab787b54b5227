//! What `init --from` takes over from a Dockerfile.

use std::time::Duration;

use containerpilot_audit::dockerfile::{self, BuildArguments, HealthCheck, Image, ImageCommand};
use containerpilot_audit::tree::At;
use containerpilot_command_line::failure::Failure;
use containerpilot_config::duration;
use containerpilot_import::command_line;
use containerpilot_import::files::Text;

use super::questions::shell;
use super::wanted::{FromImage, Health, Times, Wanted};
use crate::on_disk::OnDisk;

/// Programs that do for one process what containerpilot does.
const INIT_PROGRAMS: [&str; 5] = ["tini", "tini-static", "dumb-init", "catatonit", "docker-init"];

/// The defaults of Docker.
const INTERVAL: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(30);
const FAILURES: u64 = 3;

/// What a configuration accepts.
const MOST_FAILURES: u64 = 1_000_000;

pub(super) fn read(path: &str) -> Result<Wanted, Failure> {
    if path.is_empty() {
        return Err(Failure::Usage(
            "-from is empty: name a Dockerfile, or `-` for standard input".to_owned(),
        ));
    }
    let text = Text::read(&OnDisk, path).map_err(|error| Failure::InvalidInput(error.to_string()))?;
    let name = if path == "-" { "Dockerfile" } else { path };
    wanted(&Text::new(name, &text.text))
        .map_err(|(line, message)| Failure::InvalidInput(format!("{name}:{line}: {message}")))
}

/// The error has a line.
fn wanted(text: &Text) -> Result<Wanted, (usize, String)> {
    let image = dockerfile::image(&text.text, BuildArguments::Defaults)?;
    if let Some(line) = image.triggers.first() {
        let message = "an ONBUILD of a stage that the last one is based on is not read: write its instruction into the \
                       last stage";
        return Err((*line, message.to_owned()));
    }
    let line_of = |line: usize| text.place(line).to_string();
    let mut from =
        FromImage { path: text.path.clone(), has_cmd: image.cmd.is_some(), ..FromImage::default() };
    let (program, lines) = program(&image, &mut from.notes)?;
    from.program_from = lines.into_iter().map(line_of).collect();
    let health = match &image.health {
        Some(check) => {
            from.health_from = Some(line_of(check.line));
            Some(health(check)?)
        }
        None => {
            let port = port(&image, &mut from, &line_of)?;
            port.map(|(port, line)| {
                from.health_from = Some(line_of(line));
                Health::Tcp(port)
            })
        }
    };
    if let Some(signal) = &image.stop_signal {
        match &signal.value {
            Some(name) => {
                let Some(known) = command_line::signal(name) else {
                    return Err((signal.line, format!("`{name}` is not a signal")));
                };
                if known != "SIGTERM" {
                    from.stop_signal = Some((known, line_of(signal.line)));
                }
            }
            None => from.notes.push(unknown_variable(&line_of(signal.line), "set `stopSignal` of the job")),
        }
    }
    if let Some(user) = &image.user {
        from.unprivileged = true;
        match &user.value {
            Some(name) => {
                let is_root = matches!(name.split(':').next(), Some("root" | "0"));
                from.unprivileged = !is_root;
                from.user = Some((name.clone(), line_of(user.line)));
            }
            None => from.notes.push(unknown_variable(&line_of(user.line), "the image keeps this user")),
        }
    }
    Ok(Wanted { program, health, beside: None, setup: None, image: Some(from) })
}

fn unknown_variable(line: &str, advice: &str) -> String {
    format!("{line}: a variable in it has no value in this file: {advice}.")
}

/// The words that Docker executes, without an init program before them, and their lines.
fn program(image: &Image, notes: &mut Vec<String>) -> Result<(Vec<String>, Vec<usize>), (usize, String)> {
    let some =
        |command: &Option<At<ImageCommand>>| command.clone().filter(|one| !words(&one.value).is_empty());
    let (program, lines) = match (some(&image.entrypoint), some(&image.cmd)) {
        (None, None) => {
            let base = &image.base;
            let message = format!(
                "the last stage has neither ENTRYPOINT nor CMD, so its program is that of `{base}`: write the one that `docker \
                 image inspect {base}` shows into the last stage"
            );
            return Err((image.line, message));
        }
        (Some(entrypoint), None) => (without_init(words(&entrypoint.value), notes), vec![entrypoint.line]),
        (None, Some(cmd)) => {
            // An empty ENTRYPOINT is that there is none.
            if image.base != "scratch" && image.entrypoint.is_none() {
                let base = &image.base;
                notes.push(format!(
                    "If {base} has an entry point, put it before the program: docker image inspect {base}"
                ));
            }
            (without_init(words(&cmd.value), notes), vec![cmd.line])
        }
        // A shell takes what follows its line as arguments, and the line uses none.
        (Some(At { line, value: entrypoint @ ImageCommand::Shell { .. } }), Some(cmd)) => {
            notes.push(format!("CMD in line {} is not used: ENTRYPOINT is a shell line.", cmd.line));
            (words(&entrypoint), vec![line])
        }
        (Some(entrypoint), Some(cmd)) => {
            let lines = vec![entrypoint.line, cmd.line];
            let before = without_init(entrypoint.value.words(), notes);
            match before.is_empty() {
                true => (words(&cmd.value), lines),
                false => ([before, cmd.value.words()].concat(), lines),
            }
        }
    };
    let line = lines.first().copied().unwrap_or(image.line);
    if program.is_empty() {
        return Err((line, "an init program is started without a program after it".to_owned()));
    }
    if has_nul(&program) {
        return Err((line, NUL.to_owned()));
    }
    if calls_containerpilot(&program) {
        return Err((line, "this starts containerpilot already".to_owned()));
    }
    Ok((program, lines))
}

/// The words of a command; those of its line if that needs no shell.
fn words(command: &ImageCommand) -> Vec<String> {
    match command {
        ImageCommand::Shell { shell: own, line } if own.is_empty() => shell(line),
        command => command.words(),
    }
}

const NUL: &str = "a command cannot contain a NUL byte";

fn has_nul(words: &[String]) -> bool {
    words.iter().any(|word| word.contains('\0'))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn calls_containerpilot(words: &[String]) -> bool {
    words.iter().flat_map(|word| word.split_whitespace()).any(|word| base_name(word) == "containerpilot")
}

/// The words after an init program and its options, which containerpilot replaces.
fn without_init(words: Vec<String>, notes: &mut Vec<String>) -> Vec<String> {
    let Some(init) = words.first().filter(|word| INIT_PROGRAMS.contains(&base_name(word))).cloned() else {
        return words;
    };
    let dashes = words.iter().position(|word| word == "--").map(|at| at + 1);
    let has_options = words.get(1).is_some_and(|word| word.starts_with('-'));
    match if has_options { dashes } else { Some(1) } {
        Some(at) => {
            notes.push(format!("{init} is left out: containerpilot does what it does."));
            words.into_iter().skip(at).collect()
        }
        // Where its options end is not certain.
        None => words,
    }
}

/// The first TCP port of `EXPOSE`, and its line.
fn port(
    image: &Image,
    from: &mut FromImage,
    line_of: &impl Fn(usize) -> String,
) -> Result<Option<(u16, usize)>, (usize, String)> {
    for At { line, value } in &image.ports {
        let Some(text) = value else {
            from.notes.push(unknown_variable(&line_of(*line), "add a `health` check of the port"));
            continue;
        };
        let (range, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
        let first = range.split('-').next().unwrap_or_default();
        let Some(port) = first.parse::<u16>().ok().filter(|port| *port > 0) else {
            return Err((*line, format!("`{text}` is not a port: write a number from 1 to 65535")));
        };
        if protocol.eq_ignore_ascii_case("tcp") {
            return Ok(Some((port, *line)));
        }
    }
    Ok(None)
}

fn health(check: &At<HealthCheck>) -> Result<Health, (usize, String)> {
    let line = check.line;
    let words = words(&check.value.command);
    if words.is_empty() {
        return Err((line, "HEALTHCHECK has no command".to_owned()));
    }
    if has_nul(&words) {
        return Err((line, NUL.to_owned()));
    }
    if calls_containerpilot(&words) {
        return Err((line, "this asks containerpilot, which the image does not start: remove it".to_owned()));
    }
    let mut times =
        Times { interval: Some(INTERVAL), timeout: None, start_period: None, failures: Some(FAILURES) };
    for (name, value) in &check.value.options {
        let wrong = |what: &str| Err((line, format!("`--{name}={value}` is not {what}")));
        if name == "retries" {
            match value.parse() {
                // The default.
                Ok(0) => {}
                Ok(failures @ 1..=MOST_FAILURES) => times.failures = Some(failures),
                _ => return wrong("a number of retries"),
            }
            continue;
        }
        let time = duration::parse_go(value).ok().and_then(|nanos| u64::try_from(nanos).ok());
        let Some(time) = time.map(Duration::from_nanos) else { return wrong("a duration such as `30s`") };
        if !time.is_zero() && time < Duration::from_millis(1) {
            return wrong("at least 1ms");
        }
        // Docker takes its default for 0.
        let time = Some(time).filter(|time| !time.is_zero());
        match name.as_str() {
            "interval" => times.interval = time.or(times.interval),
            "timeout" => times.timeout = time,
            "start-period" => times.start_period = time,
            // Until the first success, checks follow each other quickly anyway.
            "start-interval" => {}
            _ => return Err((line, format!("`--{name}` is not an option of HEALTHCHECK"))),
        }
    }
    // Here the default is the interval.
    if times.timeout.is_none() && times.interval != Some(TIMEOUT) {
        times.timeout = Some(TIMEOUT);
    }
    Ok(Health::Exec(words, times))
}
