//! What is reported about a lock.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::ids::LockIx;
use crate::locks::Locks;
use crate::plan::Plan;
use crate::time::Time;

/// Everything known about a lock (D14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOverview {
    /// The lock.
    pub lock: LockIx,
    /// Its name.
    pub name: String,
    /// The key in Consul; `None` for a local lock.
    pub key: Option<String>,
    /// The fencing number, while this supervisor has it.
    pub fencing: Option<u64>,
    /// When it was acquired or lost.
    pub since: Option<Time>,
    /// When this supervisor gives it up, unless Consul confirms it before.
    pub gives_up_at: Option<Time>,
    /// Why it is not held.
    pub waiting: Option<String>,
}

impl Locks {
    pub(crate) fn overviews(&self, plan: &Plan) -> Vec<LockOverview> {
        let is_shared = plan.has_shared_locks();
        let planned = plan.locks.iter().zip(&self.states).enumerate();
        planned
            .map(|(nth, (lock, state))| LockOverview {
                lock: LockIx::at(nth),
                name: lock.name.clone(),
                key: is_shared.then(|| lock.key.clone()),
                fencing: state.fencing(),
                since: state.since,
                gives_up_at: state.timer.filter(|_| state.is_held()).map(|timer| timer.at()),
                waiting: (!state.is_held()).then(|| state.wait.words()),
            })
            .collect()
    }

    /// What a required lock is doing, as a clause after "which".
    pub(crate) fn clause(&self, lock: LockIx) -> String {
        match self.states.get(lock.index()) {
            None => "does not exist".into(),
            Some(state) if state.is_held() => "is held".into(),
            Some(state) => format!("is not held: {}", state.wait.words()),
        }
    }
}
