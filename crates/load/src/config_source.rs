//! What the supervisor was started with, and loading a plan from it: at the start and at every reload (R2, S7, C8).

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use containerpilot_config::diagnostics::{Problem, Report, Severity, Style};
use containerpilot_config::file_version::Version;
use containerpilot_config::host::Host;
use containerpilot_config::template::Environment;
use containerpilot_config::{ConfigFile, LoadedConfig, Options, load_with_program, version};
use containerpilot_core::plan::{Job, Plan, Role, Word};

use crate::find_files::{self, ReadError};
use crate::host::ThisHost;
use crate::looks::Looks;

/// Telemetry advertises the version.
pub const OPTIONS: Options<'static> = Options { version: env!("CARGO_PKG_VERSION") };

/// The program on the command line (S7).
#[derive(Clone, Debug)]
pub struct ProgramArguments {
    /// The program and its arguments, which may be any bytes.
    pub words: Vec<OsString>,
    pub form: ProgramForm,
}

/// How a program was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramForm {
    AfterDashes,
    /// Without `--`, which only ContainerPilot 2 allowed.
    Bare,
    /// The same, and a version 3 configuration ignores it (X4).
    Ignorable,
}

/// The source of the configuration.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    /// The path; `None` for the default paths.
    path: Option<PathBuf>,
    program: Option<ProgramArguments>,
    /// The text from standard input, which can be read only once.
    input: Option<Vec<ConfigFile>>,
}

/// Why a plan cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A program without `--` next to a version 3 configuration.
    #[error(
        "the program on the command line needs `--` before it: the configuration is no longer a ContainerPilot 2 file"
    )]
    BareProgram,
    #[error("the configuration has errors")]
    Invalid(Report),
}

impl ConfigSource {
    pub fn new(path: Option<PathBuf>, program: Option<ProgramArguments>) -> Self {
        Self { path, program, input: None }
    }

    /// What was loaded is in force. Returns the program if it was ignored: it is forgotten then. Otherwise no later
    /// configuration ignores it.
    pub fn settle(&mut self, plan: &Plan) -> Option<ProgramArguments> {
        let program = self.program.as_mut().filter(|program| program.form == ProgramForm::Ignorable)?;
        program.form = ProgramForm::Bare;
        if plan.jobs.iter().any(|job| job.role == Role::Main) { None } else { self.program.take() }
    }

    /// Reads standard input if it is the source: it cannot be read again at a reload.
    pub fn read_stdin(&mut self, looks: &Looks) -> Result<(), ReadError> {
        if self.path.as_deref() == Some(Path::new("-")) && self.input.is_none() {
            self.input = Some(find_files::read_with(self.path.as_deref(), looks)?);
        }
        Ok(())
    }

    /// Reads and loads the configuration: the plan, and a report with warnings. A job that can never work is only a
    /// warning here.
    pub fn load(&self, environment: Environment, looks: &Rc<Looks>) -> Result<(Plan, Report), LoadError> {
        let inputs = match &self.input {
            Some(inputs) => inputs.clone(),
            None => find_files::read_with(self.path.as_deref(), looks)?,
        };
        let host = ThisHost::new(environment, Rc::clone(looks));
        let form = self.program.as_ref().map_or(ProgramForm::AfterDashes, |program| program.form);
        let is_meaningless =
            form != ProgramForm::AfterDashes && version(&inputs, host.environment()) == Version::Three;
        if is_meaningless && form == ProgramForm::Bare {
            return Err(LoadError::BareProgram);
        }
        let program = self.program.as_ref().filter(|_| !is_meaningless);
        let words = program.map(|program| program.words.as_slice());
        let texts = words.map(|words| words.iter().map(utf8).collect::<Result<Vec<_>, _>>());
        let texts = match texts {
            // Only a ContainerPilot 2 file contains the main program, as text.
            Some(Err(error)) if version(&inputs, host.environment()) == Version::Two => {
                return Err(LoadError::Invalid(error_report(&error)));
            }
            texts => texts.and_then(Result::ok),
        };
        let LoadedConfig { plan, report } = load_with_program(inputs, &host, OPTIONS, texts.as_deref());
        let Some(plan) = plan else { return Err(LoadError::Invalid(report)) };
        match words {
            // A ContainerPilot 2 file has added the main job already (C8).
            Some(words) if !plan.jobs.iter().any(|job| job.role == Role::Main) => {
                match main_program(Some(plan), words) {
                    Ok(plan) => Ok((plan, report)),
                    Err(report) => Err(LoadError::Invalid(report)),
                }
            }
            _ => Ok((plan, report)),
        }
    }
}

