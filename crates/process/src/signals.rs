//! Signals to the supervisor.
//!
//! They are blocked at the start and read from descriptors. No signal is lost before the loop runs, no handler
//! interrupts the program, and a child only has to reset the signal mask. SIGPIPE and SIGXFSZ are ignored: a write that
//! fails returns its error. `spawn` restores their defaults.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use containerpilot_core::plan::Signal;

use crate::sys::{self, Disposition, SignalSet};

const PIPE: u8 = 13;
const CHLD: u8 = 17;
const XFSZ: u8 = 25;

/// What the supervisor receives, and the core gives a meaning to or forwards (S1, S7): every signal that can be caught,
/// because most of them would end a process by default. Two kinds still do what they must: a fault such as SIGSEGV in
/// the supervisor itself and `abort` end it, although they are blocked; and SIGCONT continues it.
const RECEIVED: SignalSet = SignalSet::CATCHABLE.without(CHLD);

/// Signals that the C library keeps for itself. The supervisor uses none of its functions that need them.
const RESERVED: [u8; 2] = [32, 33];

/// Blocks the signals until they are read. Must be called before any thread is started.
pub fn block() -> io::Result<()> {
    sys::block_signals(RECEIVED.with(CHLD))?;
    for signal in RESERVED {
        // Without it they end the supervisor, as they end any other process.
        let _ = sys::set_disposition(signal, Disposition::Ignore);
    }
    // A log file at the limit of its size is an error like a full disk.
    sys::set_disposition(XFSZ, Disposition::Ignore)?;
    // An ignored SIGCHLD is inherited, and would make the kernel discard every exit status.
    Ok(sys::set_disposition(CHLD, Disposition::Default)?)
}

/// Readable when a stop signal is pending, before a plan is loaded. The signal stays pending.
pub fn stop_requested() -> io::Result<OwnedFd> {
    let stop = [Signal::TERM, Signal::INT, Signal::QUIT];
    Ok(sys::signal_fd(stop.iter().fold(SignalSet::EMPTY, |set, signal| set.with(signal.0)))?)
}

/// The blocked signals.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    sigchld_fd: OwnedFd,
    own_pid: i32,
}

impl Signals {
    /// Opens the descriptors for the signals that [`block`] has blocked.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            fd: sys::signal_fd(RECEIVED)?,
            sigchld_fd: sys::signal_fd(SignalSet::EMPTY.with(CHLD))?,
            own_pid: i32::try_from(std::process::id()).unwrap_or(0),
        })
    }

    /// Readable when a signal is pending.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Readable when children have exited, until [`Signals::clear_sigchld`].
    pub fn sigchld_fd(&self) -> BorrowedFd<'_> {
        self.sigchld_fd.as_fd()
    }

    /// The next pending signal. After `None` there may be others, as long as the descriptor is readable.
    pub fn next(&self) -> Option<Signal> {
        // The supervisor's own write to a closed pipe, or beyond the limit of a file's size; the write has failed, too.
        let own_write = |received: &sys::ReceivedSignal| {
            matches!(received.signal.0, PIPE | XFSZ) && received.sender == self.own_pid
        };
        let received = sys::read_signal(self.fd()).ok().flatten();
        received.filter(|received| !own_write(received)).map(|received| received.signal)
    }

    /// Clears the pending SIGCHLD. One is pending even if several children have exited.
    pub fn clear_sigchld(&self) {
        let _ = sys::read_signal(self.sigchld_fd());
    }
}
