//! Bytes of a terminal become keys.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPress {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C, which is no signal in raw mode.
    Interrupt,
    Char(char),
}

/// The longest sequence of a key that is waited for.
const MAX_SEQUENCE: usize = 16;

/// What was read and is not a key yet.
#[derive(Debug, Default)]
pub(super) struct Keys {
    rest: Vec<u8>,
}

impl Keys {
    /// The keys of these bytes and of what was read before.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
        self.rest.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = first(&self.rest) {
            keys.extend(key);
            self.rest.drain(..length);
        }
        keys
    }

    /// Returns true if more bytes may belong to what was read.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.rest.is_empty()
    }

    /// No more bytes have come: an escape character alone is the key itself.
    pub(super) fn flush(&mut self) -> Option<KeyPress> {
        let is_escape = self.rest.first() == Some(&0x1b);
        self.rest.clear();
        is_escape.then_some(KeyPress::Escape)
    }
}

/// The first key and the number of its bytes. `None` if bytes are missing. Bytes that mean no key here are passed over.
fn first(bytes: &[u8]) -> Option<(Option<KeyPress>, usize)> {
    let key = |key: KeyPress| Some((Some(key), 1));
    match *bytes.first()? {
        0x1b => escape(bytes),
        b'\r' | b'\n' => key(KeyPress::Enter),
        0x03 => key(KeyPress::Interrupt),
        0x08 | 0x7f => key(KeyPress::Backspace),
        0x10 => key(KeyPress::Up),
        0x0e => key(KeyPress::Down),
        0..0x20 => Some((None, 1)),
        lead => {
            let length = match lead {
                0..0x80 => 1,
                0xc2..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0..0xf5 => 4,
                _ => return Some((None, 1)),
            };
            let text = std::str::from_utf8(bytes.get(..length)?);
            Some(match text.ok().and_then(|text| text.chars().next()) {
                Some(c) => (Some(KeyPress::Char(c)), length),
                None => (None, 1),
            })
        }
    }
}

/// A sequence that begins with the escape character: `ESC [ … letter` or `ESC O letter`.
fn escape(bytes: &[u8]) -> Option<(Option<KeyPress>, usize)> {
    match bytes.get(1)? {
        b'[' | b'O' => {}
        // Escape, and then another key.
        _ => return Some((Some(KeyPress::Escape), 1)),
    }
    let is_last = |byte: &u8| (0x40..0x7f).contains(byte);
    let Some(last) = bytes.iter().skip(2).position(is_last).map(|place| place + 2) else {
        return (bytes.len() > MAX_SEQUENCE).then_some((None, bytes.len()));
    };
    let number = bytes.get(2..last).unwrap_or_default();
    let key = match (bytes.get(last)?, number) {
        (b'A', _) => Some(KeyPress::Up),
        (b'B', _) => Some(KeyPress::Down),
        (b'H', _) | (b'~', b"1" | b"7") => Some(KeyPress::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(KeyPress::End),
        (b'~', b"5") => Some(KeyPress::PageUp),
        (b'~', b"6") => Some(KeyPress::PageDown),
        _ => None,
    };
    Some((key, last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x12_keys_are_recognised_however_their_bytes_arrive() {
        let bytes = "\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[1;5Aqä漢\r\x7f\x03".as_bytes();
        let expected = [
            KeyPress::Up,
            KeyPress::Down,
            KeyPress::PageUp,
            KeyPress::PageDown,
            KeyPress::Home,
            KeyPress::End,
            KeyPress::Up,
            KeyPress::Char('q'),
            KeyPress::Char('ä'),
            KeyPress::Char('漢'),
            KeyPress::Enter,
            KeyPress::Backspace,
            KeyPress::Interrupt,
        ];
        assert_eq!(Keys::default().read(bytes), expected);
        let mut keys = Keys::default();
        let one_by_one: Vec<KeyPress> = bytes.iter().flat_map(|byte| keys.read(&[*byte])).collect();
        assert_eq!(one_by_one, expected);
        assert!(!keys.is_incomplete());
    }

    #[test]
    fn x12_an_escape_alone_is_a_key_and_garbage_is_none() {
        let mut keys = Keys::default();
        assert_eq!(keys.read(b"\x1b"), []);
        assert!(keys.is_incomplete());
        assert_eq!(keys.flush(), Some(KeyPress::Escape));
        assert_eq!(keys.flush(), None);
        assert_eq!(keys.read(b"\x1bq"), [KeyPress::Escape, KeyPress::Char('q')]);
        assert_eq!(keys.read(b"\xff\xfe\x80\x01\x1b[200~\x1b[31mx"), [KeyPress::Char('x')]);
        // An endless sequence is dropped.
        assert_eq!(keys.read(&[&b"\x1b["[..], &[b'1'; 100]].concat()), []);
        assert!(!keys.is_incomplete());
    }
}
