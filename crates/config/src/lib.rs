//! From text to a plan: templates, JSON5, decoding and validation, with every problem shown at its place in the user's text.
//!
//! A file passes these modules: [`template`] renders it, [`json5`] parses it, [`decode`] and [`values`] decode it according to
//! the table of [`fields`], `merge` combines several files, `lower` builds the plan, and `validate` finds what can never work.
//! [`file_version`] tells versions apart; [`legacy`] translates files of ContainerPilot 2. [`diagnostics`] maps all
//! problems to the source. [`load()`] runs all of it.
//!
//! Everything here is a function of its arguments: it reads no file, clock, process or environment. A [`host::Host`] answers
//! questions about the machine.
#![forbid(unsafe_code)]

mod broken_string;
pub mod columns;
pub mod decode;
mod default_names;
pub mod diagnostics;
pub mod dotenv;
pub mod duration;
pub mod fields;
pub mod file_version;
pub mod host;
pub mod interfaces;
pub mod json5;
pub mod legacy;
pub mod limits;
pub mod load;
mod lower;
mod merge;
pub mod metrics;
pub mod migrate;
pub mod places;
pub mod reference;
pub mod schema;
mod service_name;
mod validate;
pub mod values;
mod zones;

pub use containerpilot_template as template;
pub use containerpilot_template::{span, suggest};
pub use load::{
    ConfigFile, ControlSocket, LoadedConfig, Options, PlainFile, control_socket, load, load_with_program,
    read_plain_file, render, version,
};
