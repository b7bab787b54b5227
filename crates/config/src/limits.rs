//! The bounds within which a configuration is read, so that no text can hang or exhaust the supervisor.

/// The largest file that is read, in bytes.
pub const SOURCE_BYTES: usize = 8 * 1024 * 1024;
/// The largest text a template may render to, in bytes.
pub const RENDERED_BYTES: usize = 16 * 1024 * 1024;
/// How many steps a template may take: visits of a node, turns of a `range`, elements made by `loop`.
pub const TEMPLATE_STEPS: u64 = 10_000_000;
/// How deep parentheses and blocks may nest.
pub const TEMPLATE_DEPTH: usize = 200;
/// How deep `{{ template }}` calls may nest. They cost no stack, only memory.
pub const TEMPLATE_CALLS: usize = 10_000;
/// How many operands and blocks a template may hold.
pub const TEMPLATE_NODES: usize = 1_000_000;
/// How many bytes one rendering may make in all: texts, lists, and notes about where output came from.
pub const TEMPLATE_BYTES: u64 = 96 * 1024 * 1024;
/// How many instructions a regular expression may compile to.
pub const REGEX_PROGRAM: usize = 50_000;
/// How deep lists and objects may nest.
pub const JSON_DEPTH: usize = 500;
/// How many errors of syntax are collected before reading stops, and how many problems are shown.
pub const ERRORS: usize = 100;
/// How many problems of meaning are collected.
pub const PROBLEMS: usize = 1000;
