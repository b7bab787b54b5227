//! The output of the log (L1).

use containerpilot_core::plan::Output;

use crate::decode::{DecodeContext, Shape, ValueType};
use crate::json5::Node;

/// The output of the log: `stdout`, `stderr` or a file (L1).
pub struct LogOutput;

impl ValueType for LogOutput {
    type Value = Output;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Output> {
        let text = cx.text(key, node)?;
        match text.to_ascii_lowercase().as_str() {
            "" => None,
            "stdout" => Some(Output::Stdout),
            "stderr" => Some(Output::Stderr),
            _ => Some(Output::File(text)),
        }
    }
}
