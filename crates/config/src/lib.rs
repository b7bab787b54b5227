//! Text becomes a plan: templates, JSON5, decoding and the checks of meaning, with every mistake shown
//! where it stands in the user's own text.
#![forbid(unsafe_code)]

pub mod command;
pub mod diagnose;
pub mod duration;
pub mod interfaces;
pub mod json5;
pub mod limits;
pub mod span;
pub mod suggest;
pub mod template;
