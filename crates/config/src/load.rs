//! The way from files to a plan: render, parse, decode, merge, lower, check.

use std::collections::BTreeMap;

use containerpilot_core::plan::Plan;

use crate::decode::{Cx, Section};
use crate::diagnose::{FileId, Place, Problem, Report, Severity, SourceFile};
use crate::fields::ConfigFields;
use crate::host::Host;
use crate::json5::{self, Member, Value};
use crate::lower::Lower;
use crate::span::{SourceMap, Span};
use crate::template::{self, Environment};
use crate::{limits, meaning, merge};

/// A file that was read.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The name the user knows it by.
    pub name: String,
    /// What it holds.
    pub text: Vec<u8>,
}

/// How a configuration is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The version of the program, which telemetry advertises.
    pub version: &'a str,
    /// Whether fields that nothing acts on yet are refused; only tests of the reading itself say no.
    pub refuse_planned: bool,
}

/// What became of a configuration.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The plan, if there is no error.
    pub plan: Option<Plan>,
    /// Everything that was found.
    pub report: Report,
}

/// Loads a configuration of one or more files, in their order.
pub fn load<H: Host>(inputs: Vec<Input>, host: &H, options: Options<'_>) -> Loaded {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    let mut merged: Option<ConfigFields> = None;
    let mut well_formed = true;
    for (nth, input) in inputs.into_iter().enumerate() {
        let id = FileId::at(nth);
        let file = rendered(id, input, host.environment(), &mut problems);
        let (fields, clean) = fields(id, &file.rendered, options, &mut problems);
        well_formed &= clean;
        files.push(file);
        match (&mut merged, fields) {
            (Some(earlier), Some(later)) => merge::overlay(earlier, later),
            (slot @ None, fields) => *slot = fields,
            (Some(_), None) => {}
        }
    }
    let mut plan = None;
    // What follows from a file that could not be read to its end would only mislead.
    if well_formed && let Some(fields) = merged {
        let mut lower = Lower { host, version: options.version, problems: &mut problems };
        let draft = lower.draft(&fields);
        meaning::check(&fields, &draft, host, &mut problems);
        plan = draft.finish();
        if plan.is_none() && !problems.iter().any(is_error) {
            let message = "the configuration could not be understood, and containerpilot cannot say why";
            problems
                .push(Problem::nowhere(Severity::Error, message).help("this is a defect: please report it"));
        }
    }
    if problems.iter().any(is_error) {
        plan = None;
    }
    Loaded { plan, report: Report::new(files, problems) }
}

fn is_error(problem: &Problem) -> bool {
    problem.severity == Severity::Error
}

/// Renders files as templates, each by itself, or says what is wrong with all of them.
///
/// # Errors
/// The problems of the templates.
pub fn render(inputs: Vec<Input>, environment: &Environment) -> Result<Vec<Vec<u8>>, Report> {
    let mut problems = Vec::new();
    let files: Vec<SourceFile> = inputs
        .into_iter()
        .enumerate()
        .map(|(nth, input)| rendered(FileId::at(nth), input, environment, &mut problems))
        .collect();
    if problems.is_empty() {
        Ok(files.into_iter().map(|file| file.rendered).collect())
    } else {
        Err(Report::new(files, problems))
    }
}

/// The path of the control socket that a configuration names, or the usual one. Whoever wants to speak to a running
/// supervisor must find it, so a file that has become wrong since then is read as far as it goes.
///
/// # Errors
/// What is wrong, where nothing of the configuration could be read.
pub fn control_socket(inputs: Vec<Input>, environment: &Environment) -> Result<String, Report> {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    let mut merged: Option<ConfigFields> = None;
    for (nth, input) in inputs.into_iter().enumerate() {
        let id = FileId::at(nth);
        let file = rendered(id, input, environment, &mut problems);
        let options = Options { version: "", refuse_planned: false };
        match (&mut merged, fields(id, &file.rendered, options, &mut problems).0) {
            (Some(earlier), Some(later)) => merge::overlay(earlier, later),
            (slot @ None, fields) => *slot = fields,
            (Some(_), None) => {}
        }
        files.push(file);
    }
    let Some(socket) = merged.and_then(|fields| fields.control?.value.socket) else {
        return Err(Report::new(files, problems));
    };
    let variable = environment.get(SOCKET_VARIABLE.as_bytes()).filter(|path| !path.is_empty());
    Ok(match variable.filter(|_| !socket.written) {
        Some(path) => String::from_utf8_lossy(path).into_owned(),
        None => socket.value,
    })
}

