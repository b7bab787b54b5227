//! Fuzz target: any bytes as an HTTP message: a head and its body.

use super::http::{Head, Request, Rest, answered};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(Some((head, length))) = Head::read(bytes) else { return };
    let (whole, behind) = bytes.split_at(length);
    // The head is complete with its last byte and not before.
    assert!(matches!(Head::read(whole), Ok(Some((_, again))) if again == length));
    assert!(whole.ends_with(b"\n") && matches!(Head::read(&whole[..length - 1]), Ok(None)));
    if let Ok((status, rest)) = answered(&head) {
        assert!((100..1000).contains(&status));
        body(rest, behind);
    }
    if let Ok(request) = Request::of(head) {
        assert!(!request.method.is_empty() && !request.path.contains(['?', '#', ' ']));
        if let Ok(rest) = request.framing() {
            assert_ne!(rest, Rest::Close, "a request body always has an end");
            body(rest, behind);
        }
    }
}

/// A body is the same whether it arrives at once or byte by byte.
fn body(rest: Rest, bytes: &[u8]) {
    assert_eq!(read(rest, bytes, bytes.len().max(1)), read(rest, bytes, 1));
}

/// Reads a body that arrives in pieces of `step` bytes: all of it, or up to the error.
fn read(mut rest: Rest, bytes: &[u8], step: usize) -> (Vec<u8>, bool) {
    let (mut all, mut at, mut come) = (Vec::new(), 0, 0);
    loop {
        let Ok(found) = rest.find(&bytes[at..come]) else { return (all, false) };
        at += found.skip;
        all.extend_from_slice(&bytes[at..at + found.data]);
        at += found.data;
        if found.over || (found.data == 0 && come == bytes.len()) {
            return (all, found.over);
        }
        if found.data == 0 {
            come = (come + step).min(bytes.len());
        }
    }
}
