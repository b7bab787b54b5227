//! The image that a Dockerfile builds without a target: its last stage, with what it takes over from earlier stages.

use std::collections::BTreeMap;

use parse_dockerfile::{Command, HealthcheckArguments, Instruction, Keyword, Stage};

use crate::model::{Container, Platform, Probe, ProbeAction, Purpose, User};
use crate::tree::At;
use crate::values::{base_name, script, shell, split};

/// Returns true for a Dockerfile: by its name, or by its first instruction.
pub(crate) fn is_dockerfile(path: &str, text: &str) -> bool {
    let name = base_name(path).to_ascii_lowercase();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let word = first.and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    name.split('.').any(|part| matches!(part, "dockerfile" | "containerfile"))
        || ["FROM", "ARG"].iter().any(|instruction| word.eq_ignore_ascii_case(instruction))
}

/// The container of the image. The error has a line and what is wrong there.
pub(crate) fn container(text: &str) -> Result<Container, (usize, String)> {
    let file = parse_dockerfile::parse(text).map_err(|error| (error.line().max(1), format!("{error:#}")))?;
    let stages: Vec<Stage<'_, '_>> = file.stages().collect();
    let alias = |stage: &Stage<'_, '_>| stage.from.as_.as_ref().map(|(_, name)| name.value.to_string());
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for (nth, stage) in stages.iter().enumerate() {
        if let Some(alias) = alias(stage) {
            named.entry(alias.to_ascii_lowercase()).or_insert(nth);
        }
    }
    // Only the stages that the last one is built on, the last one first.
    let base = |nth: &usize| {
        let image = &stages.get(*nth)?.from.image.value;
        named.get(&image.to_ascii_lowercase()).copied().filter(|base| base < nth)
    };
    let chain: Vec<usize> = std::iter::successors(stages.len().checked_sub(1), base).collect();
    let lines = Lines::of(text);
    let mut container = None;
    for stage in chain.into_iter().rev().filter_map(|nth| stages.get(nth)) {
        let line = lines.line_of(stage.from.from.span.start);
        let container =
            container.get_or_insert_with(|| Container::new(Platform::Image, "the last stage", "image", line));
        container.name = alias(stage).unwrap_or_else(|| "image".to_owned());
        (container.line, container.image) = (line, stage.from.image.value.to_string());
        apply(container, stage, &lines);
    }
    container.ok_or_else(|| (1, "it has no FROM".to_owned()))
}

/// The instructions of a stage. A value with a variable of the build is not known.
fn apply(container: &mut Container, stage: &Stage<'_, '_>, lines: &Lines) {
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.contains('$'));
    let line = |keyword: &Keyword| lines.line_of(keyword.span.start);
    let mut has_cmd = false;
    for instruction in stage.instructions {
        match instruction {
            Instruction::Stopsignal(stop) => {
                let value = known(&stop.arguments.value);
                container.signal = value.map(|value| At { line: line(&stop.stopsignal), value });
            }
            Instruction::Entrypoint(entry) => {
                let value = words(&entry.arguments);
                container.command = Some(At { line: line(&entry.entrypoint), value });
                // Docker drops the CMD of the base.
                if !has_cmd {
                    container.args = None;
                }
            }
            Instruction::Cmd(cmd) => {
                has_cmd = true;
                container.args = Some(At { line: line(&cmd.cmd), value: words(&cmd.arguments) });
            }
            Instruction::User(user) => {
                let name = known(&user.arguments.value);
                let name = name.as_deref().and_then(|user| user.split(':').next());
                container.user = name.map(|name| At { line: line(&user.user), value: user_of(name) });
            }
            Instruction::Env(env) => container.env.extend(variables(&env.arguments.value)),
            Instruction::Healthcheck(check) => {
                container.probes =
                    health_check(&check.arguments, line(&check.healthcheck)).into_iter().collect();
            }
            _ => {}
        }
    }
    // A shell takes what follows its script as arguments, and the script uses none.
    if container.command.as_ref().is_some_and(|command| script(&command.value).is_some()) {
        container.args = None;
    }
}

/// The words that are executed.
fn words(command: &Command<'_>) -> Vec<String> {
    match command {
        Command::Exec(words) => words.value.iter().map(|word| word.value.to_string()).collect(),
        Command::Shell(line) => shell(line.value),
        _ => Vec::new(),
    }
}

fn user_of(name: &str) -> User {
    match (name, name.parse()) {
        ("root", _) => User::Id(0),
        (_, Ok(id)) => User::Id(id),
        (_, Err(_)) => User::NotRoot,
    }
}

/// `NAME=VALUE …`, or `NAME VALUE`. Values with variables are left out.
fn variables(text: &str) -> Vec<(String, String)> {
    let first = text.split_whitespace().next().unwrap_or_default();
    let pairs: Vec<(String, String)> = if first.contains('=') {
        let pair =
            |word: &String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        split(text).iter().filter_map(pair).collect()
    } else {
        text.split_once(char::is_whitespace)
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .into_iter()
            .collect()
    };
    pairs.into_iter().filter(|(_, value)| !value.contains('$')).collect()
}

fn health_check(arguments: &HealthcheckArguments<'_>, line: usize) -> Option<Probe> {
    let HealthcheckArguments::Cmd { arguments, .. } = arguments else { return None };
    let (name, action) = ("HEALTHCHECK".to_owned(), ProbeAction::Exec(words(arguments)));
    Some(Probe { name, purpose: Purpose::Readiness, line, action, grace: None })
}

/// Where the lines of a text end.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    /// The line of a byte, from 1.
    fn line_of(&self, at: usize) -> usize {
        1 + self.0.partition_point(|end| *end < at)
    }
}
