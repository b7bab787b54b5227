//! The log file of a job, and its rotation (L8).
//!
//! The file is opened with the first write, on the thread of this file: a file system may not answer. Only a regular
//! file is opened, and its folder is found by [`paths`](containerpilot_process::paths) each time: a job that may change
//! a folder must not be able to direct the writes of the supervisor elsewhere. A rotation is between two lines: `FILE`
//! becomes `FILE.1`, `FILE.1` becomes `FILE.2`, and so on.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use containerpilot_core::plan::{Level, LogFile};
use containerpilot_process::error_text::describe;
use containerpilot_process::paths::FolderEntry;
use nix::fcntl::OFlag;

use super::loss::Loss;
use crate::rotation;

#[derive(Debug)]
pub(super) struct JobFile {
    settings: LogFile,
    /// `None` until the first write.
    file: Option<File>,
    size: u64,
    /// The size at which it is rotated.
    limit: u64,
    /// Whether the last line is complete.
    line_ended: bool,
    /// Set while it cannot be rotated.
    stuck: Option<Stuck>,
    /// What is to be logged about the rotation.
    notice: Option<(Level, String)>,
    /// Lines that were lost and not counted yet.
    lost: Loss,
}

/// A rotation that fails.
#[derive(Debug)]
struct Stuck {
    /// When it is tried again, and the delay after that.
    retry_at: Instant,
    delay: Duration,
    /// What was lost since then.
    lost: Loss,
}

/// The first delay between two attempts to rotate a file, and the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);

impl JobFile {
    pub(super) fn new(settings: LogFile) -> Self {
        let mut this = Self {
            settings,
            file: None,
            size: 0,
            limit: 0,
            line_ended: true,
            stuck: None,
            notice: None,
            lost: Loss::default(),
        };
        this.set_limit();
        this
    }

    /// Device and inode of the open file.
    pub(super) fn id(&self) -> Option<(u64, u64)> {
        id(self.file.as_ref()?)
    }

    /// That the rotation fails, or works again; each once.
    pub(super) fn take_notice(&mut self) -> Option<(Level, String)> {
        self.notice.take()
    }

    /// What was lost since the last call.
    pub(super) fn take_lost(&mut self) -> Loss {
        std::mem::take(&mut self.lost)
    }

    /// Changes size and number. The path must be the same.
    pub(super) fn set_rotation(&mut self, settings: &LogFile) {
        self.settings.clone_from(settings);
        self.set_limit();
    }

    fn set_limit(&mut self) {
        self.limit = self.settings.max_size.map_or(u64::MAX, u64::from);
        self.stuck = None;
    }

    /// Opens the path again. If that fails, the old file stays open.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        let file = open(&self.settings.path)?;
        // The same file may have a line that is written in part.
        if id(&file) != self.id() { self.begin(file) } else { Ok(()) }
    }

    /// Continues with a newly opened file. Its last line is completed, so that it is not mixed with the next one.
    fn begin(&mut self, mut file: File) -> io::Result<()> {
        let mut size = file.metadata()?.len();
        let mut last = [b'\n'];
        if let Some(end) = size.checked_sub(1) {
            file.read_exact_at(&mut last, end)?;
        }
        if last != *b"\n" {
            size += file.write(b"\n")? as u64;
        }
        (self.size, self.line_ended, self.file) = (size, true, Some(file));
        self.set_limit();
        Ok(())
    }

    /// Writes some of the bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.begin(open(&self.settings.path)?)?;
        }
        let mut end = self.end_of_part(bytes);
        // A file that cannot be rotated is full only at its bound, but is tried before.
        if end.is_none() || self.stuck.as_ref().is_some_and(|stuck| stuck.retry_at <= Instant::now()) {
            self.rotate();
            end = self.end_of_part(bytes);
        }
        if let (None, Some(stuck)) = (end, &mut self.stuck) {
            let loss = Loss::of(bytes);
            stuck.lost += loss;
            self.lost += loss;
            return Ok(bytes.len());
        }
        // A line that is longer than a whole file.
        let end = end.unwrap_or_else(|| line_end(bytes));
        let part = bytes.get(..end).unwrap_or_default();
        let count = self.file.as_mut().map_or(Ok(0), |file| file.write(part))?;
        self.size += count as u64;
        self.line_ended = part.get(..count).is_some_and(|written| written.ends_with(b"\n"));
        Ok(count)
    }

    /// How much goes into this file: whole lines, as far as they fit, or the rest of a line. `None` if the file is
    /// full.
    fn end_of_part(&self, bytes: &[u8]) -> Option<usize> {
        let room = usize::try_from(self.limit.saturating_sub(self.size)).unwrap_or(usize::MAX);
        if bytes.len() <= room {
            return Some(bytes.len());
        }
        let lines = bytes.get(..room).and_then(|fitting| memchr::memrchr(b'\n', fitting)).map(|end| end + 1);
        lines.or_else(|| (!self.line_ended).then(|| line_end(bytes)))
    }

    /// Begins a new file. If that fails, the present one grows up to the size of all files together, and it is tried
    /// again from time to time.
    fn rotate(&mut self) {
        let now = Instant::now();
        if self.size == 0 || self.stuck.as_ref().is_some_and(|stuck| now < stuck.retry_at) {
            return;
        }
        let (path, before) = (self.settings.path.clone(), self.stuck.take());
        let entry = FolderEntry::of(Path::new(&path), true);
        let Err(error) = entry.and_then(|entry| self.begin_new(&entry)) else {
            if let Some(Stuck { lost, .. }) = before {
                let lost = if lost.is_none() { String::new() } else { format!("; {lost} were lost") };
                self.notice = Some((Level::Warn, format!("rotating {path} works again{lost}")));
            }
            return;
        };
        let max_size = self.settings.max_size.map_or(u64::MAX, u64::from);
        self.limit =
            max_size.saturating_mul(u64::from(self.settings.keep) + 1).max(max_size.saturating_mul(2));
        if before.is_none() {
            let (why, limit) = (describe(&error), self.limit);
            let message =
                format!("cannot rotate {path}: {why}; it grows to {limit} bytes, then its lines are lost");
            self.notice = Some((Level::Error, message));
        }
        let (delay, lost) = before.map_or((FIRST_RETRY, Loss::default()), |stuck| (stuck.delay, stuck.lost));
        self.stuck = Some(Stuck { retry_at: now + delay, delay: (2 * delay).min(LAST_RETRY), lost });
    }

    /// Begins a new file. If it cannot be opened, the present one gets its name back.
    fn begin_new(&mut self, entry: &FolderEntry) -> io::Result<()> {
        rotation::make_room(entry, self.settings.keep)?;
        let new = open_at(entry).and_then(|file| {
            let is_old = id(&file) == self.id();
            if is_old { Err(io::Error::other("another process has renamed it")) } else { self.begin(file) }
        });
        if new.is_err() && self.settings.keep > 0 && entry.metadata(entry.name()).is_err() {
            let _ = entry.rename(&rotation::old(entry, 1), entry.name());
        }
        new
    }
}

/// The end of the first line, with its newline.
fn line_end(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)
}

fn id(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Opens a regular file for appending. Its folder is created if it is missing (S16).
fn open(path: &str) -> io::Result<File> {
    open_at(&FolderEntry::of(Path::new(path), true)?)
}

/// It is readable, too: for its last byte.
fn open_at(entry: &FolderEntry) -> io::Result<File> {
    rotation::open(entry, OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT, 0o666)
}

#[cfg(test)]
mod tests;
