//! Limits of a search.

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most moves.
    pub depth: usize,
    /// The most states of one plan. The search ends with the depth at which there are more.
    pub states: usize,
    /// The most inputs from outside, besides the first SIGTERM and the SIGINT that may follow it.
    pub outside: u8,
    /// The most faults: failed starts, orphaned process groups, and moments between two timers.
    pub faults: u8,
}
