//! `run`: supervising (the default), and `-- PROGRAM` (S7).

use std::ffi::OsString;
use std::fmt::Write;

use containerpilot_config::host::Host;
use containerpilot_config::legacy::Version;
use containerpilot_config::{Input, Loaded, Options, load, version};
use containerpilot_core::Core;
use containerpilot_core::plan::{Plan, Role};

use super::flags::Arguments;
use super::{Failure, check, config_path, unknown_command};
use crate::files;
use crate::host::{self, ThisHost};
use crate::runtime::Runtime;
use crate::signals::{self, Taken};

/// Supervises what the configuration and the command line ask for; the code to exit with.
pub(super) fn run(args: &Arguments) -> Result<u8, Failure> {
    let program = program(args)?;
    // ContainerPilot 2 took the program without `--` before it; only beside such a file that is one (C8).
    let bare = program.is_some() && !args.dashes;
    // What stands behind `--` is the program's, and no path.
    let args = &args.flags_only();
    let configured = program.is_none() || config_path(args).is_some() || files::usual_place_exists();
    let taken = if configured { Taken::Meant } else { Taken::Every };
    // Before anything that takes time: to PID 1 a signal that is not held is lost.
    signals::hold(taken).map_err(|error| cannot("signals cannot be held", &error))?;
    let plan = if configured {
        let inputs = files::read(config_path(args).as_deref()).map_err(Failure::Failed)?;
        if bare && version(&inputs, ThisHost::look().environment()) == Version::Three {
            return Err(not_a_program(program));
        }
        let words = program.map(words).transpose()?;
        Some(check::loads(inputs, words.as_deref(), "nothing was started")?)
    } else if bare {
        return Err(not_a_program(program));
    } else {
        None
    };
    let plan = match (plan, program) {
        (Some(plan), None) => plan,
        // A ContainerPilot 2 file has made a job of it already (C8).
        (Some(plan), Some(_)) if plan.jobs.iter().any(|job| job.role == Role::Main) => plan,
        (plan, Some((program, arguments))) => main_program(plan, program, arguments)?,
        (None, None) => return Err(Failure::Failed("there is nothing to run".to_owned())),
    };
    let mut runtime = Runtime::new(Core::new(plan), taken, host::environment())
        .map_err(|error| cannot("the supervisor cannot begin", &error))?;
    runtime.open().map_err(Failure::Failed)?;
    Ok(runtime.run())
}

fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("{what}: {error}"))
}

/// The program of the command line and its arguments.
fn program(args: &Arguments) -> Result<Option<(&OsString, &[OsString])>, Failure> {
    match args.rest.split_first() {
        None if args.dashes => Err(Failure::Usage("there is no program after `--`".to_owned())),
        None => Ok(None),
        found @ Some(_) => Ok(found),
    }
}

fn not_a_program(program: Option<(&OsString, &[OsString])>) -> Failure {
    let name = program.map(|(name, _)| name.to_string_lossy().into_owned());
    unknown_command(&name.unwrap_or_default())
}

/// The program and its arguments in one list.
fn words((program, arguments): (&OsString, &[OsString])) -> Result<Vec<String>, Failure> {
    std::iter::once(program).chain(arguments).map(utf8).collect()
}

/// A word of the command line as text.
pub(super) fn utf8(word: &OsString) -> Result<String, Failure> {
    let refusal = || Failure::Usage(format!("`{}` is not UTF-8", word.to_string_lossy()));
    word.to_str().map(str::to_owned).ok_or_else(refusal)
}

/// A plan in which the program of the command line is the main job, with whose end everything ends (S7): beside the
/// jobs of a configuration; or, without one, alone, with our own streams and every signal passed on to it.
///
/// The job is written as a configuration and loaded as one, so that defaults stay in their one place.
fn main_program(plan: Option<Plan>, program: &OsString, arguments: &[OsString]) -> Result<Plan, Failure> {
    let alone = plan.is_none();
    let mut text = "{ jobs: [{ name: ".to_owned();
    quote(&mut text, &utf8(program)?);
    text.push_str(", exec: [");
    for word in std::iter::once(program).chain(arguments) {
        quote(&mut text, &utf8(word)?);
        text.push(',');
    }
    text.push_str("], onSuccess: 'shutdown', onFailure: 'shutdown'");
    // Alone it has our streams for itself; what we have to say stays out of its output.
    text.push_str(if alone {
        ", logging: { raw: true } }], logging: { level: 'WARN', output: 'stderr' } }"
    } else {
        " }] }"
    });
    let input = Input { name: "<command line>".to_owned(), text: text.into_bytes() };
    let options = Options { version: check::VERSION, refuse_planned: false };
    let Loaded { plan: made, report } = load(vec![input], &ThisHost::look(), options);
    let mut made = made.ok_or_else(|| {
        Failure::Failed(format!("the program cannot be a job:\n{}", report.display(check::style(false))))
    })?;
    for job in &mut made.jobs {
        job.role = Role::Main;
    }
    let Some(mut plan) = plan else {
        made.pass_signals = true;
        return Ok(made);
    };
    // The telemetry job stays the last.
    let place = plan.jobs.iter().position(|job| job.role == Role::Telemetry).unwrap_or(plan.jobs.len());
    plan.jobs.splice(place..place, made.jobs);
    Ok(plan)
}

/// A JSON5 string without a character that means anything to JSON5 or to the template.
fn quote(text: &mut String, word: &str) {
    text.push('"');
    for unit in word.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "\\u{unit:04x}")),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_a_program_alone_gets_every_signal_and_our_streams() {
        let words = ["/bin/{{ .X }}", "a b", "'\"\\\n", "ä😀", "", "-1"].map(OsString::from);
        let plan = main_program(None, &words[0], &words[1..]).unwrap();
        assert!(plan.pass_signals);
        let job = &plan.jobs[0];
        assert_eq!((job.role, job.raw_output, plan.jobs.len()), (Role::Main, true, 1));
        let exec = job.exec.as_ref().unwrap();
        assert_eq!(exec.program, "/bin/{{ .X }}");
        assert_eq!(exec.arguments, ["a b", "'\"\\\n", "ä😀", "", "-1"]);
    }

    #[test]
    fn s7_a_program_beside_a_configuration_is_a_job_like_any_other() {
        let word = OsString::from("app");
        let plan = main_program(None, &OsString::from("first"), &[]).unwrap();
        let plan = main_program(Some(Plan { pass_signals: false, ..plan }), &word, &[]).unwrap();
        assert!(!plan.pass_signals);
        let last = plan.jobs.last().unwrap();
        assert_eq!((last.name.as_str(), last.role, last.raw_output), ("app", Role::Main, false));
    }
}
