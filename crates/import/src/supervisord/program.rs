//! `[program:x]`: a job, several jobs, or replicas.

use std::collections::BTreeSet;
use std::time::Duration;

use super::expand::{Names, command, plain, value};
use super::groups::Group;
use super::logs;
use super::options::{Options, octal};
use crate::command_line;
use crate::document::{Document, Field, Fields, Job, Value};
use crate::error::ImportError;
use crate::files::SourceLine;
use crate::ini::Section;

/// The defaults of supervisord.
const START_SECONDS: u64 = 1;
const START_RETRIES: u64 = 3;
const STOP_SECONDS: u64 = 10;

/// The maximum number of processes.
const MAX_REPLICAS: u64 = 1000;
const MAX_JOBS: usize = 5000;
/// The maximum number of keys of one program. supervisord knows 40.
const MAX_OPTIONS: usize = 200;
/// The longest time, 31 years.
pub(super) const MAX_SECONDS: u64 = 1_000_000_000;

/// A converted program, for the order of the stops.
pub(super) struct Converted {
    pub(super) job: usize,
    pub(super) priority: i64,
    pub(super) priority_from: Option<SourceLine>,
    pub(super) stop_seconds: u64,
    pub(super) always_restarts: bool,
}

/// What supervisord does with a program that sets nothing else.
pub(super) fn defaults() -> Vec<Field> {
    let mut fields = vec![Field::new("restarts", "unlimited"), Field::new("restartOn", "failure")];
    fields.extend(restart_policy(START_SECONDS, START_RETRIES));
    fields.extend([
        Field::new("stopScope", "process"),
        Field::new("killAfter", Duration::from_secs(STOP_SECONDS)),
    ]);
    fields
}

/// Back-off and start limit for `startsecs` and `startretries`: supervisord waits one second longer before each attempt, and gives up after a
/// process has exited too early one time more than it may be tried again.
fn restart_policy(start_seconds: u64, retries: u64) -> Vec<Field> {
    let (retries, start_seconds) = (retries.min(MAX_REPLICAS), start_seconds.min(MAX_SECONDS));
    let longest = retries.clamp(2, 10);
    // The first restart is immediate, then the delay doubles from 2 s.
    let delay = |attempt: u64| match attempt {
        0 => 0,
        _ => 2_u64.saturating_pow(u32::try_from(attempt).unwrap_or(u32::MAX)).min(longest),
    };
    let starts = retries.saturating_add(1);
    let within = (0..starts).map(delay).fold(starts.saturating_mul(start_seconds), u64::saturating_add);
    let within = within.min(MAX_SECONDS);
    let backoff = vec![
        Field::new("initial", "2s"),
        Field::new("max", Duration::from_secs(longest)),
        Field::new("reset", Duration::from_secs(start_seconds)),
    ];
    let limit = vec![Field::new("count", starts), Field::new("within", Duration::from_secs(within))];
    vec![Field::new("restartBackoff", Value::Object(backoff)), Field::new("startLimit", Value::Object(limit))]
}

