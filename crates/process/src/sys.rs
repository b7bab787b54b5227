//! System calls that the standard library does not offer. `unsafe` code is allowed in this module and its
//! submodules only; those that do not need it forbid it.
//!
//! Signals are handled by number and with the kernel's own calls: the C library hides some signals, and a child must
//! not use the library's locks before it has executed its program.

mod children;
mod descriptors;
mod entry;
mod exec_spec;
mod host;
mod memory;
mod notify_socket;
mod pipes;
mod poll;
mod raw;
mod scout;
mod signals;
mod sockets;
mod start_child;
mod terminal;

use std::ffi::c_long;

use nix::errno::Errno;

pub use self::children::*;
pub use self::descriptors::*;
pub use self::entry::enter;
pub use self::exec_spec::*;
pub use self::host::*;
pub use self::memory::*;
pub use self::notify_socket::*;
pub use self::pipes::*;
pub use self::poll::*;
pub use self::scout::*;
pub use self::signals::*;
pub use self::sockets::*;
pub use self::start_child::*;
pub use self::terminal::*;

/// The result of a raw system call, or its error.
fn checked(result: c_long) -> Result<c_long, Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}

/// Exits at once, without destructors, `atexit` handlers or flushing.
#[cfg(not(test))]
#[expect(unsafe_code, reason = "a raw system call")]
pub fn exit_now(code: u8) -> ! {
    // SAFETY: takes no pointer and does not return.
    unsafe { nix::libc::_exit(code.into()) }
}

#[cfg(test)]
mod tests;
