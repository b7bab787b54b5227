//! Text becomes a plan: templates, JSON5, decoding and the checks of meaning, with every mistake shown
//! where it stands in the user's own text.
//!
//! The way of a file, one module a step: [`template`] renders it, [`json5`] parses what was rendered,
//! [`fields`] (the one table, read by [`decode`] and [`values`]) makes typed fields of it, `merge` lays several
//! files over one another, [`legacy`] does the same for files of ContainerPilot 2, `lower` makes the plan, `validate` looks for what can never work. [`diagnostics`] traces
//! whatever was found back to the text the user wrote. [`load()`] is the whole way.
//!
//! Everything here is a function of its arguments: no file, clock, process or environment is touched. What must
//! be known about the machine is asked of a [`host::Host`].
#![forbid(unsafe_code)]

pub mod command;
pub mod decode;
pub mod diagnostics;
pub mod duration;
pub mod fields;
pub mod host;
pub mod interfaces;
pub mod json;
pub mod json5;
pub mod legacy;
pub mod limits;
pub mod load;
mod lower;
mod merge;
pub mod metrics;
pub mod migrate;
mod names;
pub mod reference;
pub mod schema;
mod validate;
pub mod values;

pub use containerpilot_template as template;
pub use containerpilot_template::{span, suggest};
pub use load::{
    Input, Loaded, Options, PlainFile, control_socket, load, load_with_program, read_plain_file, render,
    version,
};
