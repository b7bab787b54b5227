//! The state of everything at one moment, copied from the core.

use std::collections::BTreeMap;

use containerpilot_core::report::graph::{Graph, Scope};
use containerpilot_core::report::redact::Disclosure;
use containerpilot_core::report::status::Overview;
use containerpilot_core::state::journal::Origin;
use containerpilot_core::{Core, inserted};
use containerpilot_process::orphans::RunProcesses;

use crate::catalog::CatalogReport;
use crate::clock::WallClock;

/// The state of everything at one moment.
#[derive(Debug)]
pub struct Snapshot {
    pub overview: Overview,
    /// The names of removed jobs and watches that events still refer to, by index.
    pub removed: BTreeMap<u32, String>,
    pub catalog: CatalogReport,
    /// Where the processes of its runs are; nowhere for a replay.
    pub processes: RunProcesses,
    pub clock: WallClock,
}

impl Snapshot {
    pub fn new(core: &Core, clock: WallClock, catalog: CatalogReport, processes: RunProcesses) -> Self {
        let overview = core.overview();
        let causes =
            overview.jobs.iter().filter_map(|job| job.cause.as_ref()?.event().map(|event| event.origin));
        let removed = causes.filter_map(|origin| match origin {
            Origin::Removed(place) => Some((place, core.origin_name(origin))),
            Origin::Global
            | Origin::Job(_)
            | Origin::Watch(_)
            | Origin::File(_)
            | Origin::Signal(_)
            | Origin::Lock(_) => None,
        });
        Self { removed: inserted(removed), overview, catalog, processes, clock }
    }
}

/// The state of everything, without the texts that are not disclosed.
#[derive(Debug)]
pub struct PublicSnapshot {
    pub snapshot: Snapshot,
    pub graph: Graph,
    /// The jobs whose names contain a command line, and their names in this snapshot. Events have the former.
    pub renamed: BTreeMap<String, String>,
}

impl PublicSnapshot {
    pub fn new(
        core: &Core,
        shown: Disclosure,
        clock: WallClock,
        catalog: CatalogReport,
        processes: RunProcesses,
    ) -> Self {
        let redacted = core.redacted(shown);
        let renamed = if shown.commands { Vec::new() } else { core.command_names() };
        Self {
            snapshot: Snapshot::new(&redacted, clock, catalog, processes),
            graph: Graph::of(redacted.plan(), Scope::Running),
            renamed: inserted(renamed),
        }
    }
}
