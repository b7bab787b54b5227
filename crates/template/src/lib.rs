//! Go's text/template with source maps: renders a source with environment variables as its data (C2).
//!
//! # Theory of operation
//!
//! The language is that of Go 1.19's text/template with the functions of ContainerPilot 3.8. A missing variable is the empty
//! string. Strings are bytes, as in Go.
//!
//! 1. `parse` splits the source into text and `{{ actions }}` and builds a tree. Open blocks are kept on a stack. After an
//!    error, parsing continues behind the action's `}}`, so that one run finds all errors (C5).
//! 2. `exec` walks the tree and writes the text together with its [`SourceMap`]: literal text is copied from a range of the
//!    source, and the output of an action is attributed to the whole action. An action that fails prints nothing; its error
//!    is recorded and rendering continues.
//! 3. `budget` limits steps and memory, so that no source can hang or exhaust the supervisor; see [`limits`]. Only
//!    parentheses use the call stack, and their depth is limited.
#![forbid(unsafe_code)]

mod budget;
pub mod data;
mod error;
mod exec;
mod functions;
pub mod limits;
mod parse;
mod scope;
pub mod span;
pub mod suggest;
mod tree;
mod unicode;
mod utf8;
mod value;

use span::SourceMap;

pub use functions::regex::Pattern;

pub use error::{TemplateError, TemplateStage};

/// Environment variables: names and values as bytes.
pub type Environment = std::collections::BTreeMap<Vec<u8>, Vec<u8>>;

/// A rendered text.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The text.
    pub text: Vec<u8>,
    /// The origin of each byte of the text.
    pub map: SourceMap,
}

/// Renders `source` with the variables of `environment`.
///
/// # Errors
///
/// Returns all errors in the order of the source. They are all of one [`TemplateStage`], because a source with parse errors is not
/// rendered.
pub fn render(source: &[u8], environment: &Environment) -> Result<Rendered, Vec<TemplateError>> {
    let program = parse::parse(source, Dialect::Configuration)?;
    let (text, map) = exec::render(source, &program, environment, None)?;
    Ok(Rendered { text, map })
}

/// The line and the column of the start of a range, from 1. A column is a character.
#[must_use]
pub fn line_and_column(source: &[u8], span: span::Span) -> (usize, usize) {
    let before = source.get(..span.start as usize).unwrap_or(source);
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    (line, utf8::count(before.get(start..).unwrap_or_default()) + 1)
}

/// What a template is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A configuration.
    Configuration,
    /// A rendered file, which can also look up what watches have found (D15).
    File,
}

/// What the template of a rendered file looks up, in the order of the source (D15).
///
/// # Errors
///
/// Returns all errors of the source.
pub fn uses(source: &[u8]) -> Result<Vec<data::Use>, Vec<TemplateError>> {
    data::uses(&parse::parse(source, Dialect::File)?)
}

/// Renders the template of a file (D15).
///
/// # Errors
///
/// Returns all errors in the order of the source.
pub fn render_file(
    source: &[u8],
    environment: &Environment,
    data: &dyn data::LookUp,
) -> Result<Vec<u8>, Vec<TemplateError>> {
    let program = parse::parse(source, Dialect::File)?;
    exec::render(source, &program, environment, Some(data)).map(|(text, _)| text)
}
