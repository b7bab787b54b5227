//! JSON for programs.

/// Indented JSON with a newline at the end.
pub fn pretty_json(value: &impl serde::Serialize) -> String {
    // Serializing to a string fails only for maps with keys that are not strings; no output has such a map.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
