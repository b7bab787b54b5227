//! The entry of the program, without the runtime of the standard library.
//!
//! That runtime gives every thread an alternate signal stack to report stack overflows, and aborts the process if there
//! is no memory for it. PID 1 must survive a failed thread start, so `main` is called by the C library directly.
#![expect(unsafe_code, reason = "the arguments of the C library; every block has its SAFETY comment")]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

use nix::libc;

/// Defines `main`, which passes the arguments without the name of the program to a function and exits with the code
/// that it returns: `entry!(run)`. The crate of the program has `#![no_main]`, and it can forbid `unsafe` code.
#[macro_export]
macro_rules! entry {
    ($run:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn main(
            count: std::ffi::c_int,
            arguments: *const *const std::ffi::c_char,
        ) -> std::ffi::c_int {
            // SAFETY: the C library calls this once, with its arguments.
            unsafe { $crate::sys::enter(count, arguments, $run) }
        }
    };
}

/// Prepares the process as the standard library would, and runs the program.
///
/// # Safety
/// The arguments must be those of `main`, and no other thread may run.
#[doc(hidden)]
pub unsafe fn enter(count: c_int, arguments: *const *const c_char, run: fn(&[OsString]) -> u8) -> c_int {
    let argument = |nth: usize| {
        // SAFETY: the C library passes `count` strings, which are valid until the process exits.
        let bytes = unsafe { CStr::from_ptr(*arguments.add(nth)) }.to_bytes();
        OsStr::from_bytes(bytes).to_owned()
    };
    open_standard_streams();
    // SAFETY: no handler is involved, and there is no other thread.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let code = std::panic::catch_unwind(|| {
        let arguments: Vec<OsString> = (1..usize::try_from(count).unwrap_or(0)).map(argument).collect();
        run(&arguments)
    });
    // `exit` flushes standard output, which a plain return would not.
    std::process::exit(code.map_or(101, c_int::from))
}

/// Opens `/dev/null` for standard streams that are closed, so that no other file gets their numbers.
fn open_standard_streams() {
    for fd in 0..3 {
        // SAFETY: no memory is involved but a constant path; a new descriptor gets the lowest free number, which is
        // `fd`.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) < 0 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            }
        }
    }
}
