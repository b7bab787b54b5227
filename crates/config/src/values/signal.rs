//! Signals, by name or by number.

use containerpilot_core::plan::Signal;

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::Node;

/// The names of signals, as in `kill -l`.
const SIGNALS: [(&str, u8); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// The name of a signal, as accepted by [`signal_named`].
#[must_use]
pub fn signal_name(signal: Signal) -> String {
    let known = SIGNALS.iter().find(|(_, number)| *number == signal.0);
    match (known, signal.0) {
        (Some((name, _)), _) => format!("SIG{name}"),
        (None, 34) => "SIGRTMIN".to_owned(),
        (None, number @ 35..=64) => format!("SIGRTMIN+{}", number - 34),
        (None, number) => number.to_string(),
    }
}

/// A signal by name, with or without `SIG`, or by number.
pub struct SignalName;

impl ValueType for SignalName {
    type Value = Signal;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Signal> {
        let text = cx.text(key, node)?;
        let signal = signal_named(&text);
        if signal.is_none() {
            cx.error(
                node.span,
                format!("`{key}` must be a signal, not {}", found(node)),
                "for example: \"SIGINT\"",
            );
        }
        signal
    }
}

/// The signal with a name or number.
#[must_use]
pub fn signal_named(text: &str) -> Option<Signal> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let by_name = SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let realtime = name.strip_prefix("RTMIN").and_then(|rest| match rest {
        "" => Some(34),
        _ => rest.strip_prefix('+')?.parse::<u8>().ok()?.checked_add(34),
    });
    let number = by_name.or(realtime).or_else(|| text.parse().ok())?;
    (1..=64).contains(&number).then_some(Signal(number))
}
