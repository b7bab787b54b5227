//! Linux capabilities by name (P13).

use containerpilot_core::plan::Capabilities;

use super::list::items;
use crate::decode::{DecodeContext, Shape, ValueType};
use crate::json5::Node;
use crate::suggest;

/// A list of capabilities, each with or without `CAP_`, in any case.
pub struct CapabilityNames;

impl ValueType for CapabilityNames {
    type Value = Capabilities;
    const SHAPE: Shape = Shape::Capabilities;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Capabilities> {
        let mut all = Some(Capabilities::default());
        for item in items(cx, key, node)? {
            let text = cx.text(key, item)?;
            let upper = text.to_ascii_uppercase();
            let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
            match Capabilities::NAMES.iter().position(|known| *known == name) {
                Some(number) => all.iter_mut().for_each(|all| all.insert(number)),
                None => {
                    let help = match suggest::nearest(name, Capabilities::NAMES) {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => "see capabilities(7) for the names".to_owned(),
                    };
                    cx.error(item.span, format!("unknown capability `{text}` in `{key}`"), help);
                    all = None;
                }
            }
        }
        all
    }
}
