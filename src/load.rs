//! Loads a plan from the command line, configuration files and properties of the host.

pub(crate) mod at_start;
pub(crate) mod command_line;
pub(crate) mod find_files;
pub(crate) mod host;
pub(crate) mod looks;
pub(crate) mod on_disk;
pub(crate) mod target_host;
