//! What `top` shows, and what keys do to it. Pure: it neither reads the terminal nor asks the supervisor.

use containerpilot_api::responses::Status;
use containerpilot_text::screen::sanitized;
use containerpilot_views::status::program;

use super::keys::KeyPress;
use super::rows::{Column, CpuUsage, JobRow, rows};
use containerpilot_core::sort_by;

/// What the main loop does after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    Nothing,
    Quit,
    /// Ask the supervisor now.
    Refresh,
    Act(Act),
}

/// A request about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) job: String,
    /// The path of the control socket: `start`, `stop`, `restart` or `signal`.
    pub(super) action: &'static str,
    pub(super) signal: Option<String>,
}

/// What the last line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    Filter,
    Confirm(Act),
    /// The name of a signal for a job.
    Signal(String, String),
}

/// A text that covers the table.
#[derive(Debug)]
pub(super) struct Pane {
    pub(super) kind: PaneKind,
    pub(super) lines: Vec<String>,
    /// The first line that is shown, after wrapping.
    pub(super) top: usize,
    /// Show the last lines, and new ones as they come.
    pub(super) follow: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PaneKind {
    Logs(String),
    Explain(String),
    Help,
}

#[derive(Debug, Default)]
pub(super) struct App {
    pub(super) rows: Vec<JobRow>,
    usage: CpuUsage,
    /// The name of the selected job.
    selected: String,
    /// Its place, for when it is gone.
    place: usize,
    /// The first row that is shown.
    pub(super) first: usize,
    pub(super) sort: Column,
    pub(super) reversed: bool,
    pub(super) filter: String,
    pub(super) pane: Option<Pane>,
    pub(super) prompt: Option<Prompt>,
    pub(super) summary: String,
    /// Why the supervisor does not answer.
    pub(super) trouble: Option<String>,
    /// The outcome of the last request, as it is shown.
    pub(super) message: Option<Result<String, String>>,
    /// The lines of the table or of the text that fit the screen, set when it is drawn.
    pub(super) page: usize,
    /// The lines of the text after wrapping, set when it is drawn.
    pub(super) wrapped: usize,
}

const HELP: &str = "\
Up, Down, Page Up, Page Down, Home, End   move
/        filter by a text in any column; Enter keeps it, Escape removes it
< >      sort by the column to the left or to the right; first is the order of the configuration
o        reverse the order
Enter l  the last lines of the job; they are followed while the last one is shown, f follows again
e        why the job is in its state
s        start the job
t        stop it
r        restart it
k        send it a signal
q        quit; in a text: back to the table, like Escape";

impl App {
    /// Takes a new status.
    pub(super) fn update(&mut self, status: &Status) {
        self.trouble = None;
        self.summary = program(status);
        if !matches!(status.phase.as_str(), "running" | "") {
            self.summary += &format!(", {}", status.phase);
        }
        if status.maintenance {
            self.summary += ", in maintenance mode";
        }
        self.summary = sanitized(&self.summary);
        self.rows = rows(status, &mut self.usage);
    }

    /// The rows that the filter leaves, sorted.
    pub(super) fn visible(&self) -> Vec<&JobRow> {
        let mut visible: Vec<&JobRow> = self.rows.iter().filter(|row| row.matches(&self.filter)).collect();
        sort_by(&mut visible, |a, b| a.compare(b, self.sort));
        if self.reversed {
            visible.reverse();
        }
        visible
    }

    /// The place of the selected job among the visible ones. If it is gone, another one is selected.
    pub(super) fn select(&mut self) -> usize {
        let visible = self.visible();
        let place = visible.iter().position(|row| row.name == self.selected);
        let place = place.unwrap_or_else(|| self.place.min(visible.len().saturating_sub(1)));
        let name = visible.get(place).map(|row| row.name.clone()).unwrap_or_default();
        (self.place, self.selected) = (place, name);
        place
    }

    pub(super) fn key(&mut self, key: KeyPress) -> Reaction {
        self.message = None;
        if key == KeyPress::Interrupt {
            return Reaction::Quit;
        }
        match self.prompt.take() {
            Some(Prompt::Filter) => self.filter_key(key),
            Some(Prompt::Confirm(act)) => match key {
                KeyPress::Char('y' | 'Y') => Reaction::Act(act),
                _ => Reaction::Nothing,
            },
            Some(Prompt::Signal(job, text)) => self.signal_key(job, text, key),
            None if self.pane.is_some() => self.pane_key(key),
            None => self.table_key(key),
        }
    }

    fn filter_key(&mut self, key: KeyPress) -> Reaction {
        match key {
            KeyPress::Enter => return Reaction::Nothing,
            KeyPress::Escape => {
                self.filter.clear();
                return Reaction::Nothing;
            }
            KeyPress::Backspace => drop(self.filter.pop()),
            KeyPress::Char(c) if self.filter.chars().count() < 100 => self.filter.push(c),
            _ => {}
        }
        self.prompt = Some(Prompt::Filter);
        Reaction::Nothing
    }

