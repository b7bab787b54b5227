//! Parses a server's answer to an HTTP check.

/// The status code, once the status line has arrived. `None` if it is incomplete or not HTTP/1.x.
pub(super) fn status(head: &[u8]) -> Option<u16> {
    let line_end = head.iter().position(|byte| *byte == b'\n')?;
    let mut response = httparse::Response::new(&mut []);
    // Without the headers, parsing always ends early; the status line has been stored by then.
    let _ = response.parse(head.get(..=line_end)?);
    response.code
}
