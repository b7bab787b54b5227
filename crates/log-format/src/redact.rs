//! Hides the values of secrets in the output of a process (P11).
//!
//! [`Patterns`] is an Aho–Corasick automaton: each byte costs the same, for every text and any number of patterns. A pattern is a line of a value. So a match never spans a newline, and no complete line is ever held back.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, OnceLock};

/// What is written in place of a value.
pub const HIDDEN: &[u8] = b"***";
/// Shorter lines of a value are not hidden: they would hide ordinary text.
pub const SHORTEST: usize = 4;

/// A larger buffer is freed after use.
const KEPT_CAPACITY: usize = 4096;

/// A state of the automaton: what was read last is the beginning of a pattern.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// How many bytes that is.
    depth: u32,
    /// The state of the longest end of it that is also a beginning of a pattern.
    shorter: u32,
    /// The length of the longest pattern that ends here, or 0.
    matched: u32,
    /// The first of the states that follow, and the next one after the same state; 0 is none.
    first: u32,
    next: u32,
    byte: u8,
}

/// The values to hide.
#[derive(Debug)]
pub struct Patterns {
    /// The first is the start.
    states: Vec<State>,
    /// The states that follow the start, by byte.
    roots: Box<[u32; 256]>,
}

impl Patterns {
    /// The lines of the values, without whitespace around them. `None` if there is nothing to hide.
    #[must_use]
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut patterns = Self { states: vec![State::default()], roots: Box::new([0; 256]) };
        let lines = values.into_iter().flat_map(|value| value.split(|byte| *byte == b'\n'));
        for line in lines.map(<[u8]>::trim_ascii).filter(|line| line.len() >= SHORTEST) {
            patterns.insert(line);
        }
        (patterns.states.len() > 1).then(|| {
            patterns.link();
            patterns
        })
    }

    fn state(&self, at: u32) -> State {
        self.states.get(at as usize).copied().unwrap_or_default()
    }

    fn state_mut(&mut self, at: u32) -> Option<&mut State> {
        self.states.get_mut(at as usize)
    }

    fn insert(&mut self, line: &[u8]) {
        let mut at = 0;
        for byte in line {
            at = match self.follow(at, *byte) {
                0 => self.add(at, *byte),
                known => known,
            };
        }
        if let Some(end) = self.state_mut(at) {
            end.matched = end.depth;
        }
    }

    fn add(&mut self, parent: u32, byte: u8) -> u32 {
        let Ok(new) = u32::try_from(self.states.len()) else { return 0 };
        let State { depth, first, .. } = self.state(parent);
        self.states.push(State { depth: depth + 1, next: first, byte, ..State::default() });
        if parent == 0
            && let Some(root) = self.roots.get_mut(usize::from(byte))
        {
            *root = new;
        }
        if let Some(parent) = self.state_mut(parent) {
            parent.first = new;
        }
        new
    }

    /// The state that directly follows with this byte, or 0.
    fn follow(&self, at: u32, byte: u8) -> u32 {
        if at == 0 {
            return self.roots.get(usize::from(byte)).copied().unwrap_or(0);
        }
        let mut child = self.state(at).first;
        while child != 0 && self.state(child).byte != byte {
            child = self.state(child).next;
        }
        child
    }

    /// The state after this byte.
    fn step(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            let next = self.follow(at, byte);
            if next != 0 || at == 0 {
                return next;
            }
            at = self.state(at).shorter;
        }
    }

    /// Sets `shorter` and `matched`, in the order of depth.
    fn link(&mut self) {
        let mut queue = VecDeque::from([0]);
        while let Some(parent) = queue.pop_front() {
            let mut child = self.state(parent).first;
            while child != 0 {
                let State { byte, next, .. } = self.state(child);
                let shorter = if parent == 0 { 0 } else { self.step(self.state(parent).shorter, byte) };
                let matched = self.state(shorter).matched;
                if let Some(child) = self.state_mut(child) {
                    child.shorter = shorter;
                    child.matched = child.matched.max(matched);
                }
                queue.push_back(child);
                child = next;
            }
        }
    }

    /// A text with all values hidden.
    #[must_use]
    pub fn redact(self: &Arc<Self>, text: &[u8]) -> Vec<u8> {
        let mut redactor = Redactor::new(Arc::clone(self));
        let mut out = redactor.push(text);
        out.extend(redactor.finish());
        out
    }
}

/// The values that the log hides in the output of one process. They are known before it has executed its program, but the
/// log may have its pipes already.
#[derive(Clone, Debug, Default)]
pub struct HiddenValues(Arc<OnceLock<Option<Arc<Patterns>>>>);

impl HiddenValues {
    /// Sets the values, once.
    pub fn set(&self, patterns: Option<Arc<Patterns>>) {
        let _ = self.0.set(patterns);
    }

    /// The values, if they are known and there are any.
    #[must_use]
    pub fn get(&self) -> Option<Arc<Patterns>> {
        self.0.get().cloned().flatten()
    }
}

/// Hides values in one stream of bytes, also those that arrive in several parts.
#[derive(Debug)]
pub struct Redactor {
    patterns: Arc<Patterns>,
    state: u32,
    /// The bytes that may be the beginning of a value.
    held: Vec<u8>,
    /// The values in `held`, as ranges that do not touch.
    found: VecDeque<(usize, usize)>,
    /// Whether the last thing that was written is a hidden value that may continue in `held`.
    in_value: bool,
}

