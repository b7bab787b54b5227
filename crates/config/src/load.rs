//! Loads a configuration: render, parse, decode, merge, lower, validate.

use std::collections::BTreeMap;

use containerpilot_core::inserted;
use containerpilot_core::plan::{Plan, Process, Role};
use containerpilot_core::variables::SOCKET_VARIABLE;

use crate::broken_string::{backslashes, broken_string};
use crate::decode::{DecodeContext, Roots, Section};
use crate::diagnostics::{FileId, Place, Problem, Report, Severity, SourceFile};
use crate::fields::ConfigFields;
use crate::file_version::{self, Version};
use crate::host::Host;
use crate::json5::{self, Member, Node, Value};
use crate::legacy::fields::LegacyFields;
use crate::legacy::{self, MainProgram, TreeEntry};
use crate::lower::{Lower, StopOn, Templates, apply_defaults};
use crate::span::{SourceMap, Span};
use crate::template::{self, Environment};
use crate::{limits, merge, validate};

/// The tables of whole files, for advice about unknown keys.
static ROOTS: Roots = Roots {
    current: &ConfigFields::INFO,
    legacy: &LegacyFields::INFO,
    nearest_legacy_key: file_version::nearest_legacy_key,
};

fn context(file: FileId, problems: &mut Vec<Problem>) -> DecodeContext<'_> {
    DecodeContext::new(file, problems).with_roots(&ROOTS)
}

/// A file of a configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfigFile {
    /// Its name for the user.
    pub name: String,
    /// Its content.
    pub text: Vec<u8>,
}

/// Options of loading.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The version of containerpilot, which telemetry advertises.
    pub version: &'a str,
}

/// A loaded configuration.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The plan, if there are no errors.
    pub plan: Option<Plan>,
    /// All problems.
    pub report: Report,
}

/// Loads a configuration of one or more files.
pub fn load(inputs: Vec<ConfigFile>, host: &dyn Host, options: Options<'_>) -> LoadedConfig {
    load_with_program(inputs, host, options, None)
}

/// Loads a configuration with the main program of the command line. With a ContainerPilot 2 file, the program becomes a job of
/// the plan (C8); with a version 3 file, it is ignored here.
pub fn load_with_program(
    inputs: Vec<ConfigFile>,
    host: &dyn Host,
    options: Options<'_>,
    program: Option<&[String]>,
) -> LoadedConfig {
    let mut problems = Vec::new();
    let main = program.map(|words| MainProgram { words, host });
    let mut decoded = decode_files(inputs, host.environment(), main, &mut problems);
    let plan = plan_of(&mut decoded, host, options, &mut problems);
    if program.is_none()
        && let (Some(plan), Some(fields)) = (&plan, &decoded.fields)
        && !plan.jobs.iter().any(|job| matches!(job.role, Role::User | Role::Main))
    {
        let message = "the configuration has no jobs";
        let problem = Problem::new(Severity::Warning, fields.place.first_byte(), message);
        problems.push(problem.help("add `jobs`, or a program after `--`"));
    }
    LoadedConfig { plan, report: Report::new(decoded.files, problems) }
}

/// The version of the format of a configuration (C8).
#[must_use]
pub fn version(inputs: &[ConfigFile], environment: &Environment) -> Version {
    let is_old = |input: &ConfigFile| {
        let Ok(rendered) = template::render(&input.text, environment) else { return false };
        match json5::parse(&rendered.text).root.map(|root| root.value) {
            Some(Value::Object(members)) => file_version::version_of(&members) == Version::Two,
            _ => false,
        }
    };
    if inputs.iter().any(is_old) { Version::Two } else { Version::Three }
}

/// The decoded files of a configuration.
pub(crate) struct Decoded {
    pub(crate) files: Vec<SourceFile>,
    fields: Option<ConfigFields>,
    /// True if all files are syntactically valid.
    pub(crate) well_formed: bool,
    pub(crate) version: Version,
    /// The translated version 2 file.
    pub(crate) tree: Vec<TreeEntry>,
    /// The differences from version 2.
    pub(crate) differences: Vec<&'static str>,
    /// The name of the job of the main program.
    main: Option<String>,
}

