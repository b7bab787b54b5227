//! What happened in a simulation.

pub mod explore;
pub mod json;
pub mod svg;
pub mod timeline;
