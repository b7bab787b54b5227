//! File descriptors: ownership, close-on-exec, duplicates.
#![expect(unsafe_code, reason = "raw system calls; every block has its SAFETY comment")]

use std::ffi::{c_int, c_long};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;

use super::checked;

/// Takes ownership of a descriptor that a system call has just returned.
pub(super) fn owned(fd: c_long) -> Result<OwnedFd, Errno> {
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just returned it, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets close-on-exec on every descriptor from 3 on. Returns false if the kernel has no `close_range`.
pub fn close_all_on_exec() -> bool {
    // SAFETY: no memory is involved, and no descriptor is closed.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 }
}

/// Sets close-on-exec on one descriptor.
pub fn close_on_exec(fd: RawFd) {
    // SAFETY: no memory is involved; a number that is not a descriptor is refused.
    unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// Duplicates a descriptor to the lowest free number from 3 on.
pub fn duplicate_low(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // SAFETY: no memory is involved.
    owned(checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) }.into())?)
}

/// Makes a descriptor refer to another open file (`dup3`). It needs no free descriptor.
pub fn replace(slot: &OwnedFd, with: BorrowedFd<'_>) -> Result<(), Errno> {
    let once = || {
        // SAFETY: no memory is involved; the descriptor stays owned by `slot`.
        checked(unsafe { libc::dup3(with.as_raw_fd(), slot.as_raw_fd(), libc::O_CLOEXEC) }.into()).map(drop)
    };
    // The error may be temporary (EINTR, EBUSY).
    once().or_else(|_| once())
}

/// Lets a Unix socket refuse messages with descriptors. Fails before Linux 6.16.
pub fn refuse_descriptors(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    /// The C library does not know it either.
    const SO_PASSRIGHTS: c_int = 83;
    let (off, size): (c_int, libc::socklen_t) = (0, 4);
    // SAFETY: the pointer leads to an integer of four bytes that outlives the call.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const off).cast(), size)
    };
    checked(result.into()).map(drop)
}
