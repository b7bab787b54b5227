//! Watches: the catalog's answers and the events they cause (E6).

use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::WatchIx;
use crate::input::Instance;
use crate::state::journal::Origin;
use crate::state::supervisor::{Core, Phase};

impl Core {
    /// Handles an answer of the catalog. A change of the set sends `changed`; a change from none to some, or back, also
    /// sends `healthy` or `unhealthy`.
    pub(crate) fn instances(&mut self, watch: WatchIx, mut instances: Vec<Instance>) {
        if self.phase != Phase::Running {
            return;
        }
        let Some(state) = self.plan_state.watches.get_mut(watch.index()) else { return };
        // The catalog may answer in any order.
        instances.sort();
        instances.dedup();
        let was_healthy = state.is_healthy();
        let changed = state.known_instances() != instances;
        state.instances = Some(instances);
        let is_healthy = state.is_healthy();
        // Jobs that wait for this watch may have become unreachable (W10).
        self.plan_state.reachability_dirty = true;
        if changed {
            self.send(Origin::Watch(watch), Code::Changed, None);
        }
        if is_healthy != was_healthy {
            let code = if is_healthy { Code::Healthy } else { Code::Unhealthy };
            self.send(Origin::Watch(watch), code, None);
        }
    }
}
