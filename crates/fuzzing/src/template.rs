//! Fuzz target: any bytes as a template. No panic, no hang; the source map stays inside the source.

use containerpilot_config::span::ByteOrigin;
use containerpilot_config::template::{Environment, render};

pub(crate) fn run(source: &[u8]) {
    let environment: Environment = [
        (b"A".to_vec(), b"one,two,three".to_vec()),
        (b"B".to_vec(), b"42".to_vec()),
        (b"C".to_vec(), b"\xff\xfe".to_vec()),
        (b"EMPTY".to_vec(), Vec::new()),
    ]
    .into();
    match render(source, &environment) {
        Ok(rendered) => {
            for offset in 0..rendered.text.len() {
                let end = match rendered.map.origin(offset as u32) {
                    ByteOrigin::Copied(at) => {
                        assert_eq!(
                            source.get(at as usize),
                            rendered.text.get(offset),
                            "a copied byte differs from its source"
                        );
                        at + 1
                    }
                    ByteOrigin::Produced(span) => span.end,
                };
                assert!(end as usize <= source.len());
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(error.span.end as usize <= source.len() && !error.message.is_empty());
            }
        }
    }
}
