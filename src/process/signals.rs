//! Signals to the supervisor, turned into news.
//!
//! They are blocked from the very beginning and read from descriptors, so none is lost before the loop runs, no
//! handler interrupts anything, and nothing has to be undone in a child but the mask. SIGPIPE is ignored by every
//! Rust program; `spawn` gives it back to the children.

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

/// The signals that mean something here (S1, W3, L1).
const MEANT: SignalSet = SignalSet::NONE.with(HUP).with(INT).with(USR1).with(USR2).with(TERM);

/// Which signals the supervisor takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Those that mean something here.
    Meant,
    /// Every one that can be caught, to be passed on (S7).
    Every,
}

impl Taken {
    fn set(self) -> SignalSet {
        match self {
            Self::Meant => MEANT,
            Self::Every => SignalSet::CATCHABLE.without(CHLD),
        }
    }
}

/// Keeps the signals until they are read. To be called first of all, before any thread is started.
pub(crate) fn hold(taken: Taken) -> io::Result<()> {
    sys::block_signals(taken.set().with(CHLD))?;
    // Whoever started us may have ignored it, and that is inherited: then the kernel would throw every exit status
    // away, and no job would ever end.
    Ok(sys::restore_default(CHLD)?)
}

/// The signals that are held.
#[derive(Debug)]
pub(crate) struct Signals {
    news: OwnedFd,
    children: OwnedFd,
    own_pid: i32,
}

impl Signals {
    /// The signals that [`hold`] keeps.
    pub(crate) fn open(taken: Taken) -> io::Result<Self> {
        Ok(Self {
            news: sys::signal_fd(taken.set())?,
            children: sys::signal_fd(SignalSet::NONE.with(CHLD))?,
            own_pid: i32::try_from(std::process::id()).unwrap_or(0),
        })
    }

    /// Ready when there is a signal to read.
    pub(crate) fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// Ready when children have ended. As long as it is not read, further ends make no noise.
    pub(crate) fn children(&self) -> BorrowedFd<'_> {
        self.children.as_fd()
    }

    /// The next signal that has arrived.
    pub(crate) fn next(&self) -> Option<Signal> {
        // The supervisor's own writes to a reader that has gone are no news for anybody.
        let own = |arrived: &sys::Arrived| arrived.signal.0 == PIPE && arrived.sender == self.own_pid;
        loop {
            match sys::read_signal(self.news()) {
                Ok(Some(arrived)) if own(&arrived) => {}
                Ok(Some(arrived)) => return Some(arrived.signal),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Takes note that children have ended.
    pub(crate) fn children_seen(&self) {
        // However many have ended, the signal waits once; if there should be more, the descriptor stays ready.
        let _ = sys::read_signal(self.children());
    }
}
