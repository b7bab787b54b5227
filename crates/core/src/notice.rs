//! What a process reports about itself: the messages of `sd_notify` (H11, H12).

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// The most characters of a `STATUS=` that are kept.
const MAX_STATUS: usize = 256;

/// One report of a process about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// It is ready: `READY=1`, a newline on its descriptor, or a matching line of output.
    Ready,
    /// It stops by itself: `STOPPING=1`.
    Stopping,
    /// It reloads its configuration: `RELOADING=1`. `READY=1` ends that.
    Reloading,
    /// It describes what it does: `STATUS=…`.
    Status(String),
    /// It is alive: `WATCHDOG=1`.
    Watchdog,
}

impl Notice {
    /// The notices in one message of `sd_notify`: one assignment per line. Unknown ones are ignored.
    pub fn parse(message: &[u8]) -> impl Iterator<Item = Self> + '_ {
        message.split(|byte| *byte == b'\n').filter_map(|line| match line {
            b"READY=1" => Some(Self::Ready),
            b"STOPPING=1" => Some(Self::Stopping),
            b"RELOADING=1" => Some(Self::Reloading),
            b"WATCHDOG=1" => Some(Self::Watchdog),
            _ => line.strip_prefix(b"STATUS=").map(|text| Self::Status(clean(text))),
        })
    }
}

/// The text without control characters, which could change a terminal, and at most as long as it is shown.
fn clean(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().filter(|char| !char.is_control()).take(MAX_STATUS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn h11_each_line_of_a_message_is_one_notice() {
        let message = b"READY=1\nSTATUS=Serving \x1b[31m5 clients\x07\nMAINPID=7\nWATCHDOG=1\n";
        let expected = vec![Notice::Ready, Notice::Status("Serving [31m5 clients".into()), Notice::Watchdog];
        assert_eq!(Notice::parse(message).collect::<Vec<_>>(), expected);
        let both: Vec<_> = Notice::parse(b"RELOADING=1\nSTOPPING=1").collect();
        assert_eq!(both, [Notice::Reloading, Notice::Stopping]);
    }

    #[test]
    fn h11_only_exact_assignments_count() {
        for message in [&b"READY=0"[..], b"READY=1x", b" READY=1", b"ready=1", b"READY", b"", b"\n\n"] {
            assert_eq!(Notice::parse(message).next(), None, "{message:?}");
        }
    }

    #[test]
    fn h11_a_status_is_bounded() {
        let mut message = b"STATUS=".to_vec();
        message.extend([b'x'; 4000]);
        let Some(Notice::Status(text)) = Notice::parse(&message).next() else { panic!("no status") };
        assert_eq!(text.len(), MAX_STATUS);
        let Some(Notice::Status(text)) = Notice::parse(b"STATUS=\xff\xfe").next() else { panic!() };
        assert_eq!(text, "\u{fffd}\u{fffd}");
    }
}
