//! Consul's key/value store: paths, and the entries below a prefix (D13).

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use containerpilot_api::percent_encoded;
use containerpilot_core::answer::{Entries, MAX_VALUE_BYTES};
use containerpilot_core::input::{Answer, WatchResult};
use serde::Deserialize;

/// What an entry costs beside its key and value.
const ENTRY_BYTES: usize = 64;

/// The path of a key. Slashes separate its parts.
pub(super) fn path(key: &str) -> String {
    let parts: Vec<String> = key.split('/').map(percent_encoded).collect();
    format!("/v1/kv/{}", parts.join("/"))
}

/// The value of a key.
pub(super) fn value(body: &[u8]) -> WatchResult {
    if body.len() > MAX_VALUE_BYTES {
        return Err("the value has more than 1 MiB; store it in several keys".to_owned());
    }
    Ok(Answer::Value(Arc::from(body)))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    key: String,
    /// In base64; `None` if it is empty.
    value: Option<String>,
}

/// The keys below a prefix, without it. The error never shows a value.
pub(super) fn entries(body: &[u8], prefix: &str) -> WatchResult {
    let list: Vec<Entry> =
        serde_json::from_slice(body).map_err(|_| "the response is not a list of keys".to_owned())?;
    let mut entries = Entries::new();
    let mut bytes = 0;
    for Entry { key, value } in list {
        let value = BASE64.decode(value.unwrap_or_default()).map_err(|_| "a value is not in base64")?;
        let name = key.strip_prefix(prefix).unwrap_or(&key);
        bytes += name.len() + value.len() + ENTRY_BYTES;
        if bytes > MAX_VALUE_BYTES {
            return Err("the keys and values have more than 1 MiB; watch a longer prefix".to_owned());
        }
        // The prefix itself can be a key, as a folder.
        if !name.is_empty() {
            entries.insert(name.to_owned(), value.into());
        }
    }
    Ok(Answer::Entries(entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d13_keys_are_encoded_part_by_part() {
        assert_eq!(path("app/my key?/x"), "/v1/kv/app/my%20key%3F/x");
    }

    #[test]
    fn d13_entries_of_a_prefix_are_read_up_to_a_limit() {
        let body = br#"[{"Key": "app/", "Value": null}, {"Key": "app/a", "Value": "aGVsbG8="}, {"Key": "app/b/c", "Value": "AP8/+w=="}]"#;
        let expected: [(&str, &[u8]); 2] = [("a", b"hello"), ("b/c", &[0, 255, 63, 251])];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.into()));
        assert_eq!(entries(body, "app/"), Ok(Answer::Entries(expected.into())));
        assert_eq!(entries(b"[]", "x"), Ok(Answer::Entries(Entries::new())));
        for (wrong, message) in [
            ("{", "the response is not a list of keys"),
            (r#"[{"Key": "a", "Value": "hunter2 "}]"#, "a value is not in base64"),
        ] {
            assert_eq!(entries(wrong.as_bytes(), ""), Err(message.to_owned()));
        }
        let long = format!(r#"[{{"Key": "a", "Value": "{}"}}]"#, "AAAA".repeat(MAX_VALUE_BYTES / 3));
        assert!(entries(long.as_bytes(), "").unwrap_err().contains("more than 1 MiB"));
        assert!(value(&vec![0; MAX_VALUE_BYTES]).is_ok());
        assert!(value(&vec![0; MAX_VALUE_BYTES + 1]).unwrap_err().contains("more than 1 MiB"));
    }
}
