//! Startup: the first event (E4).

use crate::event::Code;
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::supervisor::Core;
use crate::supervisor::plan_state::Parts;

impl Core {
    /// E4: sends `startup`, once.
    pub(crate) fn startup(&mut self) {
        if self.phase != Phase::Starting {
            return;
        }
        self.phase = Phase::Running;
        for job in self.all_jobs() {
            self.advertise_initial_status(job);
            self.set_start_timeout(job);
            self.enqueue_recheck(job);
        }
        self.tell(|Parts { files, watches, .. }, context| files.begin(watches, context));
        self.send(Origin::Global, Code::Startup);
        self.explain_why_it_runs();
        if self.maintenance {
            self.send(Origin::Global, Code::EnterMaintenance);
        }
        self.tell(|parts, context| parts.locks.acquire_local(context));
    }
}
