//! The control socket.

use containerpilot_core::plan::Control;
use containerpilot_core::variables::SOCKET_VARIABLE;

use super::Lower;
use crate::decode::Spanned;
use crate::diagnostics::{Problem, Severity};
use crate::fields::ConfigFields;
use crate::values::value_of;

/// The longest path of a unix socket, in bytes.
const MAX_SOCKET_PATH: usize = 107;

impl Lower<'_> {
    pub(super) fn control(&mut self, fields: &ConfigFields) -> Option<Control> {
        let section = &fields.control.as_ref()?.value;
        let group = self.account(section.group.as_ref(), "group", |host, name| host.has_group(name));
        let socket = section.socket.as_ref().and_then(|given| self.socket(given));
        let mode = value_of(&section.mode)?;
        if let Some(group) = &section.group
            && mode & 0o020 == 0
        {
            let message =
                "`mode` does not give `group` write access to the control socket, so `group` has no effect";
            self.report(Severity::Warning, group.key, message, "add mode: \"0660\"");
        }
        let (socket, required) = socket?;
        Some(Control { socket, required, mode, group: group? })
    }

    /// The path of the control socket, and whether it was set explicitly.
    fn socket(&mut self, given: &Spanned<String>) -> Option<(String, bool)> {
        let variable = self.host.variable(SOCKET_VARIABLE).filter(|_| !given.written);
        let from_variable = variable.is_some();
        let socket = variable.unwrap_or_else(|| given.value.clone());
        let length = socket.len();
        if length <= MAX_SOCKET_PATH {
            // The variable of a nested supervisor names the socket of the outer one, unless it was changed on the way.
            return Some((socket, given.written || from_variable && !self.host.is_nested()));
        }
        let message =
            format!("the path of the control socket has {length} bytes; the maximum is {MAX_SOCKET_PATH}");
        let help = "use a shorter path: the operating system limits the path of a socket";
        if from_variable {
            let message = format!("{SOCKET_VARIABLE}: {message}");
            self.problems.push(Problem::unlocated(Severity::Error, message).help(help));
        } else {
            self.error(given.place, message, help);
        }
        None
    }
}
