//! `Procfile` of foreman, overmind, honcho, goreman and others: one process type per line, `name: shell line`. Beside it there can be
//! `.env`, and the settings of overmind (`.overmind.env`) and foreman (`.foreman`).

use std::collections::BTreeMap;

use containerpilot_config::dotenv;

use crate::command_line;
use crate::document::{Document, Field, Fields, Job, Part, Value};
use crate::error::ImportError;
use crate::files::{Files, SourceLine, Text, directory, join};

/// The port of the first process type, and the distance to that of the next one.
const FIRST_PORT: u16 = 5000;
const PORT_STEP: u16 = 100;
/// The distance between the ports of two processes of one type: that of foreman and honcho, and that of overmind.
const INSTANCE_STEP: u16 = 1;
const OVERMIND_INSTANCE_STEP: u16 = 10;
/// The maximum number of processes of one type.
const MAX_PROCESSES: u16 = 100;
/// The maximum number of invalid lines of an `.env` file that are listed.
const MAX_INVALID: usize = 20;

/// Reads the Procfiles.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut types = Vec::new();
    let mut settings = Settings::default();
    for path in paths {
        let path = match files.list(path) {
            Some(_) => join(path, "Procfile"),
            None => path.clone(),
        };
        let before = types.len();
        read(&Text::read(files, &path)?, &mut types, document);
        if types.len() == before {
            let message = "this Procfile has no line `name: command`";
            return Err(ImportError::Empty { path, message: message.into() });
        }
        settings.read(directory(&path), files, document);
    }
    convert(&types, &settings, document);
    Ok(())
}

/// A line `name: command`.
struct ProcessType {
    name: String,
    command: String,
    place: SourceLine,
}

fn read(text: &Text, types: &mut Vec<ProcessType>, document: &mut Document) {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found: Vec<Option<ProcessType>> = Vec::new();
    for (place, line) in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts = line.split_once(':').map(|(name, command)| (name, command.trim()));
        let Some((name, command)) = parts.filter(|(name, command)| is_name(name) && !command.is_empty())
        else {
            document.inexact(&place, "not `name: command`, which foreman, overmind and honcho ignore");
            continue;
        };
        let process_type =
            ProcessType { name: name.to_owned(), command: command.to_owned(), place: place.clone() };
        let earlier = lines.insert(name, found.len());
        if let Some(earlier) = earlier.and_then(|index| found.get_mut(index)?.take()) {
            let why = format!("line {} has the same name, and the last one counts", place.line);
            document.inexact(&earlier.place, why);
        }
        found.push(Some(process_type));
    }
    types.extend(found.into_iter().flatten());
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// A setting with the line it comes from.
type Setting = (String, SourceLine);

/// What the files beside the Procfile say.
#[derive(Default)]
struct Settings {
    env_files: Vec<String>,
    /// `PORT` of an `.env` file.
    port: Option<Setting>,
    /// The settings of overmind and foreman by their names in overmind, without `OVERMIND_`.
    by_name: BTreeMap<String, Setting>,
    is_overmind: bool,
}

