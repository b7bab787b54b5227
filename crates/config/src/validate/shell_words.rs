//! Commands that were probably written for a shell (C7). Programs are executed directly (P8).
//!
//! Quotes and operators in a command that is one string are reported in `values/command.rs`, where it is split.

use containerpilot_core::plan::{Command, PORT_VARIABLE, REPLICA_VARIABLE, Word};

use crate::diagnostics::Severity;
use crate::fields::ConfigFields;
use crate::validate::Checker;
use crate::values::{listed_words, variables_in};

const SHELLS: [&str; 6] = ["sh", "ash", "bash", "dash", "ksh", "zsh"];
/// Other programs that may give `$NAME` a meaning.
const KNOWS_DOLLAR: [&str; 10] =
    ["awk", "busybox", "env", "envsubst", "gawk", "mawk", "perl", "php", "ssh", "su"];

impl Checker<'_> {
    /// Warns about scripts that are split into words, and about variables that no shell replaces.
    pub(super) fn shell_words(&mut self, fields: &ConfigFields) {
        for used in self.commands(fields) {
            let command = used.command;
            // The decoder has warned about quotes and operators.
            if self.problems.iter().any(|problem| problem.place == Some(command.place)) {
                continue;
            }
            let (message, help) = if let Some((shell, script)) = split_script(&command.value) {
                (
                    format!(
                        "`{shell}` runs only `{script}`: the words after it are not a part of the script"
                    ),
                    "write a list: [\"sh\", \"-c\", \"the whole script\"]",
                )
            } else if let Some((names, many)) = shell_variables(&command.value, used.replicated) {
                let are = if many {
                    "are passed as they are: no shell replaces them"
                } else {
                    "is passed as it is: no shell replaces it"
                };
                (
                    format!("{names} {are}"),
                    "write {{ .NAME }} for an environment variable, or run a shell: [\"sh\", \"-c\", \"…\"]",
                )
            } else {
                continue;
            };
            self.report(Severity::Warning, command.place, message, help);
        }
    }
}

/// The last part of a path.
fn base_name(word: &Word) -> String {
    let text = word.text();
    text.rsplit('/').next().unwrap_or_default().to_owned()
}

/// A shell and its script, if the script is a single word and is followed by others that it does not use: `sh -c echo hello`.
fn split_script(command: &Command) -> Option<(String, String)> {
    let [option, script, _, ..] = command.arguments.as_slice() else { return None };
    let (shell, option, script) = (base_name(&command.program), option.text(), script.text());
    let runs_script = SHELLS.contains(&shell.as_str())
        && option.starts_with('-')
        && !option.starts_with("--")
        && option.ends_with('c');
    let is_word = !script.contains(|letter: char| letter.is_whitespace() || letter == '$');
    (runs_script && is_word).then(|| (shell, script.into_owned()))
}

/// All variables of a command that no shell replaces, and whether they are several.
fn shell_variables(command: &Command, replicated: bool) -> Option<(String, bool)> {
    let words = || std::iter::once(&command.program).chain(&command.arguments);
    let understands = |name: String| SHELLS.contains(&name.as_str()) || KNOWS_DOLLAR.contains(&name.as_str());
    if words().any(|word| understands(base_name(word))) {
        return None;
    }
    let texts: Vec<_> = words().map(Word::text).collect();
    let is_replaced = |name: &String| {
        let name = name.trim_start_matches('$');
        replicated && (name == REPLICA_VARIABLE || name == PORT_VARIABLE)
    };
    let variables = texts.iter().flat_map(|text| variables_in(text)).filter(|name| !is_replaced(name));
    let (names, many) = listed_words(variables);
    (!names.is_empty()).then_some((names, many))
}
