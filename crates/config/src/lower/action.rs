//! What a run of a job does: `exec` or `do` (P8, W19).

use containerpilot_core::inserted;
use containerpilot_core::plan::{Action, Exec, Target};

use super::Lower;
use crate::decode::Spanned;
use crate::diagnostics::Place;
use crate::fields::{ActionFields, JobFields};
use crate::values::{Maintenance, value_of};

/// The keys of a job with `do`. All others concern a process, which it does not have.
pub(super) const KEYS_BESIDE_DO: [&str; 13] = [
    "name",
    "do",
    "when",
    "groups",
    "restarts",
    "restartBackoff",
    "restartOn",
    "startLimit",
    "stopTimeout",
    "stopAfter",
    "requires",
    "onFailure",
    "onSuccess",
];

impl Lower<'_> {
    /// What a run of a job does.
    pub(super) fn exec(&mut self, fields: &JobFields) -> Option<Exec> {
        let Some(given) = &fields.action else {
            return Some(value_of(&fields.exec).map_or(Exec::Nothing, Exec::Program));
        };
        self.only_keys_of_action(fields)?;
        self.action(given).map(Exec::Action)
    }

    fn only_keys_of_action(&mut self, fields: &JobFields) -> Option<()> {
        let others = fields.written().into_iter().filter(|(key, _)| !KEYS_BESIDE_DO.contains(key));
        let mut allowed = Some(());
        for (key, place) in others {
            let (message, help) = if key == "exec" {
                ("a job has either `exec` or `do`".to_owned(), "remove one of them, or write two jobs")
            } else {
                let message = format!("`{key}` cannot be combined with `do`, which has no process");
                (message, "remove it, or run a program with `exec`")
            };
            self.error(place, message, help);
            allowed = None;
        }
        let backoff = fields.restart_backoff.as_ref();
        let delay =
            backoff.and_then(|given| given.value.as_ref()?.initial.as_ref()).map(|initial| initial.value);
        if let Some(given) =
            backoff.filter(|_| delay.is_none_or(|delay| delay < crate::limits::SHORTEST_TIME))
        {
            let message = "with `do`, `restartBackoff.initial` must be at least 1ms";
            self.error(
                given.place,
                message,
                "an action takes no time: without a delay it would repeat endlessly",
            );
            allowed = None;
        }
        allowed
    }

    fn action(&mut self, given: &Spanned<ActionFields>) -> Option<Action> {
        let fields = &given.value;
        let written: Vec<(&str, Place)> = fields.written();
        let mut actions = written.iter().filter(|(key, _)| *key != "to");
        match (actions.next(), actions.next()) {
            (Some(_), None) => {}
            (Some((first, _)), Some((second, place))) => {
                let message = format!("`do` has both `{first}` and `{second}`, but only one is allowed");
                self.error(*place, message, "write two jobs");
                return None;
            }
            // An error in it is the reason why it is missing.
            (None, _) if self.has_error_in(given.place) => return None,
            (None, _) => {
                let message = "`do` has no action";
                self.error(given.place, message, "for example: do: { signal: \"HUP\", to: \"nginx\" }");
                return None;
            }
        }
        let target = |given: &Option<Spanned<String>>| value_of(given).map(|name| Target::named(&name));
        if let Some(signal) = value_of(&fields.signal) {
            let Some(to) = target(&fields.to) else {
                if !self.is_reported(given.place, "to") {
                    let place = fields.signal.as_ref().map_or(given.place, |given| given.key);
                    self.error(place, "`signal` needs `to`", "name the job that gets it: to: \"nginx\"");
                }
                return None;
            };
            return Some(Action::Signal(signal, to));
        }
        if let Some(to) = &fields.to {
            self.error(to.key, "`to` belongs beside `signal`", "remove it");
            return None;
        }
        if let Some(reload) = fields.reload.as_ref().filter(|reload| !reload.value) {
            self.error(reload.place, "`reload` must be true", "remove the job if it does nothing");
            return None;
        }
        None.or(target(&fields.start).map(Action::Start))
            .or(target(&fields.stop).map(Action::Stop))
            .or(target(&fields.restart).map(Action::Restart))
            .or(fields.reload.as_ref().map(|_| Action::Reload))
            .or(value_of(&fields.maintenance).map(|mode| Action::Maintenance(mode == Maintenance::Enter)))
            .or(value_of(&fields.shutdown).and_then(|code| u8::try_from(code).ok()).map(Action::Shutdown))
            .or(value_of(&fields.set_env).map(|variables| Action::SetEnv(inserted(variables))))
    }

    /// The groups of a job (W22).
    pub(super) fn groups(&mut self, fields: &JobFields) -> Option<Vec<String>> {
        let Some(given) = &fields.groups else { return Some(Vec::new()) };
        let mut groups: Vec<String> = Vec::new();
        for group in &given.value {
            if group.is_empty()
                || group.contains(|letter: char| {
                    letter.is_whitespace() || letter.is_control() || matches!(letter, '@' | '/' | ',')
                })
            {
                let message = format!("`{group}` cannot be the name of a group");
                let help = match group.strip_prefix('@') {
                    Some(name) if !name.is_empty() => {
                        format!("write it without the `@`: groups: [\"{name}\"]")
                    }
                    _ => "a name has no spaces, `@`, `/` or commas".to_owned(),
                };
                self.error(given.place, message, &help);
                return None;
            }
            if !groups.contains(group) {
                groups.push(group.clone());
            }
        }
        Some(groups)
    }
}
