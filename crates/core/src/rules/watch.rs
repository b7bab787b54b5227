//! Watches: the catalog's answers and the events they cause (E6).

use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::WatchIx;
use crate::input::Instance;
use crate::state::journal::Origin;
use crate::state::supervisor::{Core, Phase};

impl Core {
    /// Handles an answer of the catalog. A change of the set sends `changed`, and then `healthy` if there are instances,
    /// `unhealthy` if there are none.
    pub(crate) fn instances(&mut self, watch: WatchIx, mut instances: Vec<Instance>) {
        if self.phase != Phase::Running {
            return;
        }
        let paused = self.is_paused();
        let Some(state) = self.plan_state.watches.get_mut(watch.index()) else { return };
        // The catalog may answer in any order.
        instances.sort();
        instances.dedup();
        if paused {
            return state.held = Some(instances);
        }
        state.held = None;
        let changed = state.known_instances() != instances;
        state.instances = Some(instances);
        let is_healthy = state.is_healthy();
        // Jobs that wait for this watch may have become unreachable (W10).
        self.plan_state.reachability_dirty = true;
        let state = &mut self.plan_state;
        if let Some(requirers) = state.graph.watch_requirers().get(watch.index()) {
            state.recheck.extend_from_slice(requirers);
        }
        if changed {
            self.send(Origin::Watch(watch), Code::Changed);
            self.send(Origin::Watch(watch), if is_healthy { Code::Healthy } else { Code::Unhealthy });
        }
    }

    /// C8: maintenance mode has ended, and watches compare their last answers with what they knew before.
    pub(crate) fn send_held_answers(&mut self) {
        for index in 0..self.plan_state.watches.len() {
            if let Some(instances) = self.plan_state.watches[index].held.take() {
                self.instances(WatchIx::at(index), instances);
            }
        }
    }
}
