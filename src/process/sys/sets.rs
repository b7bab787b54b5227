//! Sets of signals, as the kernel has them.
#![forbid(unsafe_code)]

use nix::libc;

/// Signals, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SignalSet(pub(super) u64);

impl SignalSet {
    /// No signal.
    pub(crate) const NONE: Self = Self(0);

    /// Every signal that can be caught and that the C library does not keep to itself (32 and 33).
    pub(crate) const CATCHABLE: Self =
        Self(!(bit(libc::SIGKILL as u8) | bit(libc::SIGSTOP as u8) | bit(32) | bit(33)));

    /// These and another one.
    pub(crate) const fn with(self, signal: u8) -> Self {
        Self(self.0 | bit(signal))
    }

    /// These without one.
    pub(crate) const fn without(self, signal: u8) -> Self {
        Self(self.0 & !bit(signal))
    }

    /// Their numbers.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u8> {
        (1..=64).filter(move |signal| self.0 & bit(*signal) != 0)
    }
}

const fn bit(signal: u8) -> u64 {
    1 << (signal - 1)
}
