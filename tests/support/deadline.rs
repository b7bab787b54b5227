//! Polls a condition with a deadline, for conditions that send no notification.

use std::time::{Duration, Instant};

/// Returns when `holds` returns true. Panics after `limit`; `what` describes the condition that did not become true.
pub(crate) fn wait_until_within(limit: Duration, what: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out after {limit:?} waiting until {}", what());
        std::thread::sleep(Duration::from_millis(5));
    }
}
