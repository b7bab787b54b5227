//! All system calls that the standard library has no words for.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use containerpilot_config::interfaces::HostAddress;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::epoll::{EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::MsgFlags;

/// The addresses of the network interfaces, in the order the system gives them.
pub(crate) fn interface_addresses() -> Vec<HostAddress> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    interfaces
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            let v6 = address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
            Some(HostAddress { interface: interface.interface_name, ip: v4.or(v6)? })
        })
        .collect()
}

/// The host's name, or nothing if it has none that is text.
pub(crate) fn hostname() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// Whether this process may execute a file.
pub(crate) fn may_execute(path: &Path) -> bool {
    nix::unistd::eaccess(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Whether there is a user of that name.
pub(crate) fn has_user(name: &str) -> bool {
    matches!(nix::unistd::User::from_name(name), Ok(Some(_)))
}

/// Whether there is a group of that name.
pub(crate) fn has_group(name: &str) -> bool {
    matches!(nix::unistd::Group::from_name(name), Ok(Some(_)))
}

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

/// Waits until one of many descriptors can be read.
#[derive(Debug)]
pub(crate) struct Readable {
    epoll: nix::sys::epoll::Epoll,
    events: Vec<EpollEvent>,
}

impl Readable {
    /// At most so many descriptors are reported at a time.
    pub(crate) fn new(at_a_time: usize) -> io::Result<Self> {
        let epoll = nix::sys::epoll::Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, events: vec![EpollEvent::empty(); at_a_time] })
    }

    /// Adds a descriptor under a number. It leaves by being closed, if it has no duplicate.
    pub(crate) fn add(&self, fd: impl AsFd, number: u64) -> io::Result<()> {
        Ok(self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, number))?)
    }

    /// Waits without end and puts the numbers of those that can be read into `ready`.
    pub(crate) fn wait(&mut self, ready: &mut Vec<u64>) {
        ready.clear();
        // An error can only be an interruption: then nothing is ready, and the caller comes again.
        let count = self.epoll.wait(&mut self.events, EpollTimeout::NONE).unwrap_or(0);
        ready.extend(self.events.iter().take(count).map(EpollEvent::data));
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

/// Reads what is there.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(nix::unistd::read(fd, buffer)?)
}

/// Makes reads and writes of an open file fail instead of waiting. Everyone who shares it is concerned.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// How many bytes a pipe can hold; nothing for what is no pipe.
pub(crate) fn pipe_size(fd: BorrowedFd<'_>) -> Option<usize> {
    usize::try_from(fcntl(fd, FcntlArg::F_GETPIPE_SZ).ok()?).ok()
}

/// Makes a pipe hold more, if the system allows it; returns what it then holds.
pub(crate) fn grow_pipe(fd: BorrowedFd<'_>, size: usize) -> Option<usize> {
    let size = i32::try_from(size).ok()?;
    usize::try_from(fcntl(fd, FcntlArg::F_SETPIPE_SZ(size)).ok()?).ok()
}

/// Writes to a socket without waiting, whatever the others who share it have set.
pub(crate) fn send_now(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    Ok(nix::sys::socket::send(fd.as_raw_fd(), bytes, flags)?)
}
