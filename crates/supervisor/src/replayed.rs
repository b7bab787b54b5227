//! What the control socket would have answered at some time of a recording (B4). Only the core is recorded: nothing is
//! known about Consul, the output of jobs and the memory of processes.

use std::time::SystemTime;

use containerpilot_api::SubjectKind;
use containerpilot_core::plan::Catalog;
use containerpilot_core::{Core, Time};
use containerpilot_process::orphans::RunProcesses;

use crate::control::render;
use crate::messages::query::{
    CatalogReport, ConsulReport, Explained, LookupError, Snapshot, Subject, WallClock,
};
use crate::runtime::queries;

/// The response of `GET /v3/status`. `started_at` is the time of day at the zero of the core's time.
#[must_use]
pub fn status(core: &Core, started_at: SystemTime) -> String {
    let consul = match core.plan().catalog {
        Catalog::Embedded => None,
        Catalog::Consul(_) => Some(ConsulReport { up: None, trouble: None }),
    };
    let catalog = CatalogReport { consul, services: Vec::new() };
    render::status(&Snapshot::new(core, WallClock(started_at), catalog, RunProcesses::default()), None, None)
}

/// The response of `GET /v3/KIND/NAME/explain`, or why there is none.
pub fn explanation(
    core: &Core,
    started_at: SystemTime,
    now: Time,
    kind: SubjectKind,
    name: &str,
) -> Result<String, String> {
    let subject = Subject { kind, name: name.to_owned() };
    let subject = queries::explain(core, None, &subject, None).map_err(|error| match error {
        LookupError::NotFound(hint) => format!("there is no {} `{name}`{hint}", kind.word()),
        LookupError::Ambiguous(count) => {
            format!("{count} jobs have the name `{name}`: `{name}:2` is the second of them")
        }
        LookupError::Replicas(count) => format!("`{name}` has {count} replicas: name one of them"),
        LookupError::NoAnswer => format!("nothing is known about {} `{name}`", kind.word()),
    })?;
    Ok(render::explanation(Explained { subject, now, clock: WallClock(started_at) }, Vec::new()))
}
