//! The one way to wait for something that cannot say when it has come: to look, with a deadline.

use std::time::{Duration, Instant};

/// Waits until something holds; says what did not if it takes longer than that.
pub(crate) fn until_within(patience: Duration, what: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !holds() {
        assert!(Instant::now() < deadline, "{}", what());
        std::thread::sleep(Duration::from_millis(5));
    }
}
