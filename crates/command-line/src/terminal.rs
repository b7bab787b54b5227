//! What the standard streams can show.

use std::io::IsTerminal;

use containerpilot_process::sys;
use containerpilot_text::screen::Screen;

/// Returns true if standard error shows colours (X4).
pub fn stderr_has_colour() -> bool {
    std::io::stderr().is_terminal() && wants_colour()
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Standard output. Only a terminal has colours and a width.
pub fn stdout_screen() -> Screen {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return Screen::default();
    }
    Screen { colour: wants_colour(), width: sys::terminal_width(&out) }
}
