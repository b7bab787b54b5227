//! Programs that do not exist or are not executable.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_core::plan::{Command, Word};

use crate::decode::Spanned;
use crate::diagnostics::Severity;
use crate::fields::ConfigFields;
use crate::host::ProgramState;
use crate::validate::Checker;

impl Checker<'_> {
    /// Warns about programs that do not exist or are not executable.
    pub(super) fn programs(&mut self, fields: &ConfigFields) {
        let mut commands: Vec<(&Spanned<Command>, &str, bool)> = Vec::new();
        for (job, _) in &self.pairs {
            // With its own `cwd` or PATH, the program can only be found when it is started.
            let elsewhere =
                job.cwd.is_some() || job.env.as_ref().is_some_and(|env| env.value.contains_key("PATH"));
            let checks = job
                .health
                .iter()
                .flat_map(|given| &given.value.items)
                .filter_map(|check| check.exec.as_ref());
            commands.extend(job.exec.iter().map(|command| (command, "job", elsewhere)));
            commands.extend(checks.map(|command| (command, "check", elsewhere)));
        }
        let coprocesses = fields.coprocesses.iter().flat_map(|given| &given.value);
        let coprocesses = coprocesses.filter_map(|one| one.command.as_ref());
        commands.extend(coprocesses.map(|command| (command, "coprocess", false)));
        let metrics = fields.telemetry.iter().flat_map(|given| &given.value.metrics);
        let metrics = metrics.flat_map(|given| &given.value).filter_map(|metric| metric.exec.as_ref());
        commands.extend(metrics.map(|command| (command, "measurement", false)));
        commands.retain(|(command, _, elsewhere)| {
            !elsewhere || command.value.program.as_bytes().starts_with(b"/")
        });
        // Each program is searched once.
        let programs: BTreeSet<&Word> = commands.iter().map(|(command, ..)| &command.value.program).collect();
        let states: BTreeMap<&Word, ProgramState> =
            programs.into_iter().map(|program| (program, self.host.program(&program.text()))).collect();
        for (command, user, _) in commands {
            let Some(state) = states.get(&command.value.program).copied() else { continue };
            let program = command.value.program.text();
            let (message, help) = match state {
                ProgramState::Runnable => continue,
                ProgramState::Missing => {
                    let place = if program.contains('/') { "" } else { " in PATH" };
                    let help = format!("the {user} will fail unless the program exists when it runs");
                    (format!("program `{program}` not found{place}"), help)
                }
                ProgramState::NotExecutable => {
                    let help = "make it executable, for example with chmod +x";
                    (format!("`{program}` is not executable"), help.to_owned())
                }
                ProgramState::Directory => {
                    let help = "write the path of the program itself";
                    (format!("`{program}` is a directory, not a program"), help.to_owned())
                }
            };
            self.report(Severity::Warning, command.place, message, help);
        }
    }
}
