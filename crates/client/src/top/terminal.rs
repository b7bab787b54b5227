//! The terminal: raw mode and the alternate screen, and the way back.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use nix::sys::termios::{self, SetArg, Termios};

/// The alternate screen, without a cursor and without automatic line breaks.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// What the terminal was before; `None` while it is not changed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// While it exists, the terminal is in raw mode. It is restored when this is dropped, and before the message of a panic
/// is written.
pub(super) struct RawTerminal(());

impl RawTerminal {
    pub(super) fn enter() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin().as_fd())?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let entered = Self(());
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            hook(panic);
        }));
        termios::tcsetattr(io::stdin().as_fd(), SetArg::TCSAFLUSH, &raw)?;
        write(ENTER)?;
        Ok(entered)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // They fail if the terminal is gone.
        let _ = write(LEAVE);
        let _ = termios::tcsetattr(io::stdin().as_fd(), SetArg::TCSAFLUSH, &before);
    }
}

pub(super) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
