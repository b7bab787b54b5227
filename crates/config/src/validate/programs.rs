//! Programs that do not exist or are not executable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use containerpilot_core::plan::Command;

use crate::decode::Spanned;
use crate::diagnostics::Severity;
use crate::fields::ConfigFields;
use crate::host::ProgramState;
use crate::validate::Checker;

impl Checker<'_> {
    /// Warns about programs that do not exist or are not executable.
    pub(super) fn programs(&mut self, fields: &ConfigFields) {
        let mut commands: Vec<(&Spanned<Command>, bool)> = Vec::new();
        for (job, _) in &self.pairs {
            // With its own `cwd` or PATH, the program can only be found when it is started.
            let elsewhere =
                job.cwd.is_some() || job.env.as_ref().is_some_and(|env| env.value.contains_key("PATH"));
            let checks = job
                .health
                .iter()
                .flat_map(|given| &given.value.items)
                .filter_map(|check| check.exec.as_ref());
            commands.extend(job.exec.iter().chain(checks).map(|command| (command, elsewhere)));
        }
        let coprocesses = fields.coprocesses.iter().flat_map(|given| &given.value);
        commands.extend(coprocesses.filter_map(|one| one.command.as_ref()).map(|command| (command, false)));
        let metrics = fields.telemetry.iter().flat_map(|given| &given.value.metrics);
        let metrics = metrics.flat_map(|given| &given.value).filter_map(|metric| metric.exec.as_ref());
        commands.extend(metrics.map(|command| (command, false)));
        commands.retain(|(command, elsewhere)| !elsewhere || Path::new(&command.value.program).is_absolute());
        // Each program is searched once.
        let programs: BTreeSet<&str> =
            commands.iter().map(|(command, _)| command.value.program.as_str()).collect();
        let states: BTreeMap<&str, ProgramState> =
            programs.into_iter().map(|program| (program, self.host.program(program))).collect();
        for (command, _) in commands {
            let program = &command.value.program;
            let Some(state) = states.get(program.as_str()).copied() else { continue };
            let (message, help) = match (state, program.contains('/')) {
                (ProgramState::Runnable, _) => continue,
                (ProgramState::Missing, true) => {
                    (format!("program `{program}` not found"), "the job will fail unless it exists by then")
                }
                (ProgramState::Missing, false) => (
                    format!("program `{program}` not found in PATH"),
                    "the job will fail unless it exists by then",
                ),
                (ProgramState::NotExecutable, _) => (
                    format!("`{program}` is not executable"),
                    "make it executable, for example with chmod +x",
                ),
            };
            self.report(Severity::Warning, command.place, message, help);
        }
    }
}
