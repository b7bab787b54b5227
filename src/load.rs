//! Loads a plan from the command line, configuration files and properties of the host.

pub(crate) mod files;
pub(crate) mod host;
pub(crate) mod source;
