//! The way from files to a plan: render, parse, decode, merge, lower, check.

use containerpilot_core::plan::{Plan, Role};
use std::collections::BTreeMap;

use crate::decode::{DecodeContext, Roots, Section};
use crate::diagnostics::{FileId, Place, Problem, Report, Severity, SourceFile};
use crate::fields::ConfigFields;
use crate::host::Host;
use crate::json5::{self, Member, Node, Value};
use crate::legacy::fields::LegacyFields;
use crate::legacy::{self, Entry, Program, Version};
use crate::lower::{Lower, SOCKET_VARIABLE};
use crate::span::{SourceMap, Span};
use crate::template::{self, Environment};
use crate::{limits, merge, validate};

/// The tables of whole files, for advice about unknown keys.
static ROOTS: Roots = Roots {
    current: &ConfigFields::INFO,
    legacy: &LegacyFields::INFO,
    nearest_legacy_key: legacy::nearest_key,
};

fn context(file: FileId, problems: &mut Vec<Problem>) -> DecodeContext<'_> {
    DecodeContext::new(file, problems).with_roots(&ROOTS)
}

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
pub fn load(inputs: Vec<Input>, host: &dyn Host, options: Options<'_>) -> Loaded {
    load_with_program(inputs, host, options, None)
}

/// Loads a configuration beside which a main program is named on the command line. A ContainerPilot 2 file makes it a job
/// of its plan (C8); of a version 3 file it is no part.
pub fn load_with_program(
    inputs: Vec<Input>,
    host: &dyn Host,
    options: Options<'_>,
    program: Option<&[String]>,
) -> Loaded {
    let mut problems = Vec::new();
    let reading = read(inputs, host.environment(), program, &mut problems);
    let plan = plan_of(&reading, host, options, &mut problems);
    Loaded { plan, report: Report::new(reading.files, problems) }
}

/// The version of ContainerPilot that a configuration is written for (C8).
#[must_use]
pub fn version(inputs: &[Input], environment: &Environment) -> Version {
    let is_old = |input: &Input| {
        let Ok(rendered) = template::render(&input.text, environment) else { return false };
        match json5::parse(&rendered.text).root.map(|root| root.value) {
            Some(Value::Object(members)) => legacy::version_of(&members) == Version::Two,
            _ => false,
        }
    };
    if inputs.iter().any(is_old) { Version::Two } else { Version::Three }
}

/// What was read from files.
pub(crate) struct Reading {
    pub(crate) files: Vec<SourceFile>,
    fields: Option<ConfigFields>,
    /// Whether the texts could be read to their ends.
    pub(crate) well_formed: bool,
    pub(crate) version: Version,
    /// The translation of a version 2 file.
    pub(crate) tree: Vec<Entry>,
    /// What is not as it was in version 2.
    pub(crate) differences: Vec<&'static str>,
    /// The name of the main program's job.
    main: Option<String>,
}

/// Reads files, and lays them over one another.
pub(crate) fn read(
    inputs: Vec<Input>,
    environment: &Environment,
    program: Option<&[String]>,
    problems: &mut Vec<Problem>,
) -> Reading {
    let program = program.map(|words| Program::rendered(words, environment));
    let mut reading = Reading {
        files: Vec::new(),
        fields: None,
        well_formed: true,
        version: Version::Three,
        tree: Vec::new(),
        differences: Vec::new(),
        main: None,
    };
    let alone = inputs.len() == 1;
    for (nth, input) in inputs.into_iter().enumerate() {
        let id = FileId::at(nth);
        let file = rendered(id, input, environment, problems);
        let fields = reading.file(id, &file.rendered, program.as_ref(), problems);
        if reading.version == Version::Two && !alone {
            let message = "a ContainerPilot 2 file cannot be one of several files";
            let problem = Problem::new(Severity::Error, Place::source(id, Span::at(0)), message);
            problems.push(
                problem
                    .help("name it by itself, or make a version 3 file of it with `containerpilot migrate`"),
            );
            reading.well_formed = false;
        }
        reading.files.push(file);
        match (&mut reading.fields, fields) {
            (Some(earlier), Some(later)) => merge::overlay(earlier, later),
            (slot @ None, fields) => *slot = fields,
            (Some(_), None) => {}
        }
    }
    reading
}

