//! The numbers of runs, checks, renderings, events and generations.

use serde::{Deserialize, Serialize};

use crate::ids::{CheckRunId, RenderId, RunId};

/// The last ids that were given out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LastIds {
    run: u64,
    check: u64,
    render: u64,
    pub(crate) event: u64,
    /// Generations of all jobs.
    pub(crate) generation: u64,
    /// The last fencing number of a local lock.
    pub(crate) fencing: u64,
}

impl LastIds {
    pub(crate) fn new_run(&mut self) -> RunId {
        self.run += 1;
        RunId(self.run)
    }

    /// The run of a program beside the jobs: a check, a drain program or the test of a file.
    pub(crate) fn new_program(&mut self) -> CheckRunId {
        self.check += 1;
        CheckRunId(self.check)
    }

    pub(crate) fn new_render(&mut self) -> RenderId {
        self.render += 1;
        RenderId(self.render)
    }
}
