//! Watches: what the catalog says of a service, and what that means (E6).

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::WatchIx;
use crate::input::Instance;
use crate::plan::{Service, Watch};
use crate::state::journal::Origin;
use crate::state::supervisor::{Core, Phase};

impl Watch {
    /// Whether it is about this service, where no Consul decides that (D2).
    #[must_use]
    pub fn sees(&self, service: &Service) -> bool {
        service.name == self.name && self.tag.as_ref().is_none_or(|tag| service.tags.contains(tag))
    }
}

impl Service {
    /// What those who watch it see of it.
    #[must_use]
    pub fn instance(&self) -> Instance {
        Instance { id: self.id.clone(), address: self.address.to_string(), port: self.port }
    }
}

/// What is known of a watched service.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    /// The healthy instances, in order; none, and no answer yet, are the same to whoever waits.
    instances: Vec<Instance>,
    /// Whether the catalog has ever answered.
    answered: bool,
}

impl WatchState {
    /// The catalog's last answer, if there was one.
    pub(crate) fn answer(&self) -> Option<&[Instance]> {
        self.answered.then_some(self.instances.as_slice())
    }
}

impl Core {
    /// The catalog's answer: a change of the set is `changed`, and from none to some or back is more than that.
    #[inline(never)]
    pub(crate) fn instances(&mut self, watch: WatchIx, mut instances: Vec<Instance>) {
        instances.sort();
        instances.dedup();
        if self.phase != Phase::Running {
            return;
        }
        let Some(state) = self.watches.get_mut(watch.index()) else { return };
        state.answered = true;
        // Who waits for what this was the last of, waits in vain (W10).
        self.reachability_dirty = true;
        if state.instances == instances {
            return;
        }
        let (before, after) = (!state.instances.is_empty(), !instances.is_empty());
        state.instances = instances;
        self.send(Origin::Watch(watch), Code::Changed, None);
        match (before, after) {
            (false, true) => self.send(Origin::Watch(watch), Code::Healthy, None),
            (true, false) => self.send(Origin::Watch(watch), Code::Unhealthy, None),
            _ => {}
        }
    }
}
