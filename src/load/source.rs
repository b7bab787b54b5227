//! What the supervisor was asked to run, and how a plan is made of it: at the start, and at every reload (R2, S7, C8).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use containerpilot_config::diagnostics::{Problem, Report, Severity, Style};
use containerpilot_config::host::Host;
use containerpilot_config::legacy::Version;
use containerpilot_config::template::Environment;
use containerpilot_config::{Input, Loaded, Options, load_with_program, version};
use containerpilot_core::plan::{Job, Plan, Role};

use crate::load::files;
use crate::load::host::ThisHost;

/// The version that telemetry advertises.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How users' configurations are loaded.
pub(crate) const OPTIONS: Options<'static> = Options { version: VERSION };

/// The main program of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The program, and its arguments.
    pub(crate) words: Vec<String>,
    /// Whether it stands there without `--`, which only ContainerPilot 2 knew.
    pub(crate) bare: bool,
}

/// Where a configuration comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The path; without one it is looked for in the usual places.
    path: Option<PathBuf>,
    program: Option<Program>,
    /// What came from standard input, which can be read only once.
    input: Option<Vec<Input>>,
}

/// Why there is no plan.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// Files could not be read.
    Unreadable(String),
    /// A program without `--` stands beside a version 3 configuration.
    Bare,
    /// The configuration has errors.
    Errors(Report),
}

impl Source {
    pub(crate) fn new(path: Option<PathBuf>, program: Option<Program>) -> Self {
        Self { path, program, input: None }
    }

    /// Reads what has to be read now, because it cannot be read again.
    pub(crate) fn read_once(&mut self) -> Result<(), String> {
        if self.path.as_deref() == Some(Path::new("-")) && self.input.is_none() {
            self.input = Some(files::read(self.path.as_deref())?);
        }
        Ok(())
    }

    /// Reads and loads the configuration with an environment: the plan, and what is to be said about it. What can never
    /// work is only warned about.
    pub(crate) fn load(&self, environment: Environment) -> Result<(Plan, Report), NoPlan> {
        let inputs = match &self.input {
            Some(inputs) => inputs.clone(),
            None => files::read(self.path.as_deref()).map_err(NoPlan::Unreadable)?,
        };
        let host = ThisHost::with(environment);
        let bare = self.program.as_ref().is_some_and(|program| program.bare);
        if bare && version(&inputs, host.environment()) == Version::Three {
            return Err(NoPlan::Bare);
        }
        let words = self.program.as_ref().map(|program| program.words.as_slice());
        let Loaded { plan, report } = load_with_program(inputs, &host, OPTIONS, words);
        let Some(plan) = plan else { return Err(NoPlan::Errors(report)) };
        match words {
            // A ContainerPilot 2 file has made a job of it already (C8).
            Some(words) if !plan.jobs.iter().any(|job| job.role == Role::Main) => {
                match main_program(Some(plan), words) {
                    Ok(plan) => Ok((plan, report)),
                    Err(report) => Err(NoPlan::Errors(report)),
                }
            }
            _ => Ok((plan, report)),
        }
    }
}

/// A report in words, without colours.
pub(crate) fn words_of(report: &Report) -> String {
    report.display(Style { faults_are_errors: false, colour: false }).to_string()
}

/// A word of the command line as text, if it is some.
pub(crate) fn utf8(word: &OsString) -> Result<String, String> {
    word.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", word.to_string_lossy()))
}

/// A plan in which the program of the command line is the main job, with whose end everything ends (S7): beside the
/// jobs of a configuration; or, without one, alone, with our own streams and every signal passed on to it.
pub(crate) fn main_program(plan: Option<Plan>, words: &[String]) -> Result<Plan, Report> {
    let (program, arguments) = match words.split_first() {
        Some((program, arguments)) if !program.is_empty() => (program.clone(), arguments.to_vec()),
        _ => {
            let problem = Problem::unlocated(Severity::Error, "the program after `--` has an empty name")
                .help("write the program's name or path, and its arguments after it");
            return Err(Report::new(Vec::new(), vec![problem]));
        }
    };
    let Some(mut plan) = plan else { return Ok(Plan::single_program(program, arguments)) };
    // The telemetry job stays the last.
    let place = plan.jobs.iter().position(|job| job.role == Role::Telemetry).unwrap_or(plan.jobs.len());
    plan.jobs.insert(place, Job::main(program, arguments));
    Ok(plan)
}

/// What could not be read, as a report like any other.
pub(crate) fn unreadable(message: &str) -> Report {
    Report::new(Vec::new(), vec![Problem::unlocated(Severity::Error, message)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
        words.map(str::to_owned).to_vec()
    }

    #[test]
    fn s7_a_program_alone_gets_every_signal_and_our_streams() {
        let words = words(["/bin/{{ .X }}", "a b", "'\"\\\n", "ä😀", "", "-1"]);
        let plan = main_program(None, &words).unwrap();
        assert!(plan.pass_signals);
        let job = &plan.jobs[0];
        assert_eq!((job.role, job.raw_output, plan.jobs.len()), (Role::Main, true, 1));
        let exec = job.exec.as_ref().unwrap();
        assert_eq!(exec.program, "/bin/{{ .X }}");
        assert_eq!(exec.arguments, ["a b", "'\"\\\n", "ä😀", "", "-1"]);
    }

    #[test]
    fn s7_its_job_is_the_one_that_a_configuration_would_give() {
        let written = "{ jobs: [{ name: 'app', exec: ['app', 'a', ''], onSuccess: 'shutdown', onFailure: 'shutdown', \
                       logging: { raw: true } }], logging: { level: 'WARN', output: 'stderr' } }";
        let input = Input { name: "<test>".to_owned(), text: written.into() };
        let mut loaded =
            containerpilot_config::load(vec![input], &ThisHost::with(Environment::new()), OPTIONS);
        let plan = loaded.plan.as_mut().unwrap();
        plan.pass_signals = true;
        plan.jobs[0].role = Role::Main;
        assert_eq!(main_program(None, &words(["app", "a", ""])).unwrap(), *plan);
    }

    #[test]
    fn s7_a_program_without_a_name_is_refused() {
        for words in [words([]), words(["", "a"])] {
            let report = main_program(None, &words).unwrap_err();
            assert!(words_of(&report).contains("the program after `--` has an empty name"));
        }
    }

    #[test]
    fn s7_a_program_beside_a_configuration_is_a_job_like_any_other() {
        let plan = main_program(None, &words(["first"])).unwrap();
        let plan = main_program(Some(Plan { pass_signals: false, ..plan }), &words(["app"])).unwrap();
        assert!(!plan.pass_signals);
        let last = plan.jobs.last().unwrap();
        assert_eq!((last.name.as_str(), last.role, last.raw_output), ("app", Role::Main, false));
    }
}
