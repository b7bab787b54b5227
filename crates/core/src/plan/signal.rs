//! Signals.

use core::fmt;

/// A signal, by its Linux number (1 to 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(pub u8);

impl Signal {
    /// SIGHUP: reloads the configuration, unless a job waits for it (R1).
    pub const HUP: Self = Self(1);
    /// SIGINT.
    pub const INT: Self = Self(2);
    /// SIGKILL.
    pub const KILL: Self = Self(9);
    /// SIGUSR1: reopens the log file.
    pub const USR1: Self = Self(10);
    /// SIGUSR2.
    pub const USR2: Self = Self(12);
    /// SIGTERM.
    pub const TERM: Self = Self(15);
}

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
            (None, 34) => out.write_str("SIGRTMIN"),
            (None, number @ 35..=64) => write!(out, "SIGRTMIN+{}", number - 34),
            (None, number) => write!(out, "signal {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn s2_signals_are_named() {
        let names = [1, 9, 15, 31, 34, 36, 33, 0].map(|number| Signal(number).to_string());
        let expected =
            ["SIGHUP", "SIGKILL", "SIGTERM", "SIGSYS", "SIGRTMIN", "SIGRTMIN+2", "signal 33", "signal 0"];
        assert_eq!(names, expected);
    }
}
