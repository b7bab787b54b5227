//! Bounds on a configuration, so that no text can hang the supervisor or exhaust its memory. The bounds on templates are in
//! [`crate::template::limits`].

/// The largest file, in bytes.
pub const SOURCE_BYTES: usize = 8 * 1024 * 1024;
/// The largest file of environment variables, in bytes.
pub const ENV_FILE_BYTES: usize = 1024 * 1024;
/// The largest template of a rendered file, in bytes.
pub const TEMPLATE_BYTES: usize = 1024 * 1024;
/// Nesting of lists and objects.
pub const JSON_DEPTH: usize = 500;
/// Syntax errors that are collected before parsing stops, and problems that are shown.
pub const ERRORS: usize = 100;
/// Problems that are collected.
pub const PROBLEMS: usize = 1000;
/// The shortest interval and the shortest timeout, in nanoseconds.
pub const SHORTEST_TIME: i64 = 1_000_000;
/// The most headers of an HTTP check.
pub const HEADERS: usize = 64;
/// The most bytes in all headers of an HTTP check.
pub const HEADER_BYTES: usize = 8 * 1024;