/// Converts one program of a group. `taken` has the log files of other jobs.
pub(super) fn convert(
    section: &Section,
    group: &Group<'_>,
    names: &Names,
    taken: &mut BTreeSet<String>,
    document: &mut Document,
) -> Result<Vec<Converted>, ImportError> {
    let name = section.name.split_once(':').map(|(_, name)| name.trim()).unwrap_or_default();
    if section.options.len() > MAX_OPTIONS {
        return Err(section.place.error(format!("it has more than {MAX_OPTIONS} keys")));
    }
    let mut options = Options::new(section, names);
    options.names.set_text("program_name", name);
    options.names.set_text("group_name", &group.name);

    let first = options.number("numprocs_start", document)?.map_or(0, |(number, _)| number);
    let count = options.get("numprocs")?;
    let count_from = count.as_ref().map(|(_, place)| *place);
    let count_text = count.as_ref().map(|(value, _)| plain(value));
    let uses_number = section
        .options
        .iter()
        .any(|(key, entry)| key != "process_name" && entry.value.contains("%(process_num)"));
    let number = match &count_text {
        Some(Some(text)) => text.trim().parse::<u64>().ok(),
        Some(None) if uses_number => {
            let why =
                "it depends on a variable, but the number of each process is used: there is one process";
            document.inexact(count_from.unwrap_or(&section.place), why);
            Some(1)
        }
        // As many as a variable says.
        Some(None) => Some(2),
        None => Some(1),
    };
    let place = count_from.unwrap_or(&section.place);
    let count = number.ok_or_else(|| place.error("`numprocs` is not a number"))?;
    if count == 0 {
        document.inexact(&section.place, "its number of processes is 0");
        return Ok(Vec::new());
    }
    let numbers = match uses_number {
        true => first..first.saturating_add(count),
        false => first..first.saturating_add(1),
    };
    if numbers.end - numbers.start > MAX_REPLICAS || document.jobs.len() > MAX_JOBS {
        return Err(
            place.error(format!("more than {MAX_REPLICAS} processes of one program, or {MAX_JOBS} in all"))
        );
    }
    options.names.set_number("numprocs", count);
    if let Some(place) = count_from.filter(|_| count == 1) {
        document.not_needed(place, "the default");
    }
    if let Some(entry) = options.raw("process_name") {
        document.not_needed(&entry.place, "a job has the name of its program; replicas are numbered from 1");
    }
    if let Some(entry) = options.raw("numprocs_start") {
        let why = match uses_number {
            true => "it is part of the numbers of the processes below",
            false => "replicas are numbered from 1",
        };
        document.not_needed(&entry.place, why);
    }

    let mut converted = Vec::new();
    let log_has_number =
        section.options.get("stdout_logfile").is_some_and(|entry| entry.value.contains("%(process_num)"));
    let is_many = numbers.end - numbers.start > 1;
    let mut messages = Some(&mut *document);
    let mut silent = Document::default();
    let mut made = Vec::new();
    for number in numbers {
        options.names.set_number("process_num", number);
        let mut options = Options::new(section, &options.names);
        for done in ["numprocs", "numprocs_start", "process_name"] {
            options.raw(done);
        }
        let mut fields = Vec::new();
        let mut groups = Vec::new();
        groups.extend(group.from.as_ref().map(|_| group.name.clone()));
        groups.extend(is_many.then(|| name.to_owned()));
        let from = group.from.as_ref().filter(|_| !is_many).or(count_from);
        // What is left out is listed for the first process only.
        let document = messages.take().unwrap_or(&mut silent);
        let replicas = !is_many && count > 1;
        // The processes of one program must not share a log file.
        let suffix = match (replicas, is_many) {
            (true, _) => Some("-$CONTAINERPILOT_REPLICA".to_owned()),
            (_, true) if !log_has_number => Some(format!("-{number}")),
            _ => None,
        };
        let done = keys(&mut options, &mut fields, suffix.as_deref(), taken, document)?;
        let Some(done) = done else { return Ok(Vec::new()) };
        if replicas {
            let value = match &count_text {
                Some(None) => {
                    options.get("numprocs")?.map_or(Value::from(count), |(pieces, _)| value(&pieces))
                }
                _ => Value::from(count.min(MAX_REPLICAS)),
            };
            if count > MAX_REPLICAS {
                document.inexact(place, format!("at most {MAX_REPLICAS} replicas are possible"));
            }
            fields.set("replicas", value, count_from);
        }
        if !groups.is_empty() {
            fields.set("groups", groups, from);
        }
        let wanted = if is_many { format!("{name}-{number}") } else { name.to_owned() };
        made.push((wanted, fields, done));
    }
    if let Some(place) = made.iter().find_map(|(_, _, done)| done.shared_file.as_ref()) {
        let why = "another job has this file, and each needs one of its own: the output is in the log";
        document.inexact(place, why);
    }
    if group.sections.len() > 1
        && let Some(entry) = section.options.get("priority")
    {
        document.inexact(
            &entry.place,
            "the jobs of a group stop at the same time: use `stopAfter` for an order among them",
        );
    }
    for (wanted, fields, done) in made {
        let name = document.free_name(&wanted);
        converted.push(Converted {
            job: document.jobs.len(),
            priority: group.priority,
            priority_from: group.priority_from.clone(),
            stop_seconds: done.stop_seconds,
            always_restarts: done.always_restarts,
        });
        document.jobs.push(Job { name, from: Some(section.place.clone()), fields });
    }
    Ok(converted)
}