/// The plan of what was read, if there is no error in it.
pub(crate) fn plan_of(
    reading: &Reading,
    host: &dyn Host,
    options: Options<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Plan> {
    // What follows from a file that could not be read to its end would only mislead.
    let fields = reading.fields.as_ref().filter(|_| reading.well_formed)?;
    let mut lower = Lower { host, version: options.version, problems };
    let draft = lower.draft(fields);
    validate::check(fields, &draft, host, reading.version, problems);
    let mut plan = draft.finish(reading.version == Version::Two);
    let jobs = plan.iter_mut().flat_map(|plan| &mut plan.jobs);
    for job in jobs.filter(|job| reading.main.as_ref() == Some(&job.name)) {
        job.role = Role::Main;
    }
    if plan.is_none() && !problems.iter().any(is_error) {
        let message = "the configuration could not be understood, and containerpilot cannot say why";
        problems
            .push(Problem::unlocated(Severity::Error, message).help("this is a defect: please report it"));
    }
    plan.filter(|_| !problems.iter().any(is_error))
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
    let reading = read(inputs, environment, None, &mut problems);
    let fields = match (reading.fields, reading.version) {
        // A version 2 file cannot name it, so that even of a broken one it is known.
        (None, Version::Two) => {
            let mut cx = context(FileId::default(), &mut problems);
            Some(ConfigFields::from_members(&mut cx, Span::at(0), &[]))
        }
        (fields, _) => fields,
    };
    let Some(socket) = fields.and_then(|fields| fields.control?.value.socket) else {
        return Err(Report::new(reading.files, problems));
    };
    let variable = environment.get(SOCKET_VARIABLE.as_bytes()).filter(|path| !path.is_empty());
    Ok(match variable.filter(|_| !socket.written) {
        Some(path) => String::from_utf8_lossy(path).into_owned(),
        None => socket.value,
    })
}

/// A file of another sort than a configuration, read with a table of its own. It is no template.
#[derive(Clone, Debug)]
pub struct PlainFile<S> {
    /// The file.
    pub file: SourceFile,
    /// Its fields, if it could be read to its end.
    pub fields: Option<S>,
    /// What was found.
    pub problems: Vec<Problem>,
}

/// Reads a file that is no template, with the reader, the bounds and the messages of a configuration.
#[must_use]
pub fn read_plain_file<S: Section>(input: Input) -> PlainFile<S> {
    let Input { name, text: mut source } = input;
    let (id, mut problems) = (FileId::default(), Vec::new());
    if source.len() > limits::SOURCE_BYTES {
        let message = format!("the file has {} bytes, which is too large", source.len());
        problems.push(Problem::new(Severity::Error, Place::source(id, Span::at(0)), message));
        source.truncate(1024);
        let file = SourceFile { name, source, rendered: Vec::new(), map: SourceMap::default() };
        return PlainFile { file, fields: None, problems };
    }
    let parsed = json5::parse(&source);
    let well_formed = parsed.errors.is_empty();
    for error in parsed.errors {
        let problem = Problem::new(Severity::Error, Place::rendered(id, error.span), error.message);
        problems.push(Problem { help: error.help, ..problem });
    }
    let fields = parsed.root.map(|Node { value, span }| {
        let members = match value {
            Value::Object(members) => members,
            _ => Vec::new(),
        };
        S::from_members(&mut context(id, &mut problems), span, &members)
    });
    prefer_later(&mut problems, 0);
    let file = SourceFile { name, rendered: source.clone(), map: SourceMap::identity(source.len()), source };
    PlainFile { file, fields: fields.filter(|_| well_formed), problems }
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

impl Reading {
    /// Reads the fields of one rendered file, and takes note of its version and of whether its text is well-formed.
    fn file(
        &mut self,
        id: FileId,
        text: &[u8],
        program: Option<&Program>,
        problems: &mut Vec<Problem>,
    ) -> Option<ConfigFields> {
        if problems.iter().any(|problem| problem.place.is_some_and(|place| place.file == id)) {
            self.well_formed = false;
            return None;
        }
        let parsed = json5::parse(text);
        let before = problems.len();
        self.well_formed &= parsed.errors.is_empty() && parsed.root.is_some();
        for error in parsed.errors {
            let problem = Problem::new(Severity::Error, Place::rendered(id, error.span), error.message);
            let cut = error.cut.map(|cut| Place::rendered(id, cut));
            problems.push(Problem { help: error.help, cut, ..problem });
        }
        let Node { value, span } = parsed.root?;
        let members = match value {
            Value::Object(members) => members,
            _ => Vec::new(),
        };
        let mut cx = context(id, problems);
        match legacy::version_of(&members) {
            Version::Three => {
                let members = legacy::refuse_mixture(&mut cx, members);
                let fields = ConfigFields::from_members(&mut cx, span, &members);
                prefer_later(problems, before);
                Some(fields)
            }
            Version::Two => {
                self.version = Version::Two;
                let fields = LegacyFields::from_members(&mut cx, span, &members);
                prefer_later(problems, before);
                let cx = &mut context(id, problems);
                self.translated(cx, span, &members, &fields, program)
            }
        }
    }

    /// What a version 2 file says in version 3, if its own table finds no fault with it.
    fn translated(
        &mut self,
        cx: &mut DecodeContext<'_>,
        span: Span,
        members: &[Member],
        fields: &LegacyFields,
        program: Option<&Program>,
    ) -> Option<ConfigFields> {
        legacy::check(cx, fields, program.is_some());
        if cx.has_errors() {
            self.well_formed = false;
            return None;
        }
        self.tree = legacy::translate(span, members, fields, program);
        self.main = program.map(|_| legacy::main_name(fields));
        self.differences = legacy::differences(fields, program.is_some());
        Some(ConfigFields::from_members(cx, span, &legacy::members(&self.tree)))
    }
}

/// Of two errors at the very same place, the later one knows more: that `abc` must stand in quotes is of no use where
/// a number is wanted.
fn prefer_later(problems: &mut Vec<Problem>, from: usize) {
    let errors = problems.iter().skip(from).filter(|problem| is_error(problem));
    let placed = |(nth, problem): (usize, &Problem)| {
        let place = problem.place.filter(|place| !place.in_source && !place.span.is_empty())?;
        Some((place.span, nth))
    };
    let last: BTreeMap<Span, usize> = errors.enumerate().filter_map(placed).collect();
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
