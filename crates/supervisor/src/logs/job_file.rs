//! The log file of a job, and its rotation (L8).
//!
//! The file is opened with the first write, on the thread of this file: a file system may not answer. Only a regular
//! file is opened, and no symbolic link is followed: a job that may write to the folder must not be able to direct the
//! writes of the supervisor elsewhere. A rotation is between two lines: `FILE` becomes `FILE.1`, `FILE.1` becomes
//! `FILE.2`, and so on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use containerpilot_core::plan::LogFile;
use containerpilot_process::error_text::describe;
use nix::libc;

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
    /// Why it could not be rotated, until that is reported.
    problem: Option<String>,
}

impl JobFile {
    pub(super) fn new(settings: LogFile) -> Self {
        let mut this = Self { settings, file: None, size: 0, limit: 0, line_ended: true, problem: None };
        this.set_limit();
        this
    }

    /// Device and inode of the open file.
    pub(super) fn id(&self) -> Option<(u64, u64)> {
        id(self.file.as_ref()?)
    }

    /// Why the last rotation has failed, once.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// Changes size and number. The path must be the same.
    pub(super) fn set_rotation(&mut self, settings: &LogFile) {
        self.settings.clone_from(settings);
        self.set_limit();
    }

    fn set_limit(&mut self) {
        self.limit = self.settings.max_size.map_or(u64::MAX, u64::from);
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
        if end.is_none() {
            self.rotate();
            end = self.end_of_part(bytes);
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

    /// Begins a new file. If that fails, the present one grows on, and the next attempt is after as many bytes again.
    fn rotate(&mut self) {
        if self.size == 0 {
            return;
        }
        let path = self.settings.path.clone();
        let new = self.make_room().and_then(|()| open(&path)).and_then(|file| {
            let is_old = id(&file) == self.id();
            if is_old { Err(io::Error::other("another process has renamed it")) } else { self.begin(file) }
        });
        if let Err(error) = new {
            let why = describe(&error);
            self.problem = Some(format!("cannot rotate {path}: {why}; the file grows until that works"));
            self.limit = self.size.saturating_add(self.settings.max_size.map_or(u64::MAX, u64::from));
            if self.settings.keep > 0 && !fs::exists(&path).unwrap_or(true) {
                let _ = fs::rename(self.old(1), &path);
            }
        }
    }

    /// Renames the old files up to the first number that is free, or removes the oldest one.
    fn make_room(&self) -> io::Result<()> {
        let LogFile { path, keep, .. } = &self.settings;
        if *keep == 0 {
            return ignore_missing(fs::remove_file(path));
        }
        let is_free = |number: &u32| fs::symlink_metadata(self.old(*number)).is_err();
        let free = (1..*keep).find(is_free).unwrap_or(*keep);
        for number in (1..free).rev() {
            ignore_missing(fs::rename(self.old(number), self.old(number + 1)))?;
        }
        ignore_missing(fs::rename(path, self.old(1)))
    }

    fn old(&self, number: u32) -> String {
        format!("{}.{number}", self.settings.path)
    }
}

/// The end of the first line, with its newline.
fn line_end(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn id(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Opens a regular file for appending. It is readable, too: for its last byte.
fn open(path: &str) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let opened = OpenOptions::new().read(true).append(true).create(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a symbolic link"),
        // It would be writable later, but nothing tells when.
        Some(libc::EWOULDBLOCK) => io::Error::other("a process has a lease on it"),
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

#[cfg(test)]
mod tests;