impl Redactor {
    /// A redactor at the beginning of a stream.
    #[must_use]
    pub fn new(patterns: Arc<Patterns>) -> Self {
        Self { patterns, state: 0, held: Vec::new(), found: VecDeque::new(), in_value: false }
    }

    /// Hides the values in a whole text.
    #[must_use]
    pub fn all(mut self, text: &[u8]) -> Vec<u8> {
        let mut shown = self.push(text);
        shown.append(&mut self.finish());
        shown
    }

    /// Adds bytes. Returns those that are certainly no part of a value, with [`HIDDEN`] in place of values.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        for byte in bytes {
            self.held.push(*byte);
            self.state = self.patterns.step(self.state, *byte);
            if self.state != 0 {
                let length = self.patterns.state(self.state).matched as usize;
                if length > 0 {
                    self.add_match(length);
                }
            }
        }
        let pending = self.patterns.state(self.state).depth as usize;
        self.write(self.held.len().saturating_sub(pending))
    }

    /// The stream has ended, or its last line has. Returns what was held back.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        self.state = 0;
        let rest = self.write(self.held.len());
        self.in_value = false;
        rest
    }

    /// A value ends with the last byte.
    fn add_match(&mut self, length: usize) {
        let end = self.held.len();
        let mut start = end.saturating_sub(length);
        // Every value that overlaps or touches it becomes a part of it.
        while let Some((earlier, _)) = self.found.pop_back_if(|(_, end)| *end >= start) {
            start = start.min(earlier);
        }
        self.found.push_back((start, end));
    }

    /// Writes the first `count` bytes.
    fn write(&mut self, count: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(count);
        let mut at = 0;
        for (start, end) in mem::take(&mut self.found) {
            let (from, to) = (start.min(count), end.min(count));
            if from > at {
                out.extend_from_slice(self.held.get(at..from).unwrap_or_default());
                self.in_value = false;
                at = from;
            }
            if to > from {
                if !self.in_value {
                    out.extend_from_slice(HIDDEN);
                }
                self.in_value = true;
                at = to;
            }
            if end > count {
                self.found.push_back((start.max(count) - count, end - count));
            }
        }
        if count > at {
            out.extend_from_slice(self.held.get(at..count).unwrap_or_default());
            self.in_value = false;
        }
        self.held.drain(..count);
        if self.held.capacity() > KEPT_CAPACITY {
            self.held.shrink_to(KEPT_CAPACITY);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(values: &[&str]) -> Arc<Patterns> {
        Arc::new(Patterns::new(values.iter().map(|value| value.as_bytes())).unwrap())
    }

    /// The output for a text in parts of every size.
    fn redacted(values: &[&str], text: &str) -> String {
        let patterns = patterns(values);
        let whole = patterns.redact(text.as_bytes());
        for size in 1..=text.len().min(9) {
            let mut redactor = Redactor::new(Arc::clone(&patterns));
            let mut out = Vec::new();
            for part in text.as_bytes().chunks(size) {
                out.extend(redactor.push(part));
            }
            out.extend(redactor.finish());
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole), "in parts of {size}");
        }
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn p11_values_are_hidden_wherever_they_are_split() {
        assert_eq!(
            redacted(&["hunter2"], "user hunter2, hunter, hunter22\nhunter2"),
            "user ***, hunter, ***2\n***"
        );
        assert_eq!(redacted(&["aab", "aaab"], "aaaab aab"), "a*** aab");
        assert_eq!(redacted(&["abcd", "abcdef", "cdefgh"], "xabcdefghx abcd-abcde"), "x***x ***-***e");
        assert_eq!(redacted(&["abab"], "ababab abab"), "*** ***");
        assert_eq!(redacted(&["secret", "cretin"], "a secretin a"), "a *** a");
        assert_eq!(redacted(&["pass", "word"], "password"), "***");
        assert_eq!(redacted(&["nothing"], ""), "");
    }

    #[test]
    fn p11_each_line_of_a_value_is_hidden() {
        let key = "-----BEGIN KEY-----\n  c2VjcmV0  \r\nab\n-----END KEY-----";
        assert_eq!(redacted(&[key], &format!("{key}\nc2VjcmV0 ab")), "***\n  ***  \r\nab\n***\n*** ab");
        assert!(Patterns::new([&b"abc"[..], b"", b"x\ny\nz"]).is_none(), "shorter than the minimum");
    }

    #[test]
    fn p11_no_complete_line_is_held_back() {
        let mut redactor = Redactor::new(patterns(&["hunter2"]));
        assert_eq!(redactor.push(b"a hunt"), b"a ");
        assert_eq!(redactor.push(b"ing\nhunter2\nh"), b"hunting\n***\n");
        assert_eq!(redactor.finish(), b"h");
    }

    #[test]
    fn p11_hostile_output_costs_the_same_per_byte() {
        // Quadratic time would take minutes.
        let value = format!("{}b", "a".repeat(60_000));
        let other = "a".repeat(30_000);
        let patterns = patterns(&[&value, &other]);
        let mut redactor = Redactor::new(patterns);
        let mut written = 0;
        for _ in 0..20 {
            written += redactor.push("a".repeat(100_000).as_bytes()).len();
        }
        written += redactor.finish().len();
        assert_eq!(written, HIDDEN.len());
    }
}
