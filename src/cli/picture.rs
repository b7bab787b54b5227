//! What every picture needs of its texts.

/// A text in XML. What XML cannot hold at all is shown as a sign for it.
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

/// How many letters wide a text is; those of East Asia count twice.
pub(super) fn letters(text: &str) -> i64 {
    text.chars().map(|c| if u32::from(c) >= 0x1100 { 2 } else { 1 }).sum()
}

/// A text of so many letters at most, with a sign for what was left out.
pub(super) fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}
