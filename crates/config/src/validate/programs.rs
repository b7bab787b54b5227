//! Programs that do not exist or are not executable.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_core::plan::{Command, Word};

use crate::decode::Spanned;
use crate::diagnostics::Severity;
use crate::fields::ConfigFields;
use crate::host::ProgramState;
use crate::validate::Checker;
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

impl<'a> Checker<'a> {
    /// All commands of the configuration.
    pub(super) fn commands(&self, fields: &'a ConfigFields) -> Vec<UsedCommand<'a>> {
        let mut commands = Vec::new();
        let used =
            |user, elsewhere| move |command| UsedCommand { command, user, replicated: false, elsewhere };
        for (job, lowered) in &self.pairs {
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

    /// Warns about programs that do not exist or are not executable.
    pub(super) fn programs(&mut self, fields: &'a ConfigFields) {
        let mut commands = self.commands(fields);
        commands.retain(|used| !used.elsewhere || used.command.value.program.as_bytes().starts_with(b"/"));
        // Each program is searched once.
        let programs: BTreeSet<&Word> = commands.iter().map(|used| &used.command.value.program).collect();
        let states: BTreeMap<&Word, ProgramState> =
            programs.into_iter().map(|program| (program, self.host.program(&program.text()))).collect();
        for UsedCommand { command, user, .. } in commands {
            let Some(state) = states.get(&command.value.program) else { continue };
            let program = command.value.program.text();
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
