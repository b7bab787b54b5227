//! Text in the SVG output of `graph` and `simulate`.

/// Escapes a text for XML. Characters that XML does not allow become U+FFFD.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The width of a text in characters; East Asian characters count twice.
pub(super) fn width(text: &str) -> i64 {
    text.chars().map(|c| if u32::from(c) >= 0x1100 { 2 } else { 1 }).sum()
}
