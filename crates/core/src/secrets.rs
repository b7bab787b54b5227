//! Secrets in texts, and how they are kept out of messages (L5).

use alloc::vec::Vec;

/// Finds secrets among the arguments of a program: `--password=VALUE`, `PASSWORD=VALUE`, or the word after
/// `--password`.
#[derive(Debug, Default)]
pub struct SecretArguments {
    /// The previous word was an option without its value.
    is_next: bool,
}

impl SecretArguments {
    /// Where the secret begins in the next word, if it has one. A path or a variable is not a secret.
    pub fn offset(&mut self, word: &str) -> Option<usize> {
        const NAMES: [&str; 7] = ["password", "passwd", "secret", "token", "apikey", "api-key", "api_key"];
        const OTHERS: [&str; 5] = ["file", "path", "dir", "name", "url"];
        let is_value = |value: &str| !value.is_empty() && !value.starts_with(['/', '.', '$', '{', '-']);
        if core::mem::take(&mut self.is_next) && is_value(word) {
            return Some(0);
        }
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let lower = name.to_ascii_lowercase();
        let is_secret = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && NAMES.iter().any(|part| lower.contains(part))
            && !OTHERS.iter().any(|part| lower.contains(part));
        match value {
            Some(value) => (is_secret && is_value(value)).then_some(name.len() + 1),
            None => {
                self.is_next = is_secret && word.starts_with('-');
                None
            }
        }
    }
}

/// Replaces the password of each `user:password@host`, and arguments that look like a secret, by asterisks. The length
/// stays the same, so that offsets stay valid.
#[must_use]
pub fn without_passwords(text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    let (mut arguments, mut word_start) = (SecretArguments::default(), 0);
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`,[]".contains(byte);
    for word in text.split(is_end) {
        if let Some(offset) = core::str::from_utf8(word)
            .ok()
            .filter(|word| !word.is_empty())
            .and_then(|word| arguments.offset(word))
            && let Some(secret) = out.get_mut(word_start + offset..word_start + word.len())
        {
            secret.fill(b'*');
        }
        word_start += word.len() + 1;
    }
    // The offset after the first colon of a word that is not part of `://`.
    let mut start = None;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'"' | b'\'' | b'`' => start = None,
            _ if byte.is_ascii_whitespace() => start = None,
            b':' if start.is_none() && text.get(at + 1..at + 3) != Some(b"//") => start = Some(at + 1),
            b'@' => {
                if let Some(password) = start.and_then(|start| out.get_mut(start..at)) {
                    password.fill(b'*');
                    start = Some(at + 1);
                }
            }
            _ => {}
        }
    }
    out
}
