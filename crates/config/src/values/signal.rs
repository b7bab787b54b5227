//! Signals, by name or by number.

use containerpilot_core::plan::Signal;

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::Node;
use crate::suggest;

/// A signal by name, with or without `SIG`, or by number.
pub struct SignalName;

impl ValueType for SignalName {
    type Value = Signal;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Signal> {
        let text = cx.text(key, node)?;
        let signal = Signal::from_name(&text);
        if signal.is_none() {
            let help = match nearest_signal(&text) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "for example: \"SIGINT\"".to_owned(),
            };
            cx.error(node.span, format!("`{key}` must be a signal, not {}", found(node)), help);
        }
        signal
    }
}

/// The signal that a misspelled name probably means.
#[must_use]
pub fn nearest_signal(text: &str) -> Option<Signal> {
    // Without the prefix, which would make every short name similar to every other.
    let short = |name: String| name.strip_prefix("SIG").map(str::to_owned).unwrap_or(name);
    let names: Vec<String> = (1..=31).map(|number| short(Signal(number).to_string())).collect();
    let name = short(text.to_ascii_uppercase());
    Signal::from_name(suggest::nearest(&name, names.iter().map(String::as_str))?)
}
