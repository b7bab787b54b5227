//! Pipes: how much they hold, and reading them.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Reads what is there.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(nix::unistd::read(fd, buffer)?)
}

/// Makes reads of a pipe's end fail instead of waiting. It must be an end that has no other flags, as a new one.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
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
