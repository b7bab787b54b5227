//! Rendered files (D15): a template and what watches have found become a text, the text a temporary file beside the
//! target, and that the target. All of this may block, so it runs on threads of its own;
//! `crates/core/src/files.rs` decides when.

mod render;
mod write;

pub(crate) use render::{FileInputs, prepare};
pub(crate) use write::TempFile;