/// Decodes and merges files.
pub(crate) fn decode_files(
    inputs: Vec<ConfigFile>,
    environment: &Environment,
    program: Option<MainProgram<'_>>,
    problems: &mut Vec<Problem>,
) -> Decoded {
    let mut decoded = Decoded {
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
        let file = render_file(id, input, environment, problems);
        let fields = decoded.decode(id, &file, program, problems);
        if decoded.version == Version::Two && !alone {
            let message = "a ContainerPilot 2 file cannot be combined with other files";
            let problem = Problem::new(Severity::Error, Place::source(id, Span::at(0)), message);
            problems.push(
                problem.help("load it alone, or convert it to version 3 with `containerpilot migrate`"),
            );
            decoded.well_formed = false;
        }
        if decoded.well_formed {
            problems.extend(not_utf8(id, &file.source));
        }
        decoded.files.push(file);
        match (&mut decoded.fields, fields) {
            (Some(earlier), Some(later)) => merge::merge(earlier, later),
            (slot @ None, fields) => *slot = fields,
            (Some(_), None) => {}
        }
    }
    if let Some(fields) = &mut decoded.fields {
        apply_defaults(fields);
    }
    decoded
}

/// The plan of decoded files, if there are no errors.
pub(crate) fn plan_of(
    decoded: &mut Decoded,
    host: &dyn Host,
    options: Options<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Plan> {
    // Errors that follow from invalid syntax would be misleading.
    let fields = decoded.fields.as_ref().filter(|_| decoded.well_formed)?;
    let (version, stop_on) = (options.version, StopOn::of(fields));
    let templates = Templates { first: decoded.files.len(), files: Vec::new() };
    let (shared, files) = (Process::default(), Vec::new());
    let mut lower = Lower { host, version, stop_on, problems, shared, files, templates };
    let mut draft = lower.draft(fields);
    let needed = std::mem::take(&mut lower.files);
    let examined = host.examine(&validate::paths(fields, &draft, &needed));
    draft.files = lower.files(fields, &examined);
    decoded.files.append(&mut lower.templates.files);
    validate::check_files(&needed, &examined, problems);
    validate::check(fields, &draft, host, &examined, decoded.version, problems);
    let mut plan = draft.finish(decoded.version == Version::Two);
    if let Some(plan) = plan.as_mut().filter(|_| decoded.version == Version::Two) {
        legacy::delay_first_ticks(plan);
        legacy::name_checks(plan, true);
    }
    if let Some(plan) = &plan {
        validate::check_locks(fields, plan, problems);
    }
    let jobs = plan.iter_mut().flat_map(|plan| &mut plan.jobs);
    for job in jobs.filter(|job| decoded.main.as_ref() == Some(&job.name)) {
        job.role = Role::Main;
    }
    if plan.is_none() && !problems.iter().any(is_error) {
        let message = "internal error: no plan and no error message";
        problems.push(Problem::unlocated(Severity::Error, message).help("please report this bug"));
    }
    plan.filter(|_| !problems.iter().any(is_error))
}

fn is_error(problem: &Problem) -> bool {
    problem.severity == Severity::Error
}

/// Renders each file as a template.
///
/// # Errors
/// The problems of all templates.
pub fn render(inputs: Vec<ConfigFile>, environment: &Environment) -> Result<Vec<Vec<u8>>, Report> {
    let mut problems = Vec::new();
    let files: Vec<SourceFile> = inputs
        .into_iter()
        .enumerate()
        .map(|(nth, input)| render_file(FileId::at(nth), input, environment, &mut problems))
        .collect();
    if problems.is_empty() {
        Ok(files.into_iter().map(|file| file.rendered).collect())
    } else {
        Err(Report::new(files, problems))
    }
}

/// The control socket of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlSocket {
    /// Its path.
    pub path: String,
    /// False if the configuration cannot be read completely, and may name another path.
    pub certain: bool,
}