/// A report as plain text.
pub fn report_text(report: &Report) -> String {
    report.display(Style { faults_are_errors: false, colour: false }).to_string()
}

/// A command-line argument as UTF-8. The error is the message for the user.
pub fn utf8(word: &OsString) -> Result<String, String> {
    word.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", word.to_string_lossy()))
}

/// Adds the program on the command line as the main job, whose exit stops the container (S7). Without a plan it is the
/// only job: it inherits the standard streams and every signal is forwarded to it.
pub fn main_program(plan: Option<Plan>, words: &[OsString]) -> Result<Plan, Report> {
    let word = |word: &OsString| Word::from(word.as_bytes().to_vec());
    let (program, arguments) = match words.split_first() {
        Some((program, arguments)) if !program.is_empty() => {
            (word(program), arguments.iter().map(word).collect())
        }
        _ => {
            let problem = Problem::unlocated(Severity::Error, "the name of the program after `--` is empty")
                .help("write the name or path of the program, then its arguments");
            return Err(Report::new(Vec::new(), vec![problem]));
        }
    };
    let Some(mut plan) = plan else { return Ok(Plan::single_program(program, arguments)) };
    // The telemetry job stays last.
    let place = plan.jobs.iter().position(|job| job.role == Role::Telemetry).unwrap_or(plan.jobs.len());
    let process = plan.process.clone();
    plan.jobs.insert(place, Job { process, ..Job::main(program, arguments) });
    Ok(plan)
}

/// A report with a single error that has no location in a file.
pub fn error_report(message: &str) -> Report {
    Report::new(Vec::new(), vec![Problem::unlocated(Severity::Error, message)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
        words.map(OsString::from).to_vec()
    }

    #[test]
    fn s7_single_program_gets_every_signal_and_the_standard_streams() {
        let words = words(["/bin/{{ .X }}", "a b", "'\"\\\n", "ä😀", "", "-1"]);
        let plan = main_program(None, &words).unwrap();
        assert!(plan.pass_signals);
        let job = &plan.jobs[0];
        assert_eq!((job.role, job.output.is_raw(), plan.jobs.len()), (Role::Main, true, 1));
        let exec = job.exec.program().unwrap();
        assert_eq!(exec.program, "/bin/{{ .X }}");
        assert_eq!(exec.arguments, ["a b", "'\"\\\n", "ä😀", "", "-1"]);
    }

    #[test]
    fn s7_main_job_equals_one_from_a_configuration() {
        let written = "{ jobs: [{ name: 'app', exec: ['app', 'a', ''], onSuccess: 'shutdown', onFailure: 'shutdown', \
                       logging: { raw: true } }], logging: { level: 'WARN', output: 'stderr' }, \
                       record: { memory: 0 } }";
        let input = ConfigFile { name: "<test>".to_owned(), text: written.into() };
        let mut loaded =
            containerpilot_config::load(vec![input], &ThisHost::with(Environment::new()), OPTIONS);
        let plan = loaded.plan.as_mut().unwrap();
        plan.pass_signals = true;
        plan.jobs[0].role = Role::Main;
        assert_eq!(main_program(None, &words(["app", "a", ""])).unwrap(), *plan);
    }

    #[test]
    fn s7_program_with_an_empty_name_is_refused() {
        for words in [words([]), words(["", "a"])] {
            let report = main_program(None, &words).unwrap_err();
            assert!(report_text(&report).contains("the name of the program after `--` is empty"));
        }
    }

    #[test]
    fn s7_program_beside_a_configuration_is_an_ordinary_job() {
        let plan = main_program(None, &words(["first"])).unwrap();
        let plan = main_program(Some(Plan { pass_signals: false, ..plan }), &words(["app"])).unwrap();
        assert!(!plan.pass_signals);
        let last = plan.jobs.last().unwrap();
        assert_eq!((last.name.as_str(), last.role, last.output.is_raw()), ("app", Role::Main, false));
    }
}
