//! YAML files: values with their lines, with limits on nesting and on what aliases expand to.
//!
//! A scalar keeps the text that is written in the file, because programs read it differently: `0644`, `yes` and `1m30s`
//! are a number, a flag and a duration for one of them, and text for another. [`YamlNode::kind`] is the type that YAML
//! itself defines.

mod node;
mod reader;

pub use node::{Kind, Map, YamlEntry, YamlNode};
pub use reader::{parse, read};

#[cfg(test)]
mod tests;
