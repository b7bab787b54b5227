//! The core of containerpilot: every decision, and nothing about how it is carried out.
//!
//! This crate is `no_std`. It has no clock, file, process or environment, so every result is a function of the
//! arguments: (state, input, time) → effects. A test can try any order of inputs in virtual time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod answer;
pub mod catalog;
mod checkpoint;
pub mod collections;
mod context;
pub mod effect;
pub mod event;
pub mod exit_status;
mod facts;
mod fields_in_checkpoints;
pub mod files;
mod health;
pub mod ids;
pub mod input;
pub mod lock_report;
pub mod locks;
pub mod log_entry;
pub mod notice;
mod outcome;
pub mod plan;
mod recorded;
pub mod redaction;
pub mod report;
pub mod request;
pub mod rng;
mod rolling_restart;
pub mod rules;
pub mod secrets;
pub mod signal;
pub mod state;
mod supervisor;
pub mod time;
pub mod variables;
pub mod watches;

pub use crate::collections::{SortedMap, grouped, inserted, sort_by};
pub use crate::effect::Effect;
pub use crate::input::Input;
pub use crate::notice::Notice;
pub use crate::outcome::{Outcome, SkipReason};
pub use crate::report::status::JobStatus;
pub use crate::request::{Reply, Request, RequestId};
pub use crate::state::job::{State, StopReason, StopStage};
pub use crate::state::phase::Phase;
pub use crate::state::run::Readiness;
pub use crate::supervisor::Core;
pub use crate::time::Time;
