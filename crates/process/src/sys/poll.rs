//! Waiting for descriptors, and waking a waiting thread.
#![expect(unsafe_code, reason = "`ppoll` with a plain slice; the block has its SAFETY comment")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
pub use nix::libc::{POLLHUP, POLLIN, POLLOUT, pollfd as PollFd};
use nix::poll::{PollFlags, PollTimeout};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::checked;

/// A descriptor and the events to wait for. A negative descriptor is ignored.
pub fn poll_fd(fd: RawFd, events: i16) -> PollFd {
    PollFd { fd, events, revents: 0 }
}

/// The longest wait of a caller while [`poll`] fails (ENOMEM, or a system call filter).
pub const POLL_FAILED_DELAY: Duration = Duration::from_millis(20);

/// Waits until a descriptor is ready or the timeout passes (`None`: no timeout).
pub fn poll(fds: &mut [PollFd], timeout: Option<Duration>) -> Result<(), Errno> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: pointer and length belong to one slice; the timeout is null or valid; the signal mask is not changed.
    let result = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout, std::ptr::null::<libc::sigset_t>())
    };
    checked(result.into()).map(drop)
}

/// Wakes a waiting thread from any other thread.
#[derive(Debug)]
pub struct Waker(EventFd);

impl Waker {
    pub fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
    }

    /// Never blocks. It can fail only if the counter is full; the thread is woken then anyway.
    pub fn wake(&self) {
        let _ = self.0.write(1);
    }

    /// Resets the waker.
    pub fn clear(&self) {
        let _ = self.0.read();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// How many descriptors one wait reports.
const EVENTS: usize = 64;

/// Waits until one of many descriptors is readable.
#[derive(Debug)]
pub struct Readable(Epoll);

impl Readable {
    pub fn new() -> io::Result<Self> {
        Ok(Self(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?))
    }

    /// Adds a descriptor under a number. Closing it removes it, if it has no duplicate in any process.
    pub fn add(&self, fd: impl AsFd, number: u64) -> io::Result<()> {
        Ok(self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, number))?)
    }

    /// Removes a descriptor that was added.
    pub fn remove(&self, fd: impl AsFd) {
        let _ = self.0.delete(fd);
    }

    /// Waits for a readable descriptor, at most for this time (`None`: no limit), and puts the numbers of those that
    /// are into `ready`.
    pub fn wait(&self, ready: &mut Vec<u64>, limit: Option<Duration>) {
        ready.clear();
        let mut events = [EpollEvent::empty(); EVENTS];
        let timeout = limit.map_or(EpollTimeout::NONE, |limit| {
            EpollTimeout::try_from(milliseconds(limit)).unwrap_or(EpollTimeout::MAX)
        });
        // The only possible error is EINTR: nothing is ready then, and the caller waits again.
        let count = self.0.wait(&mut events, timeout).unwrap_or(0);
        ready.extend(events.iter().take(count).map(EpollEvent::data));
    }
}

/// Rounded up: a wait that returns early would only be repeated.
fn milliseconds(limit: Duration) -> i32 {
    i32::try_from(limit.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX)
}

/// Waits until `read` is readable, `write` is writable, or the limit passes.
pub fn wait_read_or_write(read: BorrowedFd<'_>, write: Option<BorrowedFd<'_>>, limit: Option<Duration>) {
    let mut fds = vec![nix::poll::PollFd::new(read, PollFlags::POLLIN)];
    fds.extend(write.map(|fd| nix::poll::PollFd::new(fd, PollFlags::POLLOUT)));
    let timeout = limit.map_or(PollTimeout::NONE, |limit| {
        PollTimeout::try_from(milliseconds(limit)).unwrap_or(PollTimeout::MAX)
    });
    // EINTR ends the wait early, which callers must expect anyway.
    let _ = nix::poll::poll(&mut fds, timeout);
}

/// Returns true if a write would not block: it takes bytes or fails.
pub fn can_write_now(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [nix::poll::PollFd::new(fd, PollFlags::POLLOUT)];
    nix::poll::poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Returns true if a read or accept would not block: there are bytes, a connection, end of file or an error.
pub fn can_read_now(fd: RawFd) -> bool {
    let mut fds = [poll_fd(fd, POLLIN)];
    poll(&mut fds, Some(Duration::ZERO)).is_ok() && fds.iter().any(|fd| fd.revents != 0)
}
