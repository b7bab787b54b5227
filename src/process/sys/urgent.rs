//! The code that a signal needs, kept at hand; and all other code, given back when it is not needed.
//!
//! `link-order.txt` puts what passes a signal on behind [`read_signal`], and before it what a thread is in that waits; what is
//! larger than 4 KiB (and the C library's allocator) follows. `link-order.ld` has the constants of it at the very beginning. How
//! far it reaches, the linker's map of a release says (`containerpilot.map`). In a binary that is linked otherwise something else is
//! kept and fetched, and nothing is lost but time.
#![forbid(unsafe_code)]

use super::{own_code, prefetch, read_signal, release};

/// What the processor fetches at a time.
const LINE: usize = 64;
/// How much code a wait takes.
const WAITING: usize = 8 << 10;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgent {
    /// To pass it on to a program that runs alone.
    PassOn,
    /// To tell the jobs of a plan to end.
    Stop,
}

/// How many bytes it takes.
struct Extent {
    /// Of code, without what is large.
    fetched: usize,
    /// Of code, with it.
    kept: usize,
    /// Of constants.
    constants: usize,
}

impl Urgent {
    const fn extent(self) -> Extent {
        match self {
            Self::PassOn => Extent { fetched: 11 << 10, kept: 16 << 10, constants: 8 << 10 },
            Self::Stop => Extent { fetched: 30 << 10, kept: 64 << 10, constants: 8 << 10 },
        }
    }

    /// Where its code begins.
    fn begin() -> usize {
        (read_signal as *const ()).addr()
    }

    /// Has the processor fetch the code before it is needed. After a sleep none of it is in its caches, and whoever simply runs
    /// waits for memory line by line, some three hundred times; asked for together they come together.
    pub(crate) fn fetch(self) {
        let begin = Self::begin();
        (begin..begin + self.extent().fetched).step_by(LINE).for_each(prefetch);
    }

    /// Gives back the pages of our own code and constants, but for those. Most of them were needed to understand the
    /// configuration and never again; those that are needed come back from the file by themselves.
    ///
    /// This frees no memory that the kernel could not have taken back by itself: it is the pages' owner and keeps them in
    /// its cache. But they do not count as ours any more (some 1.6 MiB), and are the first to go when memory is short. It
    /// costs page faults when something happens for the first time afterwards.
    pub(crate) fn release_others(self) {
        let (all, begin) = (own_code(), Self::begin());
        let Extent { kept, constants, .. } = self.extent();
        release(all.start + constants, begin.saturating_sub(WAITING));
        release(begin + kept, all.end);
    }
}
