//! Fuzz target: any bytes as JSON5. No panic, no hang; every span is inside the text.

use containerpilot_config::json5::{Node, Value, parse};

fn inside(node: &Node, length: usize) {
    assert!(node.span.start <= node.span.end && node.span.end as usize <= length);
    match &node.value {
        Value::List(items) => items.iter().for_each(|item| inside(item, length)),
        Value::Object(members) => members.iter().for_each(|member| {
            assert!(member.key_span.end as usize <= length);
            inside(&member.value, length);
        }),
        _ => {}
    }
}

pub(crate) fn run(text: &[u8]) {
    let parsed = parse(text);
    if let Some(root) = &parsed.root {
        inside(root, text.len());
    }
    assert!(parsed.root.is_some() || !parsed.errors.is_empty());
    for error in &parsed.errors {
        assert!(error.span.end as usize <= text.len() && !error.message.is_empty());
    }
}