impl Settings {
    fn read(&mut self, directory: &str, files: &dyn Files, document: &mut Document) {
        for name in [".env", ".overmind.env"] {
            let path = join(directory, name);
            let Ok(text) = Text::read(files, &path) else { continue };
            let (variables, is_valid) = variables(&text, name, document);
            let places: BTreeMap<&str, SourceLine> = text
                .lines()
                .filter_map(|(place, line)| {
                    let name = line.split_once('=')?.0.trim();
                    Some((name.strip_prefix("export").unwrap_or(name).trim_start(), place))
                })
                .collect();
            let line_of = |variable: &str| places.get(variable).cloned().unwrap_or_else(|| text.place(1));
            self.is_overmind |= name == ".overmind.env";
            let mut for_processes = false;
            for (variable, value) in variables {
                if let Some(setting) = variable.strip_prefix("OVERMIND_") {
                    self.is_overmind = true;
                    self.by_name.insert(setting.to_owned(), (value, line_of(&variable)));
                    continue;
                }
                for_processes = true;
                if variable == "PORT" {
                    self.port = Some((value, line_of(&variable)));
                }
            }
            if for_processes && is_valid {
                self.env_files.push(path);
            }
        }
        let Ok(text) = Text::read(files, &join(directory, ".foreman")) else { return };
        for (place, line) in text.lines() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') || line == "---" {
                continue;
            }
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.trim().trim_matches(['"', '\'']).to_owned();
            let setting = match key.trim() {
                "formation" | "concurrency" | "m" | "c" => "FORMATION",
                "port" | "p" => "PORT",
                "timeout" | "t" => "TIMEOUT",
                "color" | "timestamp" => {
                    document.not_needed(&place, "about the terminal");
                    continue;
                }
                _ => {
                    document.inexact(&place, "no equivalent");
                    continue;
                }
            };
            self.by_name.insert(setting.to_owned(), (value, place));
        }
    }

    fn take(&self, name: &str) -> Option<&Setting> {
        self.by_name.get(name)
    }

    /// The line of a list of names that has this one.
    fn names(&self, setting: &str, name: &str) -> Option<&SourceLine> {
        let (list, place) = self.take(setting)?;
        list.split(',').map(str::trim).any(|item| item == name || item == "all").then_some(place)
    }

    /// The value for a process type in a list such as `web=2,worker=1`, and its line.
    fn pair(&self, setting: &str, name: &str) -> Option<(&str, &SourceLine)> {
        let (list, place) = self.take(setting)?;
        let pairs = || list.split(',').filter_map(|item| item.trim().split_once('='));
        let of = |wanted: &str| pairs().rfind(|(key, _)| *key == wanted).map(|(_, value)| value);
        of(name).or_else(|| of("all")).map(|value| (value, place))
    }

    fn is_true(&self, setting: &str) -> Option<&SourceLine> {
        let (value, place) = self.take(setting)?;
        (!matches!(value.as_str(), "" | "0" | "false")).then_some(place)
    }
}

/// The variables of a file, and whether all of its lines are valid. Other programs skip an invalid line; `envFile` refuses the file.
fn variables(text: &Text, name: &str, document: &mut Document) -> (Vec<(String, String)>, bool) {
    let mut lines: Vec<&str> = text.text.split('\n').collect();
    let mut is_valid = true;
    for _ in 0..MAX_INVALID {
        let error = match dotenv::parse(lines.join("\n").as_bytes()) {
            Ok(variables) => return (variables, is_valid),
            Err(error) => error,
        };
        is_valid = false;
        // The line may have a secret.
        let place = SourceLine { file: text.path.clone(), line: error.line, text: name.to_owned() };
        let (message, path) = (error.message, &text.path);
        let why = format!(
            "line {}: {message}, so `envFile` would refuse the whole file: correct or remove the line, and add `envFile: [{path:?}]`",
            error.line
        );
        document.inexact(&place, why);
        if let Some(line) = lines.get_mut(error.line.saturating_sub(1)) {
            *line = "";
        }
    }
    (Vec::new(), false)
}

/// The ports of the processes.
struct Ports<'a> {
    /// The setting with the first port; without it, that is the variable `PORT`.
    base: Option<&'a Setting>,
    first: u16,
    step: u16,
    instance_step: u16,
}

impl<'a> Ports<'a> {
    fn new(settings: &'a Settings) -> Self {
        // An option of foreman or overmind counts more than the variable.
        let base = settings.take("PORT").or(settings.port.as_ref());
        let number =
            |setting: Option<&Setting>| setting.and_then(|(value, _)| value.trim().parse::<u16>().ok());
        let default = if settings.is_overmind { OVERMIND_INSTANCE_STEP } else { INSTANCE_STEP };
        Self {
            base,
            first: number(base).unwrap_or(FIRST_PORT),
            step: number(settings.take("PORT_STEP")).unwrap_or(PORT_STEP),
            instance_step: number(settings.take("FORMATION_PORT_STEP")).unwrap_or(default),
        }
    }

    /// `PORT` of a process: its type is the one with this number, and it is the process with this number of its type.
    fn variable(&self, process_type: u16, instance: u16, document: &mut Document) -> Field {
        let distance = process_type.saturating_mul(self.step);
        let distance = distance.saturating_add(instance.saturating_mul(self.instance_step));
        let mut field = Field::new("PORT", self.first.saturating_add(distance).to_string());
        if self.base.is_none() && distance == 0 {
            let variable = format!(".PORT | default \"{}\"", self.first);
            field.value = Value::Template(vec![Part::Action(variable)]);
        } else if self.base.is_none() {
            document.remark(
                "Only the first process type uses the variable PORT. The ports of the others are fixed: a template cannot add numbers.",
            );
        }
        field
    }
}

