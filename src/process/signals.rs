//! Signals to the supervisor.
//!
//! They are blocked at the start and read from descriptors. No signal is lost before the loop runs, no handler interrupts
//! the program, and a child only has to reset the signal mask. Rust programs ignore SIGPIPE; `spawn` restores its default.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use containerpilot_core::plan::Signal;

use crate::process::sys::{self, SignalSet};

const HUP: u8 = 1;
const INT: u8 = 2;
const USR1: u8 = 10;
const USR2: u8 = 12;
const PIPE: u8 = 13;
const TERM: u8 = 15;
const CHLD: u8 = 17;

/// Which signals the supervisor receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalMode {
    /// The signals that have a meaning for the supervisor (S1, W3, L1).
    Supervise,
    /// Every signal that can be caught, to forward it (S7).
    Forward,
}

impl SignalMode {
    fn set(self) -> SignalSet {
        match self {
            Self::Supervise => SignalSet::EMPTY.with(HUP).with(INT).with(USR1).with(USR2).with(TERM),
            Self::Forward => SignalSet::CATCHABLE.without(CHLD),
        }
    }
}

/// Blocks the signals until they are read. Must be called before any thread is started.
pub(crate) fn block(mode: SignalMode) -> io::Result<()> {
    sys::block_signals(mode.set().with(CHLD))?;
    // An ignored SIGCHLD is inherited, and would make the kernel discard every exit status.
    Ok(sys::restore_default(CHLD)?)
}

/// The blocked signals.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: OwnedFd,
    sigchld_fd: OwnedFd,
    own_pid: i32,
}

impl Signals {
    /// Opens the descriptors for the signals that [`block`] has blocked.
    pub(crate) fn open(mode: SignalMode) -> io::Result<Self> {
        Ok(Self {
            fd: sys::signal_fd(mode.set())?,
            sigchld_fd: sys::signal_fd(SignalSet::EMPTY.with(CHLD))?,
            own_pid: i32::try_from(std::process::id()).unwrap_or(0),
        })
    }

    /// Readable when a signal is pending.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Readable when children have exited, until [`Signals::clear_sigchld`].
    pub(crate) fn sigchld_fd(&self) -> BorrowedFd<'_> {
        self.sigchld_fd.as_fd()
    }

    /// The next pending signal.
    pub(crate) fn next(&self) -> Option<Signal> {
        // A SIGPIPE from the supervisor itself is caused by its own write to a closed pipe.
        let own_sigpipe =
            |received: &sys::ReceivedSignal| received.signal.0 == PIPE && received.sender == self.own_pid;
        loop {
            match sys::read_signal(self.fd()) {
                Ok(Some(received)) if own_sigpipe(&received) => {}
                Ok(Some(received)) => return Some(received.signal),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Clears the pending SIGCHLD. One is pending even if several children have exited.
    pub(crate) fn clear_sigchld(&self) {
        let _ = sys::read_signal(self.sigchld_fd());
    }
}
