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

pub use error::{Stage, TemplateError};

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
/// Returns all errors in the order of the source. They are all of one [`Stage`], because a source with parse errors is not
/// rendered.
pub fn render(source: &[u8], environment: &Environment) -> Result<Rendered, Vec<TemplateError>> {
    let program = parse::parse(source)?;
    let (text, map) = exec::render(source, &program, environment)?;
    Ok(Rendered { text, map })
}
