//! Pipes: reading, what they hold, and their capacity.
#![expect(unsafe_code, reason = "FIONREAD; the block has its SAFETY comment")]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;

/// A pipe whose ends are non-blocking and closed when a program is executed: the read end and the write end.
pub fn nonblocking_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
}

pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(nix::unistd::read(fd, buffer)?)
}

/// Makes a pipe end non-blocking. It must be new: other status flags are cleared.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// How many bytes a pipe holds now. May be more than its capacity, if a job has spliced large pages into it.
pub fn unread_bytes(fd: BorrowedFd<'_>) -> usize {
    let mut count: c_int = 0;
    // SAFETY: the kernel writes one `int`. It does not fail for a pipe; if it does, the count stays 0.
    let _ = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut count) };
    usize::try_from(count).unwrap_or(0)
}

/// The capacity of a pipe in bytes; `None` if it is not a pipe.
pub fn pipe_size(fd: BorrowedFd<'_>) -> Option<usize> {
    usize::try_from(fcntl(fd, FcntlArg::F_GETPIPE_SZ).ok()?).ok()
}

/// Enlarges a pipe to this capacity, if it is smaller and the system allows it; returns the capacity then.
pub fn grow_pipe(fd: BorrowedFd<'_>, size: usize) -> Option<usize> {
    let before = pipe_size(fd)?;
    if before >= size {
        return Some(before);
    }
    let size = i32::try_from(size).ok()?;
    usize::try_from(fcntl(fd, FcntlArg::F_SETPIPE_SZ(size)).ok()?).ok()
}
