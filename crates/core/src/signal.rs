//! Signals.

use alloc::string::ToString;
use core::fmt;

use serde::{Deserialize, Serialize};

/// A signal, by its Linux number (1 to 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Signal(pub u8);

impl Signal {
    /// SIGHUP: reloads the configuration, unless a job waits for it (R1).
    pub const HUP: Self = Self(1);
    /// SIGINT.
    pub const INT: Self = Self(2);
    /// SIGQUIT.
    pub const QUIT: Self = Self(3);
    /// SIGKILL.
    pub const KILL: Self = Self(9);
    /// SIGUSR1: reopens the log file.
    pub const USR1: Self = Self(10);
    /// SIGUSR2.
    pub const USR2: Self = Self(12);
    /// SIGTERM.
    pub const TERM: Self = Self(15);
    /// SIGCHLD.
    pub const CHLD: Self = Self(17);
    /// SIGCONT.
    pub const CONT: Self = Self(18);
    /// SIGSTOP.
    pub const STOP: Self = Self(19);

    /// Returns true if a process can catch it and the supervisor does not use it: not SIGKILL, SIGSTOP and SIGCHLD, and
    /// none of the two that the C library keeps for itself (S8).
    #[must_use]
    pub const fn can_be_received(self) -> bool {
        matches!(self.0, 1..=MAX) && !matches!(self.0, 9 | 17 | 19 | 32 | 33)
    }

    /// The signal whose full name, as `Display` writes it, is exactly this.
    #[must_use]
    pub fn from_full_name(name: &str) -> Option<Self> {
        let signal = Self::from_name(name).filter(|_| name.starts_with("SIG"))?;
        (signal.to_string() == name).then_some(signal)
    }

    /// Finds a signal by its name, with or without `SIG` and in any case, or by its number. Accepts everything that
    /// `Display` writes for a valid signal.
    #[must_use]
    pub fn from_name(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let by_name = NAMES.iter().zip(1..).find(|(known, _)| **known == name).map(|(_, number)| number);
        let real_time = name.strip_prefix("RTMIN").and_then(|rest| match rest {
            "" => Some(RTMIN),
            _ => rest.strip_prefix('+')?.parse::<u8>().ok()?.checked_add(RTMIN),
        });
        let by_number = || text.strip_prefix("signal ").unwrap_or(text).parse().ok();
        let number = by_name.or(real_time).or_else(by_number)?;
        (1..=MAX).contains(&number).then_some(Self(number))
    }
}

/// The first real-time signal that programs may use; the C library keeps 32 and 33 for itself.
const RTMIN: u8 = 34;
const MAX: u8 = 64;

/// The names of the signals 1 to 31, as `kill -l` prints them.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

impl fmt::Display for Signal {
    /// Writes the name, such as `SIGTERM` or `SIGRTMIN+2`; the number if the signal has no name.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = usize::from(self.0).checked_sub(1).and_then(|index| NAMES.get(index));
        match (name, self.0) {
            (Some(name), _) => write!(out, "SIG{name}"),
            (None, RTMIN) => out.write_str("SIGRTMIN"),
            (None, number @ RTMIN..=MAX) => write!(out, "SIGRTMIN+{}", number - RTMIN),
            (None, number) => write!(out, "signal {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn s2_signals_are_named() {
        let names = [1, 9, 15, 31, 34, 36, 33, 0].map(|number| Signal(number).to_string());
        let expected =
            ["SIGHUP", "SIGKILL", "SIGTERM", "SIGSYS", "SIGRTMIN", "SIGRTMIN+2", "signal 33", "signal 0"];
        assert_eq!(names, expected);
    }

    #[test]
    fn s8_signals_that_cannot_be_received() {
        let refused: Vec<u8> = (0..=u8::MAX).filter(|number| !Signal(*number).can_be_received()).collect();
        assert_eq!(refused[..6], [0, 9, 17, 19, 32, 33]);
        assert_eq!(refused[6], 65);
    }

    #[test]
    fn s8_a_source_has_the_full_name_of_a_signal() {
        assert_eq!(Signal::from_full_name("SIGWINCH"), Some(Signal(28)));
        assert_eq!(Signal::from_full_name("SIGRTMIN+2"), Some(Signal(36)));
        for other in ["WINCH", "sigwinch", "28", "SIG28", "SIGRTMIN+0", "SIGNAL", ""] {
            assert_eq!(Signal::from_full_name(other), None, "{other}");
        }
    }

    #[test]
    fn s2_every_signal_is_found_by_its_name() {
        for number in 1..=MAX {
            assert_eq!(Signal::from_name(&Signal(number).to_string()), Some(Signal(number)));
        }
        assert_eq!(Signal::from_name("term"), Some(Signal::TERM));
        assert_eq!(Signal::from_name("15"), Some(Signal::TERM));
        for invalid in ["", "SIG", "0", "65", "SIGRTMIN+31", "SIGFOO"] {
            assert_eq!(Signal::from_name(invalid), None, "{invalid}");
        }
    }
}
