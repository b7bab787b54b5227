//! Which socket the supervisor listens on: the one that is named, or that of the configuration.

use std::io::Write;
use std::path::PathBuf;

use super::super::flags::Arguments;
use super::super::{Failure, check, named_config};
use crate::load::{files, host};

/// The path of the control socket.
pub(super) fn path(args: &Arguments) -> Result<PathBuf, Failure> {
    let named = args.text("socket");
    if !named.is_empty() {
        return Ok(PathBuf::from(named));
    }
    let config = named_config(args);
    if config.is_none() && !files::default_exists() {
        // The usual place of the socket is a default of the configuration, and stands there only.
        return find(Vec::new());
    }
    let hint = "so its socket is not known; name it with --socket";
    let inputs =
        files::read(config.as_deref()).map_err(|message| Failure::Failed(format!("{message}, {hint}")))?;
    find(inputs)
}

fn find(mut inputs: Vec<containerpilot_config::Input>) -> Result<PathBuf, Failure> {
    if inputs.is_empty() {
        inputs.push(containerpilot_config::Input { name: "<nothing>".to_owned(), text: b"{}".to_vec() });
    }
    containerpilot_config::control_socket(inputs, &host::environment()).map(PathBuf::from).map_err(|report| {
        let _ = writeln!(std::io::stderr(), "{}", report.display(check::style(true)));
        Failure::Failed(
            "the configuration cannot be read, so its socket is not known; name it with --socket".to_owned(),
        )
    })
}
