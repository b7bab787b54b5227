//! Simulates a configuration in virtual time, without starting a process.
//!
//! [`read`] parses a user's file into a [`scenario::Scenario`], with the parser and the error messages of configurations.
//! [`runner`] runs the real core in a virtual [`world`]: programs, checks and the catalog behave as the scenario says, or
//! by [`defaults`]. The result is a [`timeline`]; [`expect`] compares it with the expectations of the scenario, and
//! [`explore`] tries many worlds with [`fault`]s. [`target_host`] stands for the host that a configuration is for.
//!
//! [`recorded`] makes a scenario of what the world of a recording did.
//!
//! The [`world`] knows nothing of scenarios: a [`world::script::Script`] decides how everything in it behaves. The random
//! schedules of `containerpilot-oracle` use the same world.
//!
//! Everything is a function of its arguments: a simulation has the same result everywhere.
#![forbid(unsafe_code)]

mod behavior;
pub mod defaults;
pub mod expect;
pub mod explore;
pub mod fault;
pub mod fields;
mod locks;
pub mod moment;
pub mod read;
pub mod recorded;
pub mod reference;
pub mod runner;
pub mod scenario;
pub mod shrink;
pub mod target_host;
pub mod timeline;
pub mod timeline_writer;
pub mod world;
pub mod write;
