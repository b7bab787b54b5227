//! Helpers for tests.

use containerpilot_test_support::until;

use crate::reaper::{Exited, Reaper};

/// Collects children until `count` of the supervisor's own have exited.
pub(crate) fn collect(reaper: &mut Reaper, count: usize) -> Vec<Exited> {
    let mut exited = Vec::new();
    until(|| {
        reaper.collect(&mut exited);
        exited.len() >= count
    });
    exited
}
