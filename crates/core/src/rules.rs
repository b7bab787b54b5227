//! The rules: what follows from an input, an event or a deadline.

pub mod command;
mod dispatch;
pub mod environment;
pub(crate) mod health;
mod reachability;
pub mod reload;
pub(crate) mod run;
mod single_program;
mod step;
mod stop;
pub(crate) mod watch;