fn rendered(id: FileId, input: Input, environment: &Environment, problems: &mut Vec<Problem>) -> SourceFile {
    let Input { name, text: source } = input;
    let nothing =
        |source| SourceFile { name: name.clone(), source, rendered: Vec::new(), map: SourceMap::default() };
    if source.len() > limits::SOURCE_BYTES {
        let megabytes = |bytes: usize| bytes / (1024 * 1024);
        let message = format!("the file has {} bytes, which is too large for a configuration", source.len());
        let help = format!(
            "at most {} MiB are read; is it really the configuration?",
            megabytes(limits::SOURCE_BYTES)
        );
        problems.push(Problem::new(Severity::Error, Place::source(id, Span::at(0)), message).help(help));
        let mut start = source;
        start.truncate(1024);
        return nothing(start);
    }
    match template::render(&source, environment) {
        Ok(template::Rendered { text, map }) => SourceFile { name, source, rendered: text, map },
        Err(errors) => {
            for error in errors {
                let problem = Problem::new(Severity::Error, Place::source(id, error.span), error.message);
                problems.push(Problem { help: error.help, ..problem });
            }
            nothing(source)
        }
    }
}

/// Reads the fields of one rendered file, and tells whether its text was well-formed.
fn fields(
    id: FileId,
    text: &[u8],
    options: Options<'_>,
    problems: &mut Vec<Problem>,
) -> (Option<ConfigFields>, bool) {
    if problems.iter().any(|problem| problem.place.is_some_and(|place| place.file == id)) {
        return (None, false);
    }
    let parsed = json5::parse(text);
    let before = problems.len();
    let clean = parsed.errors.is_empty();
    for error in parsed.errors {
        let problem = Problem::new(Severity::Error, Place::rendered(id, error.span), error.message);
        let cut = error.cut.map(|cut| Place::rendered(id, cut));
        problems.push(Problem { help: error.help, cut, ..problem });
    }
    let Some(root) = parsed.root else { return (None, false) };
    let members = match root.value {
        Value::Object(members) => members,
        _ => Vec::new(),
    };
    let mut cx = Cx::new(id, problems, options.refuse_planned);
    let (members, legacy): (Vec<Member>, Vec<Member>) =
        members.into_iter().partition(|member| !LEGACY_KEYS.contains(&member.key.as_str()));
    for member in legacy {
        let message = format!(
            "`{}` belongs to ContainerPilot 2 files, which this version does not run yet",
            member.key
        );
        let help = match member.key.as_str() {
            "services" => {
                "in version 3 these are `jobs`, each with its `exec` and health: { exec: …, interval: …, ttl: … }"
            }
            "tasks" => "in version 3 these are `jobs` with when: { interval: … }",
            "backends" => {
                "in version 3 these are `watches`, and `onChange` is a job with when: { source: \"watch.NAME\", \
                 each: \"changed\" }"
            }
            "preStart" => {
                "in version 3 this is a job, and the others wait for it with when: { source: \"preStart\", once: \
                 \"exitSuccess\" }"
            }
            "preStop" => "in version 3 this is a job with when: { source: \"NAME\", once: \"stopping\" }",
            _ => "in version 3 this is a job with when: { source: \"NAME\", once: \"stopped\" }",
        };
        cx.error(member.key_span, message, help);
    }
    let fields = ConfigFields::from_members(&mut cx, root.span, &members);
    prefer_later(problems, before);
    (Some(fields), clean)
}

/// Of two errors at the very same place, the later one knows more: that `abc` must stand in quotes is of no use where
/// a number is wanted.
fn prefer_later(problems: &mut Vec<Problem>, from: usize) {
    let errors = problems.iter().skip(from).filter(|problem| is_error(problem));
    let mut last: BTreeMap<Span, usize> = BTreeMap::new();
    for (nth, problem) in errors.enumerate() {
        if let Some(place) = problem.place.filter(|place| !place.in_source && !place.span.is_empty()) {
            last.insert(place.span, nth);
        }
    }
    let mut nth = 0;
    let mut skipped = 0;
    problems.retain(|problem| {
        skipped += 1;
        if skipped <= from || !is_error(problem) {
            return true;
        }
        nth += 1;
        let latest = problem.place.and_then(|place| last.get(&place.span).copied());
        latest.is_none_or(|latest| latest == nth - 1)
    });
}

/// The variable that names the control socket where the configuration does not.
const SOCKET_VARIABLE: &str = "CONTAINERPILOT_SOCKET";

/// Keys that only a ContainerPilot 2 file has (C8).
const LEGACY_KEYS: [&str; 6] = ["services", "backends", "tasks", "preStart", "preStop", "postStop"];
