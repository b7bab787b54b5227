//! `render` and `-template`: print the rendered template of a configuration.

use std::io::Write;
use std::path::Path;

use super::flags::Arguments;
use super::report::style;
use super::{Failure, config_path, write_stdout};
use crate::load::{find_files, host};

pub(super) fn render(args: &Arguments) -> Result<(), Failure> {
    let inputs = find_files::read(config_path(args).as_deref())?;
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let rendered = containerpilot_config::render(inputs, &host::environment()).map_err(|report| {
        let _ = write!(std::io::stderr(), "{}", report.display(style(true)));
        Failure::Reported
    })?;
    if let [only] = rendered.as_slice() {
        return write(args.text("out"), only);
    }
    let mut text = Vec::new();
    for (name, rendered) in names.iter().zip(rendered) {
        text.extend_from_slice(format!("// {name}\n").as_bytes());
        text.extend_from_slice(&rendered);
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    write(args.text("out"), &text)
}

/// `-template`. Like 3.8, it ignores other arguments.
pub(super) fn template(args: &Arguments) -> Result<(), Failure> {
    render(&args.flags_only())
}

/// Writes to the file `out`, or to standard output if it is empty or `-`.
pub(super) fn write(out: &str, text: &[u8]) -> Result<(), Failure> {
    if !matches!(out, "" | "-") {
        return std::fs::write(Path::new(out), text)
            .map_err(|error| Failure::Failed(format!("cannot write {out}: {error}")));
    }
    write_stdout(text).map(drop)
}
