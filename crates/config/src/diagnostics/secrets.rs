//! Secrets: which values may be one, and how they are kept out of messages (L5).

use containerpilot_core::secrets::without_passwords;

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

/// The same for a message.
pub(super) fn message_without_passwords(text: &str) -> String {
    String::from_utf8_lossy(&without_passwords(text.as_bytes())).into_owned()
}

/// The rendered text for display, unless it may be a secret.
pub(super) fn shown(source: &[u8], rendered: &[u8]) -> String {
    if looks_secret(&String::from_utf8_lossy(source)) {
        return "(hidden: it may be a secret)".to_owned();
    }
    if rendered.is_empty() {
        return "(empty)".to_owned();
    }
    let rendered = without_passwords(rendered);
    let text = String::from_utf8_lossy(&rendered);
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
    fn l5_a_password_in_an_address_is_not_shown() {
        let hidden = |text: &str| message_without_passwords(text);
        assert_eq!(hidden("a: \"http://me:hush@h:80/\", b: 1"), "a: \"http://me:****@h:80/\", b: 1");
        assert_eq!(hidden("`me:a/b@c@h:80` and x@y"), "`me:***@*@h:80` and x@y");
        assert_eq!(hidden("http://h:80/ a@b"), "http://h:80/ a@b");
        assert_eq!(shown(b"{{ .URL }}", b"http://me:hush@h"), "`http://me:****@h`");
    }

    #[test]
    fn l5_a_secret_argument_is_not_shown() {
        let hidden = |text: &str| message_without_passwords(text);
        assert_eq!(hidden("exec: 'a --password=hush -v'"), "exec: 'a --password=**** -v'");
        assert_eq!(
            hidden("[\"a\", \"--db-token\", \"hush\", \"b\"]"),
            "[\"a\", \"--db-token\", \"****\", \"b\"]"
        );
        assert_eq!(hidden("sh -c 'API_KEY=hush a'"), "sh -c 'API_KEY=**** a'");
        for kept in [
            "--token-file=/x --password /run/x",
            "--password $X --secret={{ .X }}",
            "a token of mine",
            "token: x",
        ] {
            assert_eq!(hidden(kept), kept);
        }
    }

    #[test]
    fn l5_a_secret_is_not_shown() {
        assert_eq!(shown(b"{{ .CONSUL_TOKEN }}", b"abc"), "(hidden: it may be a secret)");
    }
}