/// The control socket of a configuration. Clients of a running supervisor need it even if the file has become invalid since
/// the start, so it is read as far as possible.
#[must_use]
pub fn control_socket(inputs: Vec<ConfigFile>, environment: &Environment) -> ControlSocket {
    let mut problems = Vec::new();
    let decoded = decode_files(inputs, environment, None, &mut problems);
    let has_errors = problems.iter().any(|problem| problem.severity == Severity::Error);
    let socket_of = |fields: ConfigFields| fields.control?.value.socket;
    let found = decoded.fields.and_then(socket_of);
    // A version 2 file cannot set it, so it is known even for an invalid one.
    let certain =
        found.as_ref().is_some_and(|socket| socket.written) || !has_errors || decoded.version == Version::Two;
    let found = found.or_else(|| {
        let mut cx = context(FileId::default(), &mut problems);
        socket_of(ConfigFields::from_members(&mut cx, Span::at(0), &[]))
    });
    let variable = environment.get(SOCKET_VARIABLE.as_bytes()).filter(|path| !path.is_empty());
    let variable = variable.map(|path| String::from_utf8_lossy(path).into_owned());
    let path = match found {
        Some(socket) if socket.written => socket.value,
        socket => variable.or(socket.map(|socket| socket.value)).unwrap_or_default(),
    };
    ControlSocket { path, certain }
}

/// A file with its own table of fields that is not a template.
#[derive(Clone, Debug)]
pub struct PlainFile<S> {
    /// The file.
    pub file: SourceFile,
    /// Its fields, if its syntax is valid.
    pub fields: Option<S>,
    /// Its problems.
    pub problems: Vec<Problem>,
}

