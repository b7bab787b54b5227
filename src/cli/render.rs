//! `render` and `-template`: print the rendered template of a configuration.

use std::io::Write;
use std::path::Path;

use containerpilot_config::diagnostics::Style;

use super::flags::Arguments;
use super::terminal::stderr_has_colour;
use super::{Failure, config_path};
use crate::load::find_files;
use crate::load::host;

pub(super) fn render(args: &Arguments) -> Result<(), Failure> {
    let inputs =
        find_files::read(config_path(args).as_deref()).map_err(|error| Failure::Failed(error.to_string()))?;
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let rendered = containerpilot_config::render(inputs, &host::environment()).map_err(|report| {
        let style = Style { faults_are_errors: true, colour: stderr_has_colour() };
        let _ = write!(std::io::stderr(), "{}", report.display(style));
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
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
