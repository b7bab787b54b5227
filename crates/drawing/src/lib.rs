//! Plans as graphs, and simulations as timelines: as text, JSON, SVG, dot and Mermaid. Touches no system.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "an internal crate: a comment that repeats a name says nothing")]

pub mod graph;
pub mod simulation;
mod svg_text;
