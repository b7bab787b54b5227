//! Secrets: which values may be one, and how they are kept out of messages (L5).

use super::Problem;

/// Returns true if a name or an expression suggests a secret.
fn looks_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["token", "secret", "passw", "credential", "private", "apikey", "api_key"]
        .iter()
        .any(|w| text.contains(w))
}

/// Removes the output of a template action from a problem if the action suggests a secret.
pub(super) fn remove(problem: &mut Problem, action: &str, rendered: &[u8]) {
    if looks_secret(action) {
        let value = String::from_utf8_lossy(rendered);
        problem.message = without(&problem.message, &value);
        problem.help = problem.help.take().map(|help| without(&help, &value));
    }
}

/// Removes a value from a message. Messages quote a part of a value, or contain the whole value.
fn without(text: &str, value: &str) -> String {
    const HIDDEN: &str = "…";
    let value = value.trim_matches(['"', '\'']);
    // A shorter value may be part of any word. It is still removed in quotes below.
    let text = if value.len() > 3 { text.replace(value, HIDDEN) } else { text.to_owned() };
    let mut out = String::with_capacity(text.len());
    for (nth, part) in text.split_inclusive(['"', '`']).enumerate() {
        let inner = part.trim_end_matches(['"', '`']);
        let quoted = nth % 2 == 1 && !inner.is_empty();
        if quoted && value.contains(inner.trim_end_matches('…')) {
            out.push_str(HIDDEN);
            out.push_str(part.get(inner.len()..).unwrap_or_default());
        } else {
            out.push_str(part);
        }
    }
    out
}

/// The rendered text for display, unless it may be a secret.
pub(super) fn shown(source: &[u8], rendered: &[u8]) -> String {
    if looks_secret(&String::from_utf8_lossy(source)) {
        return "(hidden: it may be a secret)".to_owned();
    }
    if rendered.is_empty() {
        return "(empty)".to_owned();
    }
    let text = String::from_utf8_lossy(rendered);
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{short}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l5_no_part_of_a_secret_remains_in_a_message() {
        assert_eq!(
            without("`a` must be b, not the string \"hunter2\"", "\"hunter2\""),
            "`a` must be b, not the string \"…\""
        );
        assert_eq!(without("\"nter\" is not a unit", "\"3hunter2\""), "\"…\" is not a unit");
        assert_eq!(without("the number 12345 is too large", "12345"), "the number … is too large");
        assert_eq!(
            without("`port` must be 1, not the string \"x\"", "x"),
            "`port` must be 1, not the string \"…\""
        );
    }

    #[test]
    fn l5_a_secret_is_not_shown() {
        assert_eq!(shown(b"{{ .CONSUL_TOKEN }}", b"abc"), "(hidden: it may be a secret)");
    }
}
