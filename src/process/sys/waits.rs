//! Waiting for descriptors, and waking whoever waits.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::epoll::{EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::{POLLIN, awaited, poll};

/// Wakes a thread that waits, from any other thread.
#[derive(Debug)]
pub(crate) struct Waker(EventFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
    }

    /// Never blocks. The only way to fail is a counter that is full, and then the thread is woken anyway.
    pub(crate) fn wake(&self) {
        let _ = self.0.write(1);
    }

    /// Takes the wake-ups that have come.
    pub(crate) fn clear(&self) {
        let _ = self.0.read();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// How many descriptors are reported at a time.
const AT_A_TIME: usize = 64;

/// Waits until one of many descriptors can be read.
#[derive(Debug)]
pub(crate) struct Readable {
    epoll: nix::sys::epoll::Epoll,
}

impl Readable {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: nix::sys::epoll::Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)? })
    }

    /// Adds a descriptor under a number. It leaves by being closed, if it has no duplicate.
    pub(crate) fn add(&self, fd: impl AsFd, number: u64) -> io::Result<()> {
        Ok(self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, number))?)
    }

    /// Waits for so long, or without end, and puts the numbers of those that can be read into `ready`.
    pub(crate) fn wait(&self, ready: &mut Vec<u64>, limit: Option<Duration>) {
        ready.clear();
        let limit = limit
            .map_or(EpollTimeout::NONE, |limit| EpollTimeout::try_from(limit).unwrap_or(EpollTimeout::NONE));
        let mut events = [EpollEvent::empty(); AT_A_TIME];
        // An error can only be an interruption: then nothing is ready, and the caller comes again.
        let count = self.epoll.wait(&mut events, limit).unwrap_or(0);
        ready.extend(events.iter().take(count).map(EpollEvent::data));
    }
}

/// Waits until one descriptor can be read, or another written, or the time is over.
pub(crate) fn wait_read_or_write(
    read: BorrowedFd<'_>,
    write: Option<BorrowedFd<'_>>,
    limit: Option<Duration>,
) {
    let mut fds = vec![PollFd::new(read, PollFlags::POLLIN)];
    fds.extend(write.map(|fd| PollFd::new(fd, PollFlags::POLLOUT)));
    // Rounded up, so that a wait never ends before its time and is repeated for nothing.
    let milliseconds = |limit: Duration| i32::try_from(limit.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX);
    let timeout = limit.map_or(PollTimeout::NONE, |limit| {
        PollTimeout::try_from(milliseconds(limit)).unwrap_or(PollTimeout::MAX)
    });
    // An interruption ends the wait early, which the caller must expect anyway.
    let _ = nix::poll::poll(&mut fds, timeout);
}

/// Whether a write to a descriptor would do something at once: take bytes, or fail.
pub(crate) fn can_write_now(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLOUT)];
    nix::poll::poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Whether a read from a descriptor would do something at once: give bytes or a connection, say that it is over, or fail.
pub(crate) fn can_read_now(fd: RawFd) -> bool {
    let mut asked = [awaited(fd, POLLIN)];
    poll(&mut asked, Some(Duration::ZERO)).is_ok() && asked.iter().any(|fd| fd.revents != 0)
}
