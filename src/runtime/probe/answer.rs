//! What a server answers to a check.

/// The status of an answer whose first line has come.
pub(super) fn status(head: &[u8]) -> Option<u16> {
    let (line, _) = head.split_at_checked(head.iter().position(|byte| *byte == b'\n')?)?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.strip_prefix("HTTP/1.")?.split_ascii_whitespace();
    words.next()?;
    words.next().filter(|status| status.len() == 3)?.parse().ok()
}
