//! Answers of an OpenTelemetry collector (T6).

use containerpilot_otlp::{read_answer, read_status_message};

/// Messages are short and have no control characters, for any answer of a collector.
pub(crate) fn run(bytes: &[u8]) {
    let answer = read_answer(bytes);
    assert!(i64::try_from(answer.rejected).is_ok());
    for message in [answer.message, read_status_message(bytes)] {
        assert!(message.chars().count() <= 160 && !message.chars().any(char::is_control), "{message:?}");
    }
}