/// What the keys of a program say beside its job.
struct Done {
    stop_seconds: u64,
    always_restarts: bool,
    /// The line of a log file that another job has.
    shared_file: Option<SourceLine>,
}

/// The keys of one job. `None` if it cannot run. `suffix` makes the log file one of its own.
fn keys(
    options: &mut Options<'_>,
    fields: &mut Vec<Field>,
    suffix: Option<&str>,
    taken: &mut BTreeSet<String>,
    document: &mut Document,
) -> Result<Option<Done>, ImportError> {
    options.raw("priority");
    let env = options.environment(document)?;
    let Some((words, place)) = options.get("command")? else {
        return Err(options.section.place.error("the program has no `command`"));
    };
    let Some(exec) = command(&words) else {
        document.inexact(&options.section.place, "its command is empty, or a quote in it is not closed");
        return Ok(None);
    };
    fields.set("exec", exec, Some(place));
    match options.flag("autostart", document)? {
        Some((true, place)) => document.not_needed(place, "the default"),
        Some((false, place)) => fields.set("when", "manual", Some(place)),
        None => {}
    }
    let always_restarts = restarts(options, fields, document)?;
    stops(options, fields, document)?;
    let stop_seconds = match options.number("stopwaitsecs", document)? {
        Some((seconds, place)) => {
            let seconds = seconds.min(MAX_SECONDS);
            // SIGKILL comes at once, but not before the signal.
            let after = Duration::from_secs(seconds).max(Duration::from_millis(1));
            fields.set("killAfter", after, Some(place));
            seconds.max(1)
        }
        None => STOP_SECONDS,
    };
    if let Some((user, place)) = options.get("user")? {
        if user.is_empty() {
            return Err(place.error("the name of the user is missing"));
        }
        fields.set("user", value(&user), Some(place));
    }
    if let Some((directory, place)) = options.get("directory")?.filter(|(value, _)| !value.is_empty()) {
        fields.set("cwd", value(&directory), Some(place));
    }
    if let Some((umask, place)) = options.text("umask", document)? {
        let umask = octal(&umask).ok_or_else(|| place.error("the umask is not an octal number"))?;
        fields.set("umask", umask, Some(place));
    }
    if let Some((env, place)) = env.filter(|(env, _)| !env.is_empty()) {
        fields.set("env", Value::Object(env), Some(place));
    }
    let shared_file = logs::convert(options, fields, suffix, taken, document)?;
    if let Some(entry) = options.raw("serverurl") {
        document.not_needed(&entry.place, "jobs get CONTAINERPILOT_SOCKET");
    }
    options.inexact_others(document);
    Ok(Some(Done { stop_seconds, always_restarts, shared_file: shared_file.cloned() }))
}

