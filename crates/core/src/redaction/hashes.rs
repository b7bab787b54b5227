//! The hash that a text has in a recording.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::plan::{Job, Plan, placeholder_length};
use crate::recorded::Manner;
use crate::variables::MAX_WATCH_VARIABLE;

/// What the core writes before a text that it was told, where it compares the result with the previous one. It stays
/// before the hash, so that a core that was told the hash writes the same.
const OWN_WORDS: [&str; 2] = ["test: ", "could not check: "];

type KeyedHash = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// Hashes in place of texts.
#[derive(Clone)]
pub(super) struct Hashes {
    hash: Arc<KeyedHash>,
    /// The names that are command lines (C6), the longest first, and what they are replaced by.
    command_names: Vec<(String, String)>,
}

impl fmt::Debug for Hashes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Hashes")
    }
}

impl Hashes {
    pub(super) fn new(hash: Arc<KeyedHash>) -> Self {
        Self { hash, command_names: Vec::new() }
    }

    /// Learns which names of jobs are command lines. They are replaced also after the plan was.
    pub(super) fn learn(&mut self, plan: &Plan) {
        for job in plan.jobs.iter().filter(|job| job.has_command_name()) {
            if self.command_names.iter().all(|(name, _)| *name != job.name) {
                let hidden = self.command_name(job);
                let shorter = |(name, _): &(String, String)| name.len() < job.name.len();
                let place = self.command_names.iter().position(shorter);
                let place = place.unwrap_or(self.command_names.len());
                self.command_names.insert(place, (job.name.clone(), hidden));
            }
        }
    }

    fn command_name(&self, job: &Job) -> String {
        let program = job.exec.program().map(|command| command.program.text()).unwrap_or_default();
        format!("{program} {}", self.hash(job.name.as_bytes()))
    }

    fn hash(&self, bytes: &[u8]) -> String {
        format!("#{:016x}", (self.hash)(bytes))
    }

    /// Equal texts have equal hashes, and only they. The empty text, which has a meaning of its own, stays.
    fn hashed(&self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        match OWN_WORDS.iter().find_map(|words| Some((words, text.strip_prefix(words)?))) {
            Some((words, told)) => format!("{words}{}", self.hashed(told)),
            None => self.hash(text.as_bytes()),
        }
    }

