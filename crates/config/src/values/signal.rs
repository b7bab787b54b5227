//! Signals, by name or by number.

use containerpilot_core::plan::Signal;

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::Node;

/// A signal by name, with or without `SIG`, or by number.
pub struct SignalName;

impl ValueType for SignalName {
    type Value = Signal;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Signal> {
        let text = cx.text(key, node)?;
        let signal = Signal::from_name(&text);
        if signal.is_none() {
            cx.error(
                node.span,
                format!("`{key}` must be a signal, not {}", found(node)),
                "for example: \"SIGINT\"",
            );
        }
        signal
    }
}
