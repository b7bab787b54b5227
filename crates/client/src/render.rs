//! `render` and `-template`: print the rendered template of a configuration.

use std::io::Write;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::config_path;
use containerpilot_command_line::output;
use containerpilot_command_line::report::style;
use containerpilot_load::{find_files, host};

pub(super) fn render(args: &Arguments) -> Result<(), Failure> {
    let inputs = find_files::read(config_path(args).as_deref())?;
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let rendered = containerpilot_config::render(inputs, &host::environment()).map_err(|report| {
        let _ = write!(std::io::stderr(), "{}", report.display(style(true)));
        Failure::Reported
    })?;
    if let [only] = rendered.as_slice() {
        return output::write(args.text("out"), only);
    }
    let mut text = Vec::new();
    for (name, rendered) in names.iter().zip(rendered) {
        text.extend_from_slice(format!("// {name}\n").as_bytes());
        text.extend_from_slice(&rendered);
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    output::write(args.text("out"), &text)
}

/// `-template`. Like 3.8, it ignores other arguments.
pub(super) fn template(args: &Arguments) -> Result<(), Failure> {
    render(&args.flags_only())
}
