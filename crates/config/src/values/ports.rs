//! The port of a job, or a range from which each replica takes one (W20).

use containerpilot_core::plan::PortRange;

use super::number::{Port, parse_whole};
use crate::decode::{DecodeContext, Shape, ValueType};
use crate::json5::{Node, Value};

/// A port, or a range such as `"8000-8009"`; 0 means none.
pub struct Ports;

impl ValueType for Ports {
    type Value = PortRange;
    const SHAPE: Shape = Shape::Ports;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<PortRange> {
        if let Value::String(text) = &node.value
            && let Some((first, last)) = text.split_once('-').filter(|(first, _)| !first.is_empty())
        {
            let port = |text: &str| {
                let number = parse_whole(text.trim()).and_then(|port| u16::try_from(port).ok());
                number.filter(|port| *port != 0)
            };
            let range = port(first).zip(port(last)).filter(|(first, last)| first <= last);
            if range.is_none() {
                let message = format!("`{text}` is not a range of ports");
                cx.error(node.span, message, "write the first and the last port: \"8000-8009\"");
            }
            return range.map(|(first, last)| PortRange { first, last });
        }
        let port = u16::try_from(Port::read(cx, key, node)?).ok()?;
        Some(PortRange { first: port, last: port })
    }
}
