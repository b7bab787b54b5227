//! The image that a Dockerfile builds without a target: its last stage, with what it takes over from earlier stages.

use std::collections::{BTreeMap, BTreeSet};

use parse_dockerfile::{Command, HealthcheckArguments, HealthcheckInstruction, Instruction, Keyword, Stage};

use crate::model::{Container, Platform, Probe, ProbeAction, Purpose, User};
use crate::tree::At;
use crate::values::{base_name, script, split};

/// What a Dockerfile says about its image.
#[derive(Clone, Debug)]
pub struct Image {
    /// The name of the last stage.
    pub name: Option<String>,
    /// The line of its `FROM`.
    pub line: usize,
    /// The image that it is based on, which is not in the file.
    pub base: String,
    /// `ENTRYPOINT`.
    pub entrypoint: Option<At<ImageCommand>>,
    /// `CMD`.
    pub cmd: Option<At<ImageCommand>>,
    /// What each `EXPOSE` names, such as `8080` or `53/udp`; `None` if a variable in it is not known.
    pub ports: Vec<At<Option<String>>>,
    /// `HEALTHCHECK`, unless the last one is `NONE`.
    pub health: Option<At<HealthCheck>>,
    /// `USER`; `None` if a variable in it is not known.
    pub user: Option<At<Option<String>>>,
    /// `STOPSIGNAL`; `None` if a variable in it is not known.
    pub stop_signal: Option<At<Option<String>>>,
    /// The variables of `ENV` whose values are known.
    pub env: Vec<(String, String)>,
    /// Each `ONBUILD` of an earlier stage that the last one is based on.
    pub triggers: Vec<usize>,
}

/// A command of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageCommand {
    /// The words of the form in brackets.
    Exec(Vec<String>),
    /// A line for a shell.
    Shell {
        /// The words of `SHELL`; empty if it is the default.
        shell: Vec<String>,
        /// The line, without the ends of continued lines.
        line: String,
    },
}

impl ImageCommand {
    /// The words that are executed.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Exec(words) => words.clone(),
            Self::Shell { shell, line } if shell.is_empty() => crate::values::shell(line),
            Self::Shell { shell, line } => shell.iter().chain([line]).cloned().collect(),
        }
    }
}

/// `HEALTHCHECK`.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    /// What it runs.
    pub command: ImageCommand,
    /// Its options without the dashes, and their values.
    pub options: Vec<(String, String)>,
}

/// What the variables of `ARG` are, which `docker build` can set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuildArguments {
    /// Not known.
    #[default]
    Unknown,
    /// Their defaults in the file.
    Defaults,
}

/// The longest value of a variable; a longer one is not known. A value can repeat another one twice.
const LONGEST_VALUE: usize = 64 << 10;

/// Returns true for a Dockerfile: by its name, or by its first instruction.
pub(crate) fn is_dockerfile(path: &str, text: &str) -> bool {
    let name = base_name(path).to_ascii_lowercase();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let word = first.and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    name.split('.').any(|part| matches!(part, "dockerfile" | "containerfile"))
        || ["FROM", "ARG"].iter().any(|instruction| word.eq_ignore_ascii_case(instruction))
}

/// Reads a Dockerfile.
///
/// # Errors
/// A line, and what is wrong there.
pub fn image(text: &str, arguments: BuildArguments) -> Result<Image, (usize, String)> {
    let text = &with_words(text);
    let file = parse_dockerfile::parse(text).map_err(|error| (error.line().max(1), format!("{error:#}")))?;
    let stages: Vec<Stage<'_, '_>> = file.stages().collect();
    let alias = |stage: &Stage<'_, '_>| stage.from.as_.as_ref().map(|(_, name)| name.value.to_string());
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for (nth, stage) in stages.iter().enumerate() {
        if let Some(alias) = alias(stage) {
            named.entry(alias.to_ascii_lowercase()).or_insert(nth);
        }
    }
    let mut global = Variables { arguments, ..Variables::default() };
    file.global_args().for_each(|arg| global.declare(&arg.arguments.value, &BTreeMap::new()));
    let base_of = |stage: &Stage<'_, '_>| {
        let image = stage.from.image.value.to_string();
        global.expand(&image).unwrap_or(image)
    };
    // Only the stages that the last one is built on, the last one first.
    let base = |nth: &usize| {
        let image = base_of(stages.get(*nth)?);
        named.get(&image.to_ascii_lowercase()).copied().filter(|base| base < nth)
    };
    let chain: Vec<usize> = std::iter::successors(stages.len().checked_sub(1), base).collect();
    let lines = Lines::of(text);
    let escape = file.parser_directives.escape.as_ref().map_or('\\', |escape| escape.value.value);
    let mut reader = Reader { lines: &lines, escape, global: &global.values, shell: Vec::new() };
    let mut variables = Variables { arguments, ..Variables::default() };
    let mut image: Option<Image> = None;
    for (nth, stage) in chain.into_iter().rev().filter_map(|nth| Some((nth, stages.get(nth)?))) {
        let line = lines.line_of(stage.from.from.span.start);
        let image = image.get_or_insert_with(|| Image::new(base_of(stage)));
        (image.name, image.line) = (alias(stage), line);
        reader.stage(image, &mut variables, stage, nth + 1 == stages.len());
    }
    image.ok_or_else(|| (1, "it has no FROM".to_owned()))
}

