//! Finds the supervisor's control socket: that of `--socket`, or that of the configuration.

use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::named_config;
use containerpilot_config::{ControlSocket, control_socket};
use containerpilot_load::find_files::{self, ReadError};
use containerpilot_load::host;

pub(super) fn find(args: &Arguments) -> ControlSocket {
    let named = args.text("socket");
    if !named.is_empty() {
        return ControlSocket { path: named.to_owned(), certain: true };
    }
    let config = named_config(args);
    // The default path is a default of the configuration, and defined only there.
    let nothing =
        || vec![containerpilot_config::ConfigFile { name: "<nothing>".to_owned(), text: b"{}".to_vec() }];
    match find_files::read(config.as_deref()) {
        Err(ReadError::NotFound) => control_socket(nothing(), &host::environment()),
        Ok(inputs) if inputs.is_empty() => control_socket(nothing(), &host::environment()),
        Ok(inputs) => control_socket(inputs, &host::environment()),
        Err(_) => ControlSocket { certain: false, ..control_socket(nothing(), &host::environment()) },
    }
}
