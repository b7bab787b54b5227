//! Where the program begins.
#![expect(unsafe_code, reason = "the arguments come as the C library hands them over")]

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use nix::libc;

use crate::sys;

/// Instead of the standard library's entry, of which we need two things: that the first three descriptors are open, lest
/// a file of ours becomes somebody's standard output; and that a reader who has left is an error and no signal. What we
/// do without is a message about an overflowing stack, for which it reads and parses `/proc/self/maps` at every start.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    let argument = |nth: usize| {
        // SAFETY: the C library hands over as many strings as it says, and they stay for ever.
        let bytes = unsafe { CStr::from_ptr(*arguments.add(nth)) }.to_bytes();
        OsStr::from_bytes(bytes).to_owned()
    };
    open_standard_streams();
    // SAFETY: no handler is involved, and no other thread is there yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let code = std::panic::catch_unwind(|| {
        let arguments: Vec<_> = (1..usize::try_from(count).unwrap_or(0)).map(argument).collect();
        crate::cli::main(&arguments)
    });
    // Not by returning: what is left in the buffer of standard output would stay there.
    std::process::exit(code.map_or(101, c_int::from))
}

/// Puts `/dev/null` where a standard stream was closed. Where that cannot be opened there is nothing to be done.
fn open_standard_streams() {
    let mut fds = [0, 1, 2].map(|fd| sys::awaited(fd, 0));
    if sys::poll(&mut fds, Some(Duration::ZERO)).is_err() {
        return;
    }
    for _ in fds.iter().filter(|fd| fd.revents & libc::POLLNVAL != 0) {
        // SAFETY: a string with its end. The number is the lowest that is free, and so the one that was closed.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    }
}
