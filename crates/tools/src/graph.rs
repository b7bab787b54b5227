//! `graph`: the jobs, events and watches of a configuration as a graph.

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::config_path;
use containerpilot_command_line::{loading, output};
use containerpilot_drawing::graph::model::Graph;
use containerpilot_drawing::graph::{dot, mermaid, svg};
use containerpilot_load::find_files;

pub(crate) fn graph(args: &Arguments) -> Result<(), Failure> {
    let draw = match args.text("format") {
        "" | "mermaid" => mermaid::text,
        "dot" => dot::text,
        "svg" => svg::text,
        other => {
            return Err(Failure::Usage(format!(
                "unknown format `{other}`: the formats are `mermaid`, `dot` and `svg`"
            )));
        }
    };
    let read = find_files::read(config_path(args).as_deref())?;
    let plan = loading::load_or_fail(read, "nothing was drawn")?;
    output::write(args.text("out"), draw(&Graph::of(&plan)).as_bytes())
}
