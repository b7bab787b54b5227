//! The open connections of a server, and which of them is closed when a new one needs its slot.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use containerpilot_process::sys;

use super::socket::ConnectionActivity;

/// The open connections, oldest first.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Vec<(RawFd, Arc<ConnectionActivity>)>>);

impl Connections {
    fn all(&self) -> MutexGuard<'_, Vec<(RawFd, Arc<ConnectionActivity>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. What is returned must be dropped before the descriptor is closed.
    pub(super) fn add(self: &Arc<Self>, fd: RawFd) -> Registered {
        let activity = Arc::new(ConnectionActivity::new());
        self.all().push((fd, Arc::clone(&activity)));
        Registered { connections: Arc::clone(self), activity }
    }

    /// Closes the connection that can be missed most. None is closed if all of them have a request that is being
    /// handled.
    pub(super) fn evict_one(&self) {
        let mut all = self.all();
        let candidates = all.iter().enumerate().filter_map(|(place, (fd, activity))| {
            let (value, since) = activity.value(|| sys::has_unread_bytes(*fd))?;
            Some((value, since, place))
        });
        if let Some((.., place)) = candidates.min() {
            let (_, evicted) = all.remove(place);
            evicted.evict();
        }
    }
}

/// Removes its connection when dropped.
pub(super) struct Registered {
    connections: Arc<Connections>,
    activity: Arc<ConnectionActivity>,
}

impl Registered {
    pub(super) fn activity(&self) -> &Arc<ConnectionActivity> {
        &self.activity
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.connections.all().retain(|(_, other)| !Arc::ptr_eq(other, &self.activity));
    }
}