/// The restart policy. Returns true if the program is restarted whenever it ends.
fn restarts(
    options: &mut Options<'_>,
    fields: &mut Vec<Field>,
    document: &mut Document,
) -> Result<bool, ImportError> {
    let mut runs_once = false;
    let mut always = false;
    if let Some((policy, place)) = options.text("autorestart", document)? {
        match policy.to_lowercase().as_str() {
            "unexpected" => fields.set("restartOn", "failure", Some(place)),
            "yes" | "true" | "on" | "1" => {
                always = true;
                fields.set("restartOn", "exit", Some(place));
            }
            "no" | "false" | "off" | "0" => {
                runs_once = true;
                fields.set("restarts", "never", Some(place));
            }
            _ => return Err(place.error("`autorestart` is `true`, `false` or `unexpected`")),
        }
    }
    if let Some((codes, place)) = options.text("exitcodes", document)? {
        let code = |code: &str| code.trim().parse::<u8>();
        let listed = codes.split(',').filter(|_| !codes.trim().is_empty());
        let codes = listed.map(code).collect::<Result<Vec<_>, _>>();
        let codes = codes.map_err(|_| place.error("the exit codes are not numbers from 0 to 255"))?;
        let codes: Vec<u64> = codes.into_iter().map(u64::from).collect();
        match codes.is_empty() {
            true => document.inexact(place, "`successCodes` needs a code"),
            false => fields.set("successCodes", codes, Some(place)),
        }
    }
    restarts_after(options, fields, (runs_once, always), document)
}

/// The keys for `startsecs` and `startretries`.
fn restarts_after(
    options: &mut Options<'_>,
    fields: &mut Vec<Field>,
    (runs_once, always): (bool, bool),
    document: &mut Document,
) -> Result<bool, ImportError> {
    let seconds = options.number("startsecs", document)?;
    let retries = options.number("startretries", document)?;
    let places = || [seconds, retries].into_iter().flatten().map(|(_, place)| place);
    let given = (seconds.map_or(START_SECONDS, |(n, _)| n), retries.map_or(START_RETRIES, |(n, _)| n));
    if runs_once {
        fields.set("restartOn", Value::Null, None);
        fields.set("restartBackoff", Value::Null, None);
        fields.set("startLimit", Value::Null, None);
        let is_tried_again = given.0 > 0 && given.1 > 0;
        for place in places() {
            match is_tried_again {
                true => document.inexact(place, "a job that runs once is not tried again"),
                false => document.not_needed(place, "a job that runs once is not tried again"),
            }
        }
        if is_tried_again {
            let note =
                format!("supervisord tries it again if it exits within {} s, also if it succeeded.", given.0);
            fields.note("restarts", note);
        }
        return Ok(false);
    }
    let (Some(last), from) = (places().next_back(), places().next()) else { return Ok(always) };
    if given.0 == 0 {
        // Every process counts as started, so there is no limit.
        fields.set("startLimit", Value::Null, from);
        if let Some((_, place)) = retries.filter(|_| seconds.is_some()) {
            document.not_needed(place, "without `startsecs` supervisord does not count the attempts");
        }
        return Ok(always);
    }
    let policy = restart_policy(given.0, given.1);
    for field in policy {
        let is_limit = field.key == "startLimit";
        let place: Option<&SourceLine> = if is_limit { Some(last) } else { from };
        fields.set(&field.key, field.value, place);
    }
    if given.1 >= MAX_REPLICAS {
        fields.set("startLimit", Value::Null, Some(last));
        fields.note("startLimit", "So many attempts are without limit.");
    }
    Ok(always)
}

fn stops(
    options: &mut Options<'_>,
    fields: &mut Vec<Field>,
    document: &mut Document,
) -> Result<(), ImportError> {
    if let Some((signal, place)) = options.text("stopsignal", document)? {
        let signal = command_line::signal(&signal).ok_or_else(|| {
            place.error(format!("there is no signal `{signal}`: write a name such as TERM, or a number"))
        })?;
        fields.set("stopSignal", signal, Some(place));
    }
    let as_group = options.flag("stopasgroup", document)?;
    if let Some((as_group, place)) = as_group {
        fields.set("stopScope", if as_group { "group" } else { "process" }, Some(place));
    }
    match options.flag("killasgroup", document)? {
        Some((true, place)) => document.not_needed(place, "SIGKILL goes to all processes of a job"),
        Some((false, place)) => document.inexact(place, "SIGKILL goes to all processes of a job"),
        None => {}
    }
    Ok(())
}
