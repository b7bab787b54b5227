//! How much of the log was lost (L4, S6).

use std::fmt;
use std::ops::AddAssign;

/// Lines and bytes that were not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl Loss {
    /// The lines of a text, of which the last one may lack its newline.
    pub(super) fn of(text: &[u8]) -> Self {
        let whole = memchr::memchr_iter(b'\n', text).count();
        let last = text.last().is_some_and(|byte| *byte != b'\n');
        Self { lines: (whole + usize::from(last)) as u64, bytes: text.len() as u64 }
    }

    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl AddAssign for Loss {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.bytes += other.bytes;
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} lines ({} bytes)", self.lines, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l4_loss_counts_lines_and_a_last_one_without_a_newline() {
        let lines = |text: &[u8]| Loss::of(text).lines;
        assert_eq!([lines(b""), lines(b"\n"), lines(b"a\nb"), lines(b"a\n\nb\n")], [0, 1, 2, 3]);
        let mut loss = Loss::of(b"a\nb");
        loss += Loss::of(b"c\n");
        assert_eq!(loss.to_string(), "3 lines (5 bytes)");
    }
}
