//! What a child finds out about a program that it cannot execute (P3).

use std::ffi::c_char;
use std::mem::MaybeUninit;

use nix::errno::Errno;
use nix::libc;

use super::{ChildMemory, Failure, HEAD_BYTES, SpawnStep, at, call, fd};

/// Looks at the file that cannot be executed, with the rights of the child's user: returns its `st_mode`, and how many
/// bytes of it are in `head`. If the user may not search a directory above it, `head` has the path of that.
///
/// # Safety
/// As for [`run_child`](super::run_child).
pub(super) unsafe fn examine(
    memory: &ChildMemory,
    failure: &mut Failure,
    head: &mut [u8; HEAD_BYTES],
) -> (u32, usize) {
    if failure.step != SpawnStep::Execute {
        return (0, 0);
    }
    for (nth, file) in memory.files.iter().enumerate().filter(|(_, file)| !file.is_null()) {
        let mut status = MaybeUninit::<libc::stat>::zeroed();
        let here = fd(libc::AT_FDCWD);
        // SAFETY: a null-terminated string, and a structure that the kernel fills in. The other calls have a string or
        // a buffer with its length.
        unsafe {
            let found = call(libc::SYS_newfstatat, [here, at(*file), at(status.as_mut_ptr()), 0]).is_ok();
            let mode = status.assume_init().st_mode;
            match failure.errno {
                Errno::EACCES if failure.file == nth && found => return (mode, 0),
                Errno::EACCES if failure.file == nth => return (0, unsearchable(*file, head)),
                // It exists: what is missing is named in it, or it is not a program.
                Errno::ENOENT | Errno::ENOEXEC
                    if found
                        && mode & libc::S_IFMT == libc::S_IFREG
                        && (failure.errno == Errno::ENOENT || failure.file == nth) =>
                {
                    failure.file = nth;
                    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
                    let read = call(libc::SYS_openat, [here, at(*file), flags as usize])
                        .and_then(|opened| call(libc::SYS_read, [opened, at(head.as_mut_ptr()), HEAD_BYTES]));
                    // One that is not readable is not known to be empty.
                    let is_known = read.is_ok() || failure.errno == Errno::ENOENT;
                    return (if is_known { mode } else { 0 }, read.unwrap_or(0));
                }
                _ => {}
            }
        }
    }
    (0, 0)
}

/// Writes the path of the first directory above a file that the user may not search. Returns its length, or 0.
///
/// # Safety
/// As for [`run_child`](super::run_child). `head` is zeroed.
unsafe fn unsearchable(file: *const c_char, head: &mut [u8; HEAD_BYTES]) -> usize {
    let out = head.as_mut_ptr();
    for length in 0..HEAD_BYTES - 1 {
        // SAFETY: the string has not ended before this byte, and `head` is long enough for it and for a zero after it.
        unsafe {
            let byte = file.add(length).read() as u8;
            if byte == 0 {
                return 0;
            }
            let arguments = [fd(libc::AT_FDCWD), at(out), libc::X_OK as usize];
            if byte == b'/' && length > 0 && call(libc::SYS_faccessat, arguments) == Err(Errno::EACCES) {
                return length;
            }
            out.add(length).write(byte);
        }
    }
    0
}
