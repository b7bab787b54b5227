//! Programs that do not exist or are not executable.

use containerpilot_core::plan::{Command, Job};

use crate::decode::Spanned;
use crate::diagnostics::Severity;
use crate::fields::{ConfigFields, JobFields};
use crate::host::ProgramState;
use crate::validate::{Checker, examined};
use crate::values::TimeOr;

/// A command of the configuration.
#[derive(Clone, Copy)]
pub(super) struct UsedCommand<'a> {
    pub(super) command: &'a Spanned<Command>,
    /// What runs it.
    user: &'static str,
    /// True if the variables of replicas in it are replaced (W20).
    pub(super) replicated: bool,
    /// With its own `cwd` or PATH, the program can only be found when it is started.
    elsewhere: bool,
}

impl UsedCommand<'_> {
    /// The program, if it can be found before it is started.
    pub(super) fn known_program(&self) -> Option<String> {
        let program = &self.command.value.program;
        (!self.elsewhere || program.as_bytes().starts_with(b"/")).then(|| program.text().into_owned())
    }
}

/// All commands of the configuration, with its jobs.
pub(super) fn commands<'a>(
    fields: &'a ConfigFields,
    pairs: &[(&'a JobFields, Option<&'a Job>)],
) -> Vec<UsedCommand<'a>> {
    let mut commands = Vec::new();
    let used = |user, elsewhere| move |command| UsedCommand { command, user, replicated: false, elsewhere };
    for (job, lowered) in pairs {
        let has_path = lowered.is_some_and(|job| {
            job.process.env.contains_key("PATH") || job.process.shared_env.contains_key("PATH")
        });
        let elsewhere = job.cwd.is_some() || has_path;
        let checks = job.health.iter().flat_map(|given| &given.value.items);
        let replicated = job.replicas.is_some();
        let own = job.exec.iter().map(used("job", elsewhere));
        let own = own.chain(checks.filter_map(|check| check.exec.as_ref()).map(used("check", elsewhere)));
        let drain = job.drain.as_ref().and_then(|given| match &given.value {
            TimeOr::Object(section) => section.exec.as_ref(),
            TimeOr::Time(_) => None,
        });
        let own = own.chain(drain.map(used("drain", elsewhere)));
        commands.extend(own.map(|used| UsedCommand { replicated, ..used }));
    }
    let coprocesses = fields.coprocesses.iter().flat_map(|given| &given.value);
    commands.extend(coprocesses.filter_map(|one| one.command.as_ref()).map(used("coprocess", false)));
    let files = fields.files.iter().flat_map(|given| &given.value);
    commands.extend(files.filter_map(|file| file.test.as_ref()).map(used("test", false)));
    let metrics = fields.telemetry.iter().flat_map(|given| &given.value.metrics);
    let metrics = metrics.flat_map(|given| &given.value).filter_map(|metric| metric.exec.as_ref());
    commands.extend(metrics.map(used("measurement", false)));
    commands
}

impl<'a> Checker<'a> {
    pub(super) fn commands(&self, fields: &'a ConfigFields) -> Vec<UsedCommand<'a>> {
        commands(fields, &self.pairs)
    }

    /// Warns about programs that do not exist or are not executable.
    pub(super) fn programs(&mut self, fields: &'a ConfigFields) {
        for used in self.commands(fields) {
            let Some(program) = used.known_program() else { continue };
            let UsedCommand { command, user, .. } = used;
            let Some(state) = self.examined.programs.get(&program) else {
                let message = examined::no_answer(&format!("program `{program}`"));
                let help =
                    format!("check its file system; the {user} will fail unless that answers when it runs");
                self.report(Severity::Warning, command.place, message, help);
                continue;
            };
            let (message, help) = match state {
                ProgramState::Runnable => continue,
                ProgramState::Missing => {
                    let place = if program.contains('/') { "" } else { " in PATH" };
                    let help = format!("the {user} will fail unless the program exists when it runs");
                    (format!("program `{program}` not found{place}"), help)
                }
                ProgramState::NoInterpreter(interpreter) => {
                    let help = if interpreter.ends_with('\r') {
                        "the script has Windows line endings: convert it to LF".to_owned()
                    } else {
                        format!("the {user} will fail unless the interpreter exists when it runs")
                    };
                    (format!("interpreter `{}` of `{program}` not found", interpreter.escape_debug()), help)
                }
                ProgramState::NotExecutable => {
                    let help = if program.contains('/') {
                        format!("chmod +x {program}")
                    } else {
                        "make it executable, for example with chmod +x".to_owned()
                    };
                    (format!("`{program}` is not executable"), help)
                }
                ProgramState::Unusable { reason, help } => (format!("`{program}` {reason}"), help.clone()),
                ProgramState::Directory => {
                    let help = "write the path of the program itself";
                    (format!("`{program}` is a directory, not a program"), help.to_owned())
                }
            };
            self.report(Severity::Warning, command.place, message, help);
        }
    }
}
