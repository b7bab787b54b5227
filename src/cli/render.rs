//! `render` and `-template`: a configuration after its template has been rendered, and nothing else.

use std::io::Write;
use std::path::Path;

use containerpilot_config::diagnose::Style;

use super::flags::Arguments;
use super::{Failure, colour, config_path};
use crate::load::files;
use crate::load::host;

pub(super) fn render(args: &Arguments) -> Result<(), Failure> {
    let inputs =
        files::read(config_path(args).as_deref()).map_err(|error| Failure::Failed(error.to_string()))?;
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let rendered = containerpilot_config::render(inputs, &host::environment()).map_err(|report| {
        let style = Style { faults_are_errors: true, colour: colour() };
        let _ = write!(std::io::stderr(), "{}", report.display(style));
        Failure::Failed(String::new())
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

/// `-template`, whose other arguments 3.8 ignores.
pub(super) fn template(args: &Arguments) -> Result<(), Failure> {
    render(&args.flags_only())
}

/// Writes to a file, or to standard output.
pub(super) fn write(out: &str, text: &[u8]) -> Result<(), Failure> {
    if !matches!(out, "" | "-") {
        return std::fs::write(Path::new(out), text)
            .map_err(|error| Failure::Failed(format!("{out} cannot be written: {error}")));
    }
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
