//! Bounds on a template, so that no text can hang the supervisor or exhaust its memory.

/// The largest rendered text, in bytes.
pub const RENDERED_BYTES: usize = 16 * 1024 * 1024;
/// Steps of one rendering: nodes visited, iterations of `range`, elements created by `loop`.
pub const STEPS: u64 = 10_000_000;
/// Nesting of parentheses and blocks.
pub const DEPTH: usize = 200;
/// Nesting of `{{ template }}` calls. They use memory only, no stack.
pub const CALLS: usize = 10_000;
/// Operands and blocks in one template.
pub const NODES: usize = 1_000_000;
/// Bytes allocated by one rendering: strings, lists and source map entries.
pub const BYTES: u64 = 96 * 1024 * 1024;
/// Instructions of a compiled regular expression.
pub const REGEX_PROGRAM: usize = 50_000;
/// Instructions of a [`Pattern`](crate::Pattern), which is matched often.
pub const PATTERN_PROGRAM: usize = 1_000;
/// Errors that are collected before parsing or rendering stops.
pub const ERRORS: usize = 100;
