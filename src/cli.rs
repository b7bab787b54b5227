//! The command line.

pub(crate) mod goflags;
