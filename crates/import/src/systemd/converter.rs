//! A service while it is converted, and access to the keys of its unit.

use std::time::Duration;

use super::exec::{Command, unknown_specifier};
use super::unit::{Unit, UnitSetting};
use super::words::is_true;
use crate::document::{Document, Field, Job};
use crate::durations::Span;

/// What the conversion of a service has found out.
pub(crate) struct Converted {
    /// The jobs before it, in order.
    pub(crate) before: Vec<Job>,
    /// The fields of the service.
    pub(crate) fields: Vec<Field>,
    /// The jobs after it: hooks, and commands for `reload`.
    pub(crate) after: Vec<Job>,
    /// The names of jobs that must run when the container stops, after those that depend on the service.
    pub(crate) at_shutdown: Vec<String>,
    /// The time until SIGKILL.
    pub(crate) stop_time: Option<Duration>,
}

/// Converts one service.
pub(crate) struct Converter<'a> {
    pub(crate) unit: &'a Unit,
    /// The name of its job.
    pub(crate) name: &'a str,
    /// Whether it is the only service.
    pub(crate) alone: bool,
    pub(crate) document: &'a mut Document,
}

impl Converter<'_> {
    /// The variable with the process id of the job.
    pub(super) fn pid_variable(&self) -> String {
        let mut name = String::new();
        for c in self.name.chars() {
            match c.is_ascii_alphanumeric() {
                true => name.push(c.to_ascii_uppercase()),
                false if !name.ends_with('_') => name.push('_'),
                false => {}
            }
        }
        format!("CONTAINERPILOT_{name}_PID")
    }

    pub(super) fn get(&self, key: &str) -> Option<UnitSetting> {
        self.unit.last("Service", key).cloned()
    }

    /// A value with its specifiers replaced. One that cannot be is left out.
    pub(super) fn text(&mut self, entry: &UnitSetting) -> Option<String> {
        self.unit
            .expand(&entry.value)
            .map_err(|unknown| self.document.inexact(&entry.place, unknown_specifier(unknown)))
            .ok()
    }

    pub(super) fn span(&mut self, key: &str) -> Option<(UnitSetting, Span)> {
        let entry = self.get(key)?;
        match Span::parse(&entry.value) {
            Some(span) => Some((entry, span)),
            None => {
                self.document.inexact(&entry.place, "this is not a time span");
                None
            }
        }
    }

    pub(super) fn yes(&self, key: &str) -> bool {
        self.unit.last("Service", key).is_some_and(|entry| is_true(&entry.value))
    }

    pub(super) fn inexact_key(&mut self, key: &str, why: &str) {
        for entry in self.unit.all("Service", key) {
            self.document.inexact(&entry.place, why);
        }
    }

    pub(super) fn commands(&mut self, key: &str) -> Vec<Command> {
        let mut commands = Vec::new();
        for entry in self.unit.all("Service", key) {
            commands.extend(Command::parse(self.unit, entry, self.document));
        }
        commands
    }
}
