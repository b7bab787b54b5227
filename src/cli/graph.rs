//! `graph`: the jobs, events and watches of a configuration as a graph.

mod dot;
mod layout;
mod mermaid;
mod model;
mod svg;
#[cfg(test)]
mod tests;

use self::model::Graph;
use super::flags::Arguments;
use super::{Failure, check, config_path, render};
use crate::load::find_files;

pub(super) fn graph(args: &Arguments) -> Result<(), Failure> {
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
    let plan = check::load_or_fail(read, "nothing was drawn")?;
    render::write(args.text("out"), draw(&Graph::of(&plan)).as_bytes())
}
