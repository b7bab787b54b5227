//! The open connections of a server, what each is doing, and which of them is closed when a new one needs its slot.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use containerpilot_process::sys;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What is lost if a connection is closed, least first. Each of these waits for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionValue {
    /// The peer has not sent a request yet, or only a part of its head.
    Silent,
    /// The peer has sent nothing since its last request.
    KeptAlive,
    /// The peer does not send the rest of a body, or does not read a response.
    Stalled,
    /// The next request has arrived behind the last one.
    Pipelined,
}

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

/// What a connection is doing, shared by its socket, its requests and its task.
#[derive(Debug)]
pub(super) struct ConnectionActivity {
    state: Mutex<State>,
    evicted: Notify,
}

#[derive(Debug)]
struct State {
    requests: usize,
    /// Whether the rest of a request's body has not arrived yet.
    reading_body: bool,
    write_blocked: bool,
    write_deadline: Option<Instant>,
    /// Whether a request was completed.
    has_served: bool,
    /// When the connection was accepted, or when its last request began or ended.
    since: Instant,
}

impl ConnectionActivity {
    fn new() -> Self {
        let state = State {
            requests: 0,
            reading_body: false,
            write_blocked: false,
            write_deadline: None,
            has_served: false,
            since: Instant::now(),
        };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request as in progress until the guard is dropped. Its body has not been read yet.
    pub(super) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        let mut state = self.state();
        state.requests += 1;
        (state.reading_body, state.since) = (true, Instant::now());
        drop(state);
        RequestGuard(Arc::clone(self))
    }

    /// The whole request has arrived, or is refused.
    pub(super) fn body_done(&self) {
        self.state().reading_body = false;
    }

    /// The value of a connection that waits for its peer, and since when it does; `None` if a request is being handled
    /// or has arrived.
    fn value(&self, has_unread_bytes: impl FnOnce() -> bool) -> Option<(ConnectionValue, Instant)> {
        let state = self.state();
        let value = match *state {
            State { write_blocked: true, .. } | State { requests: 1.., reading_body: true, .. } => {
                ConnectionValue::Stalled
            }
            State { requests: 1.., .. } => return None,
            State { has_served, .. } => match (has_served, has_unread_bytes()) {
                (false, false) => ConnectionValue::Silent,
                (false, true) => return None,
                (true, false) => ConnectionValue::KeptAlive,
                (true, true) => ConnectionValue::Pipelined,
            },
        };
        Some((value, state.since))
    }

    /// Closes the connection.
    fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Waits until the connection has to be closed for another one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Whether a request is in progress or part of a response is not written yet.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.state();
        state.requests > 0 || state.write_blocked
    }

    /// Notes whether a write waits for the peer. Returns when the current response must be written completely.
    pub(super) fn set_write_blocked(&self, blocked: bool) -> Option<Instant> {
        let mut state = self.state();
        state.write_blocked = blocked;
        state.write_deadline
    }

    /// When the current response must be written completely; `None` for a stream.
    pub(super) fn set_write_deadline(&self, deadline: Option<Instant>) {
        self.state().write_deadline = deadline;
    }
}

/// A request in progress: from its head until its response's body has been passed to the socket.
#[derive(Debug)]
pub(super) struct RequestGuard(Arc<ConnectionActivity>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        (state.has_served, state.since) = (true, Instant::now());
    }
}
