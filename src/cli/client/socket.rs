//! Finds the supervisor's control socket: that of `--socket`, or that of the configuration.

use std::io::Write;
use std::path::PathBuf;

use super::super::flags::Arguments;
use super::super::report::style;
use super::super::{Failure, named_config};
use crate::load::{find_files, host};

pub(super) fn path(args: &Arguments) -> Result<PathBuf, Failure> {
    let named = args.text("socket");
    if !named.is_empty() {
        return Ok(PathBuf::from(named));
    }
    let config = named_config(args);
    if config.is_none() && !find_files::default_exists() {
        // The default path is a default of the configuration, and defined only there.
        return find(Vec::new());
    }
    let hint = "so the control socket is unknown; name it with --socket";
    let inputs = find_files::read(config.as_deref())
        .map_err(|message| Failure::Failed(format!("{message}, {hint}")))?;
    find(inputs)
}

fn find(mut inputs: Vec<containerpilot_config::Input>) -> Result<PathBuf, Failure> {
    if inputs.is_empty() {
        inputs.push(containerpilot_config::Input { name: "<nothing>".to_owned(), text: b"{}".to_vec() });
    }
    containerpilot_config::control_socket(inputs, &host::environment()).map(PathBuf::from).map_err(|report| {
        let _ = writeln!(std::io::stderr(), "{}", report.display(style(true)));
        Failure::Failed(
            "the configuration has errors, so the control socket is unknown; name it with --socket"
                .to_owned(),
        )
    })
}
