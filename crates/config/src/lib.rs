//! Text becomes a plan: templates, JSON5, decoding and the checks of meaning, with every mistake shown
//! where it stands in the user's own text.
//!
//! The way of a file, one module a step: [`template`] renders it, [`json5`] parses what was rendered,
//! [`fields`] (the one table, read by [`decode`] and [`kinds`]) makes typed fields of it, `merge` lays several
//! files over one another, [`legacy`] does the same for files of ContainerPilot 2, `lower` makes the plan, `meaning` looks for what can never work. [`diagnose`] traces
//! whatever was found back to the text the user wrote. [`load()`] is the whole way.
//!
//! Everything here is a function of its arguments: no file, clock, process or environment is touched. What must
//! be known about the machine is asked of a [`host::Host`].
#![forbid(unsafe_code)]

pub mod command;
pub mod decode;
pub mod diagnose;
pub mod duration;
pub mod fields;
pub mod host;
pub mod interfaces;
pub mod json;
pub mod json5;
pub mod kinds;
pub mod legacy;
pub mod limits;
pub mod load;
mod lower;
mod meaning;
mod merge;
pub mod metrics;
pub mod reference;
mod runes;
pub mod schema;
pub mod span;
pub mod suggest;
pub mod template;

pub use load::{
    Input, Loaded, Options, Plain, control_socket, load, load_with_program, read_plain, render, version,
};
