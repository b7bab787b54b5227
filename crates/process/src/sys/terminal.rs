//! Terminals: their size, and a process on a terminal of its own.
#![expect(unsafe_code, reason = "`ioctl` and `fork`; every block has its SAFETY comment")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::libc;
use nix::pty::{ForkptyResult, forkpty};
use nix::sys::termios::Termios;

/// The number of columns of a terminal; `None` if the descriptor is not a terminal or the number is unknown.
pub fn terminal_width(terminal: &impl AsFd) -> Option<usize> {
    terminal_size(terminal).map(|(columns, _)| columns).filter(|columns| *columns >= 20)
}

/// The number of columns and of lines of a terminal, 0 if a number is unknown. `None` if the descriptor is not a
/// terminal.
pub fn terminal_size(terminal: &impl AsFd) -> Option<(usize, usize)> {
    window_size(terminal).map(|size| (size.ws_col.into(), size.ws_row.into()))
}

fn window_size(terminal: &impl AsFd) -> Option<libc::winsize> {
    // SAFETY: the kernel writes a `winsize` to `size` only, and any bytes are a valid `winsize`.
    unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        let result = libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size);
        (result == 0).then_some(size)
    }
}

/// Gives a terminal the size of another one. The kernel tells its foreground processes.
pub fn copy_window_size(from: &impl AsFd, to: &impl AsFd) {
    if let Some(size) = window_size(from) {
        // SAFETY: the kernel reads a `winsize`. Nothing depends on its success.
        unsafe { libc::ioctl(to.as_fd().as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    }
}

/// Which of the two processes this is after [`fork_on_terminal`].
#[derive(Debug)]
pub enum Forked {
    Child,
    Parent(Terminal, i32),
}

/// The terminal of a child.
#[derive(Debug)]
pub struct Terminal {
    /// What is written here is typed, and what is shown is read here.
    pub master: OwnedFd,
    /// The child's end. While it is open, the terminal is not hung up, even if no process has it open.
    pub child_end: Option<OwnedFd>,
}

/// Creates a child that leads a session on a terminal of its own, which has the size and the settings of another one
/// and is its standard streams. This process must have no other threads.
pub fn fork_on_terminal(like: &impl AsFd, settings: Option<&Termios>) -> io::Result<Forked> {
    let size = window_size(like);
    // SAFETY: there is no other thread that could have held a lock.
    match unsafe { forkpty(size.as_ref(), settings) }? {
        ForkptyResult::Child => Ok(Forked::Child),
        ForkptyResult::Parent { child, master } => {
            // SAFETY: no memory is involved.
            let end =
                unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, libc::O_RDWR | libc::O_NOCTTY) };
            // SAFETY: the kernel has just opened it for this process.
            let child_end = (end >= 0).then(|| unsafe { OwnedFd::from_raw_fd(end) });
            Ok(Forked::Parent(Terminal { master, child_end }, child.as_raw()))
        }
    }
}