/// The text with an empty word in each `ENTRYPOINT []`, which the parser refuses. The lines keep their numbers.
fn with_words(text: &str) -> String {
    let is_empty = |line: &str| {
        let line: String = line.split_whitespace().collect();
        line.eq_ignore_ascii_case("ENTRYPOINT[]")
    };
    let line = |line| if is_empty(line) { "ENTRYPOINT [\"\"]\n" } else { line };
    text.split_inclusive('\n').map(line).collect()
}

impl Image {
    fn new(base: String) -> Self {
        Self {
            name: None,
            line: 1,
            base,
            entrypoint: None,
            cmd: None,
            ports: Vec::new(),
            health: None,
            user: None,
            stop_signal: None,
            env: Vec::new(),
            triggers: Vec::new(),
        }
    }
}

/// Reads the instructions of stages.
struct Reader<'a> {
    lines: &'a Lines,
    escape: char,
    /// The variables before the first `FROM`.
    global: &'a BTreeMap<String, String>,
    /// `SHELL`.
    shell: Vec<String>,
}

impl Reader<'_> {
    fn stage(&mut self, image: &mut Image, variables: &mut Variables, stage: &Stage<'_, '_>, is_last: bool) {
        let line = |keyword: &Keyword| self.lines.line_of(keyword.span.start);
        let mut has_cmd = false;
        for instruction in stage.instructions {
            match instruction {
                Instruction::Stopsignal(stop) => {
                    let value = variables.expand(&stop.arguments.value);
                    image.stop_signal = Some(At { line: line(&stop.stopsignal), value });
                }
                Instruction::Entrypoint(entry) => {
                    let value = self.command(&entry.arguments);
                    image.entrypoint = Some(At { line: line(&entry.entrypoint), value });
                    // Docker drops the CMD of the base.
                    if !has_cmd {
                        image.cmd = None;
                    }
                }
                Instruction::Cmd(cmd) => {
                    has_cmd = true;
                    image.cmd = Some(At { line: line(&cmd.cmd), value: self.command(&cmd.arguments) });
                }
                Instruction::User(user) => {
                    let value = variables.expand(&user.arguments.value);
                    image.user = Some(At { line: line(&user.user), value });
                }
                Instruction::Env(env) => image.env.extend(variables.set(&env.arguments.value)),
                Instruction::Arg(arg) => variables.declare(&arg.arguments.value, self.global),
                Instruction::Expose(expose) => {
                    let line = line(&expose.expose);
                    for port in &expose.arguments {
                        image.ports.push(At { line, value: variables.expand(&port.value) });
                    }
                }
                Instruction::Healthcheck(check) => image.health = self.health_check(check),
                Instruction::Shell(shell) => {
                    self.shell = shell.arguments.iter().map(|word| word.value.to_string()).collect();
                }
                Instruction::Onbuild(onbuild) if !is_last => image.triggers.push(line(&onbuild.onbuild)),
                _ => {}
            }
        }
    }

    fn command(&self, command: &Command<'_>) -> ImageCommand {
        match command {
            Command::Exec(words) => {
                let words: Vec<String> = words.value.iter().map(|word| word.value.to_string()).collect();
                ImageCommand::Exec(if words == [""] { Vec::new() } else { words })
            }
            Command::Shell(line) => {
                ImageCommand::Shell { shell: self.shell.clone(), line: joined(line.value, self.escape) }
            }
            _ => ImageCommand::Exec(Vec::new()),
        }
    }

    fn health_check(&self, check: &HealthcheckInstruction<'_>) -> Option<At<HealthCheck>> {
        let HealthcheckArguments::Cmd { arguments, .. } = &check.arguments else { return None };
        let value = |value: &parse_dockerfile::UnescapedString<'_>| value.value.to_string();
        let options = check
            .options
            .iter()
            .map(|flag| (value(&flag.name), flag.value.as_ref().map(value).unwrap_or_default()));
        let check_value = HealthCheck { command: self.command(arguments), options: options.collect() };
        Some(At { line: self.lines.line_of(check.healthcheck.span.start), value: check_value })
    }
}

/// The variables of a build.
#[derive(Default)]
struct Variables {
    arguments: BuildArguments,
    values: BTreeMap<String, String>,
    /// The names that `ENV` has set, over which no `ARG` wins.
    env: BTreeSet<String>,
}

