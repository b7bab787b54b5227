//! The heart of containerpilot: what is decided, and nothing of how it is done.
//!
//! This crate has no clock, no file, no process and no environment (it is `no_std`), so everything in it
//! is a function of its arguments and can be tried in any order, at any time, as often as one likes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agenda;
pub mod chance;
pub mod command;
mod core;
pub mod difference;
mod dispatch;
pub mod effect;
pub mod environment;
pub mod event;
pub mod explain;
mod health;
mod hope;
pub mod ids;
pub mod input;
mod job;
pub mod journal;
pub mod order;
pub mod plan;
pub mod reconcile;
pub mod reload;
mod run;
mod solo;
pub mod status;
mod stop;
pub mod table;
pub mod time;
mod timers;
mod turn;
mod watch;
mod web;

pub use crate::command::{Answer, Command, RequestId};
pub use crate::core::{Core, Phase};
pub use crate::effect::Effect;
pub use crate::input::Input;
pub use crate::job::{Aim, Ending, State};
pub use crate::status::JobStatus;
pub use crate::time::Time;
