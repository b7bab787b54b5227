//! Pipes: reading, and their capacity.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(nix::unistd::read(fd, buffer)?)
}

/// Makes a pipe end non-blocking. It must be new: other status flags are cleared.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// The capacity of a pipe in bytes; `None` if it is not a pipe.
pub(crate) fn pipe_size(fd: BorrowedFd<'_>) -> Option<usize> {
    usize::try_from(fcntl(fd, FcntlArg::F_GETPIPE_SZ).ok()?).ok()
}

/// Enlarges a pipe, if the system allows it; returns the new capacity.
pub(crate) fn grow_pipe(fd: BorrowedFd<'_>, size: usize) -> Option<usize> {
    let size = i32::try_from(size).ok()?;
    usize::try_from(fcntl(fd, FcntlArg::F_SETPIPE_SZ(size)).ok()?).ok()
}
