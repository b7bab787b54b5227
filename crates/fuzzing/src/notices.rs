//! Fuzz target: any bytes as a message of `sd_notify` (H11).

use containerpilot_core::Notice;

pub(crate) fn run(message: &[u8]) {
    let lines = message.split(|byte| *byte == b'\n').count();
    let notices: Vec<Notice> = Notice::parse(message).collect();
    assert!(notices.len() <= lines, "one notice for each line at most");
    for notice in notices {
        if let Notice::Status(text) = notice {
            assert!(text.chars().count() <= 256 && !text.contains(char::is_control), "{text:?}");
        }
    }
}