impl Variables {
    /// `ENV NAME=VALUE …`, or `ENV NAME VALUE`. Returns the variables whose values are known.
    fn set(&mut self, text: &str) -> Vec<(String, String)> {
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
        // All of them have the values from before this instruction.
        let values: Vec<(String, Option<String>)> =
            pairs.into_iter().map(|(name, value)| (name, self.expand(&value))).collect();
        for (name, value) in &values {
            self.env.insert(name.clone());
            match value {
                Some(value) => drop(self.values.insert(name.clone(), value.clone())),
                None => drop(self.values.remove(name)),
            }
        }
        values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// `ARG NAME[=VALUE] …`. A name without a value has that of before the first `FROM`.
    fn declare(&mut self, text: &str, global: &BTreeMap<String, String>) {
        for word in split(text) {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), self.expand(value)),
                None => (word.clone(), global.get(&word).cloned()),
            };
            if self.env.contains(&name) {
                continue;
            }
            match value.filter(|_| self.arguments == BuildArguments::Defaults) {
                Some(value) => drop(self.values.insert(name, value)),
                None => drop(self.values.remove(&name)),
            }
        }
    }

    /// A text with the values of its variables: `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME:+word}`. `None` if one is
    /// not known: it may be that of the base image.
    fn expand(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '\\']) {
            out.push_str(rest.get(..at)?);
            let special = rest.get(at..)?;
            if let Some(after) = special.strip_prefix('\\') {
                let escaped = after.chars().next();
                out.extend(escaped);
                rest = after.get(escaped.map_or(0, char::len_utf8)..)?;
                continue;
            }
            let after = special.get(1..)?;
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (value, next) = match after.strip_prefix('{') {
                Some(inside) => {
                    let end = inside.find('}')?;
                    (self.braced(inside.get(..end)?)?, inside.get(end + 1..)?)
                }
                None => {
                    let end = after.find(|c| !word(c)).unwrap_or(after.len());
                    (self.values.get(after.get(..end)?)?.clone(), after.get(end..)?)
                }
            };
            out.push_str(&value);
            rest = next;
            if out.len() > LONGEST_VALUE {
                return None;
            }
        }
        out.push_str(rest);
        Some(out).filter(|out| out.len() <= LONGEST_VALUE)
    }

    /// What is between `${` and `}`.
    fn braced(&self, inside: &str) -> Option<String> {
        let value = |name: &str| self.values.get(name).cloned();
        let plain = |word: &str| Some(word.to_owned()).filter(|word| !word.contains(['$', '\\']));
        if let Some((name, word)) = inside.split_once(":-") {
            return match value(name) {
                Some(value) if !value.is_empty() => Some(value),
                Some(_) => plain(word),
                // The base image can have set it.
                None if self.arguments == BuildArguments::Defaults => plain(word),
                None => None,
            };
        }
        if let Some((name, word)) = inside.split_once(":+") {
            let value = value(name)?;
            return if value.is_empty() { Some(String::new()) } else { plain(word) };
        }
        value(inside)
    }
}

/// A shell line without the ends of continued lines, and without the comments between them.
fn joined(text: &str, escape: char) -> String {
    let mut out = String::new();
    let mut continued = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if continued && (trimmed.is_empty() || trimmed.starts_with('#')) {
            continue;
        }
        let end = line.trim_end();
        let kept = end.strip_suffix(escape);
        continued = kept.is_some();
        out.push_str(if out.is_empty() { kept.unwrap_or(line) } else { kept.unwrap_or(end) });
        if !continued {
            out.push('\n');
        }
    }
    out.trim().to_owned()
}

/// The container of the image. The error has a line and what is wrong there.
pub(crate) fn container(text: &str) -> Result<Container, (usize, String)> {
    let image = image(text, BuildArguments::Unknown)?;
    let name = image.name.as_deref().unwrap_or("image");
    let mut container = Container::new(Platform::Image, "the last stage", name, image.line);
    let known = |at: At<Option<String>>| at.value.map(|value| At { line: at.line, value });
    let words = |at: At<ImageCommand>| At { line: at.line, value: at.value.words() };
    container.image = image.base;
    container.signal = image.stop_signal.and_then(known);
    container.command = image.entrypoint.map(words);
    container.args = image.cmd.map(words);
    container.user = image
        .user
        .and_then(known)
        .map(|user| At { line: user.line, value: user_of(user.value.split(':').next().unwrap_or_default()) });
    container.env = image.env;
    container.probes = image.health.into_iter().map(probe).collect();
    // A shell takes what follows its script as arguments, and the script uses none.
    if container.command.as_ref().is_some_and(|command| script(&command.value).is_some()) {
        container.args = None;
    }
    Ok(container)
}

fn user_of(name: &str) -> User {
    match (name, name.parse()) {
        ("root", _) => User::Id(0),
        (_, Ok(id)) => User::Id(id),
        (_, Err(_)) => User::NotRoot,
    }
}

fn probe(check: At<HealthCheck>) -> Probe {
    Probe {
        name: "HEALTHCHECK".to_owned(),
        purpose: Purpose::Readiness,
        line: check.line,
        action: ProbeAction::Exec(check.value.command.words()),
        grace: None,
    }
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
