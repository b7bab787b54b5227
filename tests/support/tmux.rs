//! A real terminal: tmux.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::deadline::{InTime, wait_until_within};
use super::program::out;
use super::skip::skip;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A tmux server of this test, with one window.
pub(crate) struct Tmux {
    socket: String,
}

impl Tmux {
    /// Opens a window of 130 by 20 with a shell; `None` without tmux.
    pub(crate) fn open(socket: &Path) -> Option<Self> {
        if Command::new("tmux").arg("-V").output_in_time().is_err() {
            skip("tmux is not installed");
            return None;
        }
        let tmux = Self { socket: socket.to_str().unwrap().to_owned() };
        tmux.run(&["new-session", "-d", "-x", "130", "-y", "20", "env", "PS1=prompt>", "sh"]);
        tmux.wait_for("the shell has a prompt", |screen| screen.contains("prompt>"));
        Some(tmux)
    }

    pub(crate) fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null", "-S", &self.socket]).args(args).env_remove("TMUX");
        out(&command.output_in_time().unwrap())
    }

    pub(crate) fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    pub(crate) fn wait_for(&self, what: &str, holds: impl Fn(&str) -> bool) {
        wait_until_within(TIMEOUT, || format!("{what}:\n{}", self.screen()), || holds(&self.screen()));
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}