    /// What is recorded for a text.
    pub(super) fn text<'t>(&self, manner: Manner, text: &'t str) -> Cow<'t, str> {
        match manner {
            Manner::AsIs => self.without_commands(text),
            Manner::Hashed | Manner::Value | Manner::Word => self.hashed(text).into(),
            Manner::UrlPath => match text.strip_prefix('/') {
                Some(rest) => format!("/{}", self.hashed(rest)).into(),
                None => self.hashed(text).into(),
            },
        }
    }

    fn without_commands<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for (name, hidden) in &self.command_names {
            if text.contains(name.as_str()) {
                text = text.replace(name.as_str(), hidden).into();
            }
        }
        text
    }

    /// What is recorded for bytes.
    pub(super) fn bytes<'b>(&self, manner: Manner, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match manner {
            Manner::AsIs => bytes.into(),
            Manner::Hashed | Manner::UrlPath if bytes.is_empty() => bytes.into(),
            Manner::Hashed | Manner::UrlPath => self.hash(bytes).into_bytes().into(),
            Manner::Value => self.value(bytes).into_bytes().into(),
            Manner::Word => self.word(bytes).into_bytes().into(),
        }
    }

    /// A value that cannot be a variable still cannot (D12): it is no text, or it is too long. A newline at its end,
    /// which a variable does not have, is no part of the hash.
    fn value(&self, value: &[u8]) -> String {
        let (body, end) = match value.strip_suffix(b"\n") {
            Some(body) => (body, "\n"),
            None => (value, ""),
        };
        match core::str::from_utf8(body) {
            Ok(text) if !body.contains(&0) => {
                let mut hashed = self.hashed(text);
                if body.len() > MAX_WATCH_VARIABLE {
                    hashed.extend(core::iter::repeat_n('#', MAX_WATCH_VARIABLE));
                }
                hashed + end
            }
            _ => format!("\0{}{end}", self.hash(body)),
        }
    }

    /// A word of a command, which may have the number or the port of a replica in it (W20).
    fn word(&self, word: &[u8]) -> String {
        let (mut out, mut rest, mut part) = (String::new(), word, 0);
        let hashed = |part: &[u8]| if part.is_empty() { String::new() } else { self.hash(part) };
        while part < rest.len() {
            let (before, after) = rest.split_at(part);
            match placeholder_length(after) {
                Some(length) => {
                    let (placeholder, after) = after.split_at(length);
                    out += &hashed(before);
                    out += &String::from_utf8_lossy(placeholder);
                    (rest, part) = (after, 0);
                }
                None => part += 1,
            }
        }
        out + &hashed(rest)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    /// A hash by which a reader of the test can see what was hashed.
    fn hashes() -> Hashes {
        Hashes::new(Arc::new(|bytes| {
            bytes.iter().fold(7, |sum: u64, byte| sum.wrapping_mul(31) ^ u64::from(*byte))
        }))
    }

    #[test]
    fn b1_words_of_the_core_stay_before_the_hash() {
        let hashes = hashes();
        let text = |text| hashes.text(Manner::Hashed, text).to_string();
        assert_eq!(text(""), "");
        assert_eq!(text("test: hush"), format!("test: {}", text("hush")));
        assert_eq!(text("could not check: test: hush"), format!("could not check: test: {}", text("hush")));
        assert_ne!(text("hush"), text("hush "));
        assert_eq!(hashes.text(Manner::AsIs, "web"), "web");
        assert_eq!(hashes.text(Manner::UrlPath, "/"), "/");
        assert_eq!(hashes.text(Manner::UrlPath, "/x?y"), format!("/{}", text("x?y")));
    }

    #[test]
    fn b1_a_value_is_a_variable_or_not_as_before() {
        let hashes = hashes();
        let value = |value: &[u8]| String::from_utf8(hashes.bytes(Manner::Value, value).to_vec()).unwrap();
        let text = |text| hashes.text(Manner::Hashed, text).to_string();
        assert_eq!((value(b""), value(b"\n")), (String::new(), "\n".into()));
        assert_eq!((value(b"a"), value(b"a\n")), (text("a"), text("a") + "\n"));
        assert_eq!(value(b"a\n\n"), text("a\n") + "\n");
        for binary in [&b"a\0"[..], b"\xff", b"\xff\n"] {
            assert!(value(binary).starts_with("\0#"), "{binary:?}");
        }
        let length = |length| value(&alloc::vec![b'x'; length]).len();
        assert_eq!(length(MAX_WATCH_VARIABLE), 17);
        assert!(length(MAX_WATCH_VARIABLE + 1) > MAX_WATCH_VARIABLE);
    }

    #[test]
    fn b1_words_keep_the_variables_of_replicas() {
        let hashes = hashes();
        let word =
            |word: &str| String::from_utf8(hashes.bytes(Manner::Word, word.as_bytes()).to_vec()).unwrap();
        let hash = |part: &str| hashes.hash(part.as_bytes());
        assert_eq!(word(""), "");
        assert_eq!(word("--x=$HOME"), hash("--x=$HOME"));
        assert_eq!(word("$CONTAINERPILOT_PORT"), "$CONTAINERPILOT_PORT");
        let expected = format!("{}${{CONTAINERPILOT_REPLICA}}{}", hash("a"), hash("b"));
        assert_eq!(word("a${CONTAINERPILOT_REPLICA}b"), expected);
        let expected = format!("{}$CONTAINERPILOT_PORT{}", hash(":"), hash("/7"));
        assert_eq!(word(":$CONTAINERPILOT_PORT/7"), expected);
        assert_eq!(word("$CONTAINERPILOT_PORTS"), hash("$CONTAINERPILOT_PORTS"));
    }
}
