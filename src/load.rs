//! From the command line, files and the machine to a plan.

pub(crate) mod files;
pub(crate) mod host;
pub(crate) mod source;
