//! Decoding: from JSON5 nodes to typed values, with the weak typing of ContainerPilot 3.8 (C3).
//!
//! A [`ValueType`] decodes one value. The table of fields ([`crate::fields`]) names a value type for each key, and the
//! [`section!`](crate::section) macro turns a part of the table into a struct with a decoder.

mod context;
mod describe;
mod field_table;
mod section;
mod unknown_key;

pub use context::{DecodeContext, Found, Rows, Skip};
pub use describe::{alternatives, found, shortened, weak_text};
pub use field_table::{DefaultValue, Field, SectionInfo, Shape};
pub use section::{Section, Spanned, ValueType, fill, inherit};
pub use unknown_key::Roots;
