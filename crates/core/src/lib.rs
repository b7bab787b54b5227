//! The heart of containerpilot: what is decided, and nothing of how it is done.
//!
//! This crate has no clock, no file, no process and no environment (it is `no_std`), so everything in it
//! is a function of its arguments and can be tried in any order, at any time, as often as one likes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod effect;
pub mod event;
pub mod ids;
pub mod input;
pub mod journal;
pub mod plan;
pub mod time;

use alloc::vec::Vec;

pub use effect::Effect;
pub use input::Input;
pub use time::Time;

/// The core of a supervisor: a plan, and what has become of it.
#[derive(Debug)]
pub struct Core {
    plan: plan::Plan,
}

impl Core {
    /// A supervisor that has not begun.
    #[must_use]
    pub fn new(plan: plan::Plan) -> Self {
        Self { plan }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &plan::Plan {
        &self.plan
    }

    /// Takes note of something that has happened, and says what is to be done about it.
    pub fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        let _ = (now, input, effects);
    }

    /// When the core must be called again even if nothing happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        None
    }
}