    fn signal_key(&mut self, job: String, mut text: String, key: KeyPress) -> Reaction {
        match key {
            KeyPress::Escape => return Reaction::Nothing,
            KeyPress::Enter if text.is_empty() => return Reaction::Nothing,
            KeyPress::Enter => return Reaction::Act(Act { job, action: "signal", signal: Some(text) }),
            KeyPress::Backspace => drop(text.pop()),
            KeyPress::Char(c) if c.is_ascii_alphanumeric() && text.len() < 20 => {
                text.push(c.to_ascii_uppercase())
            }
            _ => {}
        }
        self.prompt = Some(Prompt::Signal(job, text));
        Reaction::Nothing
    }

    fn pane_key(&mut self, key: KeyPress) -> Reaction {
        let last = self.wrapped.saturating_sub(self.page);
        let page = self.page.max(1);
        let Some(pane) = &mut self.pane else { return Reaction::Nothing };
        let top = pane.top.min(last);
        pane.top = match key {
            KeyPress::Escape | KeyPress::Char('q') => {
                self.pane = None;
                return Reaction::Nothing;
            }
            KeyPress::Up => top.saturating_sub(1),
            KeyPress::Down => top + 1,
            KeyPress::PageUp => top.saturating_sub(page),
            KeyPress::PageDown => top + page,
            KeyPress::Home => 0,
            KeyPress::End | KeyPress::Char('f') => last,
            _ => return Reaction::Nothing,
        }
        .min(last);
        let followed = pane.follow;
        pane.follow = matches!(pane.kind, PaneKind::Logs(_)) && pane.top >= last;
        if pane.follow && !followed { Reaction::Refresh } else { Reaction::Nothing }
    }

    fn table_key(&mut self, key: KeyPress) -> Reaction {
        let place = self.select();
        let last = self.visible().len().saturating_sub(1);
        let page = self.page.max(1);
        let to = match key {
            KeyPress::Up => place.saturating_sub(1),
            KeyPress::Down => place + 1,
            KeyPress::PageUp => place.saturating_sub(page),
            KeyPress::PageDown => place + page,
            KeyPress::Home => 0,
            KeyPress::End => last,
            KeyPress::Char('q') => return Reaction::Quit,
            KeyPress::Escape => {
                self.filter.clear();
                return Reaction::Nothing;
            }
            other => return self.command(other),
        };
        self.selected = self.visible().get(to.min(last)).map(|row| row.name.clone()).unwrap_or_default();
        Reaction::Nothing
    }

    fn command(&mut self, key: KeyPress) -> Reaction {
        let job = self.selected.clone();
        match key {
            KeyPress::Char('/') => self.prompt = Some(Prompt::Filter),
            KeyPress::Char('<') => self.sort = self.sort.next(true),
            KeyPress::Char('>') => self.sort = self.sort.next(false),
            KeyPress::Char('o') => self.reversed = !self.reversed,
            KeyPress::Char('?' | 'h') => {
                let lines = HELP.lines().map(str::to_owned).collect();
                self.pane = Some(Pane { kind: PaneKind::Help, lines, top: 0, follow: false });
            }
            _ if job.is_empty() => {}
            KeyPress::Enter | KeyPress::Char('l') => return self.open(PaneKind::Logs(job), true),
            KeyPress::Char('e') => return self.open(PaneKind::Explain(job), false),
            KeyPress::Char('s') => self.ask(job, "start"),
            KeyPress::Char('t') => self.ask(job, "stop"),
            KeyPress::Char('r') => self.ask(job, "restart"),
            KeyPress::Char('k') => self.prompt = Some(Prompt::Signal(job, String::new())),
            _ => {}
        }
        Reaction::Nothing
    }

    fn open(&mut self, kind: PaneKind, follow: bool) -> Reaction {
        self.pane = Some(Pane { kind, lines: Vec::new(), top: 0, follow });
        Reaction::Refresh
    }

    fn ask(&mut self, job: String, action: &'static str) {
        self.prompt = Some(Prompt::Confirm(Act { job, action, signal: None }));
    }
}

/// The lines of a job as they can be shown: without escape sequences, tabs as blanks, other control characters
/// replaced.
pub(super) fn log_lines(text: &str) -> Vec<String> {
    text.lines().map(|line| sanitized(&without_escapes(line).replace('\t', "    "))).collect()
}

/// Removes the sequences by which programs choose colours: `ESC [ … letter`.
fn without_escapes(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| ('@'..='~').contains(&c));
        out.push_str(end.and_then(|end| part.get(end + 1..)).unwrap_or_default());
    }
    out
}
