//! The jobs, events and watches of a plan as a graph.

pub mod dot;
pub mod mermaid;
pub mod model;
pub mod svg;
#[cfg(test)]
mod tests;
