//! Units of systemd: `.service`, `.timer` and `.target` files with their drop-ins.
//!
//! A service becomes a job of the same name. Its other commands (`ExecStartPre`, `ExecStop`, …) become jobs beside it, a timer the
//! `when` of its service, and a target a group.

mod calendar;
mod converter;
mod exec;
mod instances;
mod jobs;
mod keys;
mod process;
mod restart;
mod service;
mod service_type;
mod triggers;
mod unconverted_lines;
mod unit;
mod unit_graph;
mod verify;
mod words;

use crate::document::Document;
use crate::error::ImportError;
use crate::files::Files;
use instances::instantiate;
use unit::{Loaded, load};
use unit_graph::UnitGraph;

/// Reads the units.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut loaded = load(paths, files, document)?;
    instantiate(&mut loaded, files, document)?;
    loaded.list_other_drop_ins(files, document)?;
    let Loaded { units, order, named, links, .. } = loaded;
    let mut graph = UnitGraph { units, order, links, ..UnitGraph::default() };
    graph.mask(document);
    graph.verify(document)?;
    graph.name_jobs(document);
    graph.relate(document);
    graph.triggers(document);
    graph.started(&named);
    graph.order_simple(document);
    graph.emit(document);
    graph.mention_all_lines(document);
    document.sort_by_line();
    if document.jobs.is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ImportError::Empty {
            path,
            message: "there is no `.service` with an `ExecStart` here".into(),
        });
    }
    Ok(())
}