/// Decodes a file that is not a template, with the limits and the messages of a configuration.
#[must_use]
pub fn read_plain_file<S: Section>(input: ConfigFile) -> PlainFile<S> {
    let ConfigFile { name, text: mut source } = input;
    let (id, mut problems) = (FileId::default(), Vec::new());
    if source.len() > limits::SOURCE_BYTES {
        problems.push(not_text(id, &source).unwrap_or_else(|| too_large(id)));
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
    keep_last_error_per_place(&mut problems, 0);
    let file = SourceFile { name, rendered: source.clone(), map: SourceMap::identity(source.len()), source };
    PlainFile { file, fields: fields.filter(|_| well_formed), problems }
}

/// The caller may have read only the start of the file, so its size is not known.
fn too_large(id: FileId) -> Problem {
    let message = format!("the file is larger than {} MiB", limits::SOURCE_BYTES / (1024 * 1024));
    Problem::new(Severity::Error, Place::source(id, Span::at(0)), message).help("check the path")
}

/// The error about a program or another binary file.
fn not_text(id: FileId, source: &[u8]) -> Option<Problem> {
    let error = json5::not_text(source)?;
    let problem = Problem::new(Severity::Error, Place::source(id, error.span), error.message);
    Some(Problem { help: error.help, ..problem })
}

/// The warning about the first byte that is not UTF-8. 3.8 accepts such a file.
fn not_utf8(id: FileId, source: &[u8]) -> Option<Problem> {
    let at = std::str::from_utf8(source).err()?.valid_up_to();
    let message = format!("byte 0x{:02X} is not UTF-8 and was read as U+FFFD", source.get(at)?);
    let place = Place::source(id, Span::new(at, at + 1));
    Some(Problem::new(Severity::Warning, place, message).help("save the file as UTF-8"))
}

fn render_file(
    id: FileId,
    input: ConfigFile,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> SourceFile {
    let ConfigFile { name, text: source } = input;
    let empty =
        |source| SourceFile { name: name.clone(), source, rendered: Vec::new(), map: SourceMap::default() };
    if source.len() > limits::SOURCE_BYTES {
        problems.push(not_text(id, &source).unwrap_or_else(|| too_large(id)));
        let mut start = source;
        start.truncate(1024);
        return empty(start);
    }
    match template::render(&source, environment) {
        Ok(template::Rendered { text, map }) => SourceFile { name, source, rendered: text, map },
        Err(errors) => {
            // In a binary file, `{{` is an accident.
            if let Some(problem) = not_text(id, &source) {
                problems.push(problem);
                return empty(source);
            }
            for error in errors {
                let problem = Problem::new(Severity::Error, Place::source(id, error.span), error.message);
                problems.push(Problem { help: error.help, ..problem });
            }
            empty(source)
        }
    }
}

impl Decoded {
    /// Decodes one rendered file, and records its version and whether its syntax is valid.
    fn decode(
        &mut self,
        id: FileId,
        file: &SourceFile,
        program: Option<MainProgram<'_>>,
        problems: &mut Vec<Problem>,
    ) -> Option<ConfigFields> {
        if problems.iter().any(|problem| problem.place.is_some_and(|place| place.file == id)) {
            self.well_formed = false;
            return None;
        }
        let parsed = json5::parse(&file.rendered);
        self.well_formed &= parsed.errors.is_empty() && parsed.root.is_some();
        if let Some(problem) = parsed.errors.iter().find_map(|error| broken_string(id, file, error)) {
            problems.push(problem);
            // All other problems may be consequences of it.
            return self.decode_root(id, parsed.root?, program, &mut Vec::new(), 0);
        }
        let before = problems.len();
        for error in parsed.errors {
            let problem = Problem::new(Severity::Error, Place::rendered(id, error.span), error.message);
            problems.push(Problem { help: error.help, ..problem });
        }
        let root = parsed.root?;
        if self.well_formed {
            backslashes(id, file, &root, problems);
        }
        self.decode_root(id, root, program, problems, before)
    }

    /// Decodes a parsed file. Its problems are those from `before` on.
    fn decode_root(
        &mut self,
        id: FileId,
        Node { value, span }: Node,
        program: Option<MainProgram<'_>>,
        problems: &mut Vec<Problem>,
        before: usize,
    ) -> Option<ConfigFields> {
        let mut members = match value {
            Value::Object(members) => members,
            _ => Vec::new(),
        };
        let mut cx = context(id, problems);
        match file_version::version_of(&members) {
            Version::Three => {
                let members = file_version::reject_legacy_keys(&mut cx, members);
                let fields = ConfigFields::from_members(&mut cx, span, &members);
                keep_last_error_per_place(problems, before);
                Some(fields)
            }
            Version::Two => {
                self.version = Version::Two;
                let mut fields = LegacyFields::from_members(&mut cx, span, &members);
                keep_last_error_per_place(problems, before);
                let cx = &mut context(id, problems);
                legacy::replace_on_start(cx, &mut members, &mut fields);
                self.translated(cx, span, &members, &fields, program)
            }
        }
    }

    /// Translates a version 2 file, if it has no errors.
    fn translated(
        &mut self,
        cx: &mut DecodeContext<'_>,
        span: Span,
        members: &[Member],
        fields: &LegacyFields,
        program: Option<MainProgram<'_>>,
    ) -> Option<ConfigFields> {
        legacy::check(cx, fields, program.is_some());
        if cx.has_errors() {
            self.well_formed = false;
            return None;
        }
        let words = program.map(|program| program.rendered(fields));
        self.tree = legacy::translate(span, members, fields, words.as_deref());
        self.main = words.as_ref().map(|_| legacy::main_name(fields));
        self.differences = legacy::differences(fields, words.as_deref());
        Some(ConfigFields::from_members(cx, span, &legacy::members(&self.tree)))
    }
}

/// Of two errors at the same place, keeps the later one, which is more specific: that `abc` needs quotes does not help where a
/// number is expected.
fn keep_last_error_per_place(problems: &mut Vec<Problem>, from: usize) {
    let errors = problems.iter().skip(from).filter(|problem| is_error(problem));
    let placed = |(nth, problem): (usize, &Problem)| {
        let place = problem.place.filter(|place| !place.in_source && !place.span.is_empty())?;
        Some((place.span, nth))
    };
    let last: BTreeMap<Span, usize> = inserted(errors.enumerate().filter_map(placed));
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
