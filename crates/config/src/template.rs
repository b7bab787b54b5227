//! Renders the text of a configuration as a template (C2), with the environment as its data.
//!
//! # Theory of operation
//!
//! The language is that of Go 1.19's text/template with the functions of ContainerPilot 3.8 and a missing variable
//! read as the empty text. Everything works on bytes, as Go's strings do.
//!
//! 1. `parse` cuts the source into text and `{{ actions }}`. The words of an action come from `lex`,
//!    its pipeline from `pipe`, the meaning of its constants from `number` and `quote`. Blocks that are open are on a
//!    stack, so after a mistake reading goes on behind the action's `}}` and finds the next mistakes too (C5). All
//!    words about mistakes are in `hint`.
//! 2. `exec` walks the tree and writes text and [`SourceMap`] together: literal text is a range of the source that is
//!    copied, whatever an action prints is attributed to the whole action. `eval` computes pipelines; `funcs` is the
//!    table of functions, done in `compare`, `lists`, `format` (Go's fmt) and `regex` with its machine `pike`. An
//!    action that fails prints nothing and is remembered; the walk goes on, and if anything was remembered there is
//!    no text.
//! 3. `budget` counts steps and bytes, so that no text can hang or exhaust the supervisor; see [`crate::limits`].
//!    Only parentheses use the machine's stack, and their depth is bounded.

mod budget;
mod compare;
mod eval;
mod exec;
mod float;
mod format;
mod funcs;
mod hint;
mod letters;
mod lex;
mod lists;
mod number;
mod parse;
mod pike;
mod pipe;
mod quote;
mod regex;
mod scope;
mod tree;
mod value;

use crate::span::{SourceMap, Span};

/// The variables of the environment: names and values as the bytes the system gives.
pub type Environment = std::collections::BTreeMap<Vec<u8>, Vec<u8>>;

/// A rendered text.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The text itself.
    pub text: Vec<u8>,
    /// Where each of its bytes came from.
    pub map: SourceMap,
}

/// When a mistake showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// While the source was read: it is no template.
    Parse,
    /// While the template was rendered with this environment.
    Exec,
}

/// A mistake in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// When it showed.
    pub stage: Stage,
    /// The part of the source it is about.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Renders `source` with the variables of `env`.
///
/// # Errors
///
/// All mistakes that were found, in the order of the source. Mistakes of the two stages are never mixed: a source
/// that is no template is not rendered.
pub fn render(source: &[u8], env: &Environment) -> Result<Rendered, Vec<TemplateError>> {
    let program = parse::parse(source)?;
    exec::render(source, &program, env)
}
