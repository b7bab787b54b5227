//! Fuzz target: any bytes as a file of `envFile`, and as the output of a process with secrets.

use std::sync::Arc;

use containerpilot_config::dotenv;
use containerpilot_log_format::{Patterns, Redactor};

pub(crate) fn run(bytes: &[u8]) {
    match dotenv::parse(bytes) {
        Ok(variables) => {
            for (name, value) in variables {
                assert!(!name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'));
            }
        }
        Err(error) => assert!((1..=1 + bytes.len()).contains(&error.line)),
    }
    // The first line is the secret, the rest is the output.
    let (secret, output) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    let Some(patterns) = Patterns::new([secret]).map(Arc::new) else { return };
    let whole = patterns.redact(output);
    let secret = secret.trim_ascii();
    // Asterisks around a hidden value can look like the secret.
    if !secret.contains(&b'*') {
        assert!(!whole.windows(secret.len()).any(|part| part == secret), "a secret is shown");
    }
    let mut redactor = Redactor::new(patterns);
    let mut parts: Vec<u8> = output.chunks(3).flat_map(|part| redactor.push(part)).collect();
    parts.extend(redactor.finish());
    assert!(parts == whole, "the parts differ from the whole");
}
