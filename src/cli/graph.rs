//! `graph`: the web of jobs, events and watches as a picture, or as the text of one.

mod dot;
mod layout;
mod mermaid;
mod svg;
#[cfg(test)]
mod tests;
mod web;

use self::web::Web;
use super::flags::Arguments;
use super::{Failure, check, config_path, render};
use crate::load::files;

pub(super) fn graph(args: &Arguments) -> Result<(), Failure> {
    let draw = match args.text("format") {
        "" | "mermaid" => mermaid::text,
        "dot" => dot::text,
        "svg" => svg::text,
        other => {
            return Err(Failure::Usage(format!(
                "there is no format `{other}`; there are `mermaid`, `dot` and `svg`"
            )));
        }
    };
    let read =
        files::read(config_path(args).as_deref()).map_err(|error| Failure::Failed(error.to_string()))?;
    let plan = check::loads(read, "there is nothing to draw")?;
    render::write(args.text("out"), draw(&Web::of(&plan)).as_bytes())
}
