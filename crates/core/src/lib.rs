//! The heart of containerpilot: what is decided, and nothing of how it is done.
//!
//! This crate has no clock, no file, no process and no environment (it is `no_std`), so everything in it
//! is a function of its arguments and can be tried in any order, at any time, as often as one likes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod core;
pub mod effect;
pub mod environment;
pub mod event;
mod health;
pub mod ids;
pub mod input;
mod job;
pub mod journal;
pub mod plan;
mod run;
mod stop;
pub mod time;
mod timers;
mod watch;

pub use crate::core::{Core, JobStatus, Phase};
pub use crate::effect::Effect;
pub use crate::input::Input;
pub use crate::job::{Aim, State};
pub use crate::time::Time;