fn convert(types: &[ProcessType], settings: &Settings, document: &mut Document) {
    if !settings.env_files.is_empty() {
        document.top.set("envFile", settings.env_files.clone(), None);
    }
    top(settings, document);
    let release = types.iter().find(|process_type| process_type.name == "release");
    let release = release.map(|_| document.free_name("release"));
    let ports = Ports::new(settings);
    for (number, process_type) in types.iter().enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let name = process_type.name.as_str();
        if let Some(place) = settings.names("IGNORED_PROCESSES", name) {
            document.inexact(&process_type.place, format!("ignored by {}:{}", place.file, place.line));
            continue;
        }
        let is_release = name == "release";
        let count =
            settings.pair("FORMATION", name).and_then(|(count, place)| Some((count.parse().ok()?, place)));
        let (count, formation) = match count {
            Some((count, place)) if count <= MAX_PROCESSES => (count, Some(place)),
            Some((_, place)) => {
                document.inexact(place, format!("{name}: at most {MAX_PROCESSES} processes"));
                (1, None)
            }
            None => (1, None),
        };
        if count == 0 {
            document.inexact(&process_type.place, "its number of processes is 0");
        }
        for instance in 0..count {
            let mut fields = vec![Field::new("exec", command_line::shell(&process_type.command))];
            let wanted = if count > 1 { format!("{name}-{}", instance + 1) } else { name.to_owned() };
            if count > 1 {
                fields.set("groups", vec![name], formation);
            }
            if is_release {
                fields.set("onSuccess", "continue", None);
                fields.note("onSuccess", "The release phase: it runs once, before the others.");
            } else if settings.is_true("NO_PORT").is_none() {
                let from = ports.base.map(|(_, place)| place);
                let variable = ports.variable(number, instance, document);
                fields.set("env", Value::Object(vec![variable]), from);
            }
            if let Some(release) = release.as_ref().filter(|_| !is_release) {
                fields.set("requires", vec![release.clone()], None);
            }
            overmind(name, settings, &mut fields, document);
            let name = match (&release, is_release) {
                (Some(release), true) => release.clone(),
                _ => document.free_name(&wanted),
            };
            document.jobs.push(Job { name, from: Some(process_type.place.clone()), fields });
        }
    }
}

/// The keys of one process type that overmind sets.
fn overmind(name: &str, settings: &Settings, fields: &mut Vec<Field>, document: &mut Document) {
    if let Some(place) = settings.names("AUTO_RESTART", name) {
        fields.set("restarts", "unlimited", Some(place));
    } else if let Some(place) = settings.names("CAN_DIE", name) {
        fields.set("onSuccess", "continue", Some(place));
        fields.set("onFailure", "continue", Some(place));
    }
    if let Some((signal, place)) = settings.pair("STOP_SIGNALS", name) {
        match command_line::signal(signal) {
            Some(signal) => fields.set("stopSignal", signal, Some(place)),
            None => document.inexact(place, format!("{name}: there is no signal `{signal}`")),
        }
    }
}

/// The keys for all process types.
fn top(settings: &Settings, document: &mut Document) {
    for (name, (value, place)) in &settings.by_name {
        match name.as_str() {
            "TIMEOUT" if value.parse::<u32>().is_ok() => {
                document.top.set("stopTimeout", Value::Number(value.clone()), Some(place));
            }
            "AUTO_RESTART"
            | "CAN_DIE"
            | "ANY_CAN_DIE"
            | "FORMATION"
            | "FORMATION_PORT_STEP"
            | "IGNORED_PROCESSES"
            | "NO_PORT"
            | "PORT"
            | "PORT_STEP"
            | "STOP_SIGNALS" => {}
            "COLORS" | "SHOW_TIMESTAMPS" | "TITLE" | "TMUX_CONFIG" | "SOCKET" | "DAEMONIZE" | "NETWORK" => {
                document.not_needed(place, "about overmind itself");
            }
            _ => document.inexact(place, "no equivalent"),
        }
    }
    let mut defaults = Vec::new();
    if let Some(place) = settings.is_true("ANY_CAN_DIE") {
        document.not_needed(place, "the default: a process that ends stops no other");
    } else {
        defaults.set("onSuccess", "shutdown", None);
        defaults.set("onFailure", "shutdown", None);
    }
    if settings.is_overmind {
        defaults.set("stopSignal", "SIGINT", None);
    }
    if !defaults.is_empty() {
        document.top.set("defaults", Value::Object(defaults), None);
        let note = match settings.is_overmind {
            true => "As overmind does: when one process exits, all others are stopped, with SIGINT.",
            false => "As foreman and honcho do: when one process exits, all others are stopped.",
        };
        document.top.note("defaults", note);
    }
}
