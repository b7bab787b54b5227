//! The output of the log, which never blocks.
//!
//! Standard output is shared with the parent shell and with jobs whose output is raw. Setting it non-blocking would
//! change it for them too. So a pipe or terminal is opened again through `/proc/self/fd`, which gives an open file
//! description of our own. Where that is refused, the stream is polled before each write, and gets at most `PIPE_BUF`
//! bytes.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use containerpilot_core::plan::{self, Level, LogFile};
use containerpilot_process::error_text::describe;
use containerpilot_process::{paths, sys};

use super::job_file::JobFile;
use super::loss::Loss;

/// A writable pipe accepts this much without blocking (`PIPE_BUF`).
const ATOMIC_WRITE: usize = 4096;
/// The capacity requested for a pipe that is the output: fewer switches between the supervisor and the reader.
const PIPE: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct LogSink {
    target: plan::Output,
    method: Method,
}

/// How to write without blocking.
#[derive(Debug)]
enum Method {
    /// A regular file, or a non-blocking open file description of our own.
    Direct(File),
    /// A socket, with `MSG_DONTWAIT` at every write.
    Socket(OwnedFd),
    /// A shared blocking stream: polled first, with small writes.
    Polled(File),
    /// The file of a job (L8).
    Job(JobFile),
}

impl LogSink {
    /// Opens an output. The error names it.
    pub(super) fn open(target: &plan::Output) -> io::Result<Self> {
        let method = match target {
            plan::Output::Stdout => io::stdout().as_fd().try_clone_to_owned().and_then(Method::shared),
            plan::Output::Stderr => io::stderr().as_fd().try_clone_to_owned().and_then(Method::shared),
            plan::Output::File(path) => open_file(path).map(Method::Direct),
        };
        let method = method.map_err(|error| {
            let message = format!("cannot open the log output {}: {}", name(target), describe(&error));
            io::Error::new(error.kind(), message)
        })?;
        Ok(Self { target: target.clone(), method })
    }

    /// Returns true if it is a terminal that shows colours.
    pub(super) fn has_colour(&self) -> bool {
        let is_terminal = match self.target {
            plan::Output::Stdout => io::stdout().is_terminal(),
            plan::Output::Stderr => io::stderr().is_terminal(),
            plan::Output::File(_) => false,
        };
        is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// The file of a job. It is opened with the first write.
    pub(super) fn job_file(settings: LogFile) -> Self {
        let target = plan::Output::File(settings.path.clone());
        Self { target, method: Method::Job(JobFile::new(settings)) }
    }

    /// Changes the rotation of the file of a job. Returns false if it is not this file.
    pub(super) fn set_rotation(&mut self, settings: &LogFile) -> bool {
        match &mut self.method {
            Method::Job(file) if self.target == plan::Output::File(settings.path.clone()) => {
                file.set_rotation(settings);
                true
            }
            _ => false,
        }
    }

    /// What is to be logged about the rotation of a job's file, and what was lost by it.
    pub(super) fn take_notice(&mut self) -> (Option<(Level, String)>, Loss) {
        match &mut self.method {
            Method::Job(file) => (file.take_notice(), file.take_lost()),
            _ => (None, Loss::default()),
        }
    }

    /// An output to this descriptor, in place of standard output.
    #[cfg(test)]
    pub(super) fn shared(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { target: plan::Output::Stdout, method: Method::shared(fd)? })
    }

    /// Writes some of the bytes, or fails with `WouldBlock`.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.method {
            Method::Direct(file) => file.write(bytes),
            Method::Socket(fd) => sys::send_now(fd.as_fd(), bytes),
            Method::Polled(file) => {
                if !sys::can_write_now(file.as_fd()) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                file.write(bytes.get(..ATOMIC_WRITE).unwrap_or(bytes))
            }
            Method::Job(file) => file.write(bytes),
        }
    }

    /// Writable when the output accepts data again.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.method {
            Method::Direct(file) | Method::Polled(file) => Some(file.as_fd()),
            Method::Socket(fd) => Some(fd.as_fd()),
            // A regular file is always writable.
            Method::Job(_) => None,
        }
    }

    /// Device and inode, to compare two outputs.
    pub(super) fn file_id(&self) -> Option<(u64, u64)> {
        let metadata = match &self.method {
            Method::Direct(file) | Method::Polled(file) => file.metadata().ok()?,
            Method::Socket(fd) => File::from(fd.try_clone().ok()?).metadata().ok()?,
            Method::Job(file) => return file.id(),
        };
        Some((metadata.dev(), metadata.ino()))
    }

    /// Reopens a log file by its path after a rotation. If that fails, the old file stays open.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if let Method::Job(file) = &mut self.method {
            return file.reopen();
        }
        if let plan::Output::File(path) = &self.target {
            self.method = Method::Direct(open_file(path)?);
        }
        Ok(())
    }

    /// Returns true if the error is permanent: the reader of the stream has closed it. A log file, also a named pipe,
    /// can recover.
    pub(super) fn is_gone(&self, error: &io::Error) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
        // EBADF has no `ErrorKind`.
        let bad_descriptor = error.raw_os_error() == Some(nix::libc::EBADF);
        !matches!(self.target, plan::Output::File(_))
            && (bad_descriptor || matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected))
    }

    /// The name in messages.
    pub(super) fn name(&self) -> &str {
        name(&self.target)
    }
}

fn name(target: &plan::Output) -> &str {
    match target {
        plan::Output::Stdout => "standard output",
        plan::Output::Stderr => "standard error",
        plan::Output::File(path) => path,
    }
}

impl Method {
    /// How to write to a stream that other processes may share.
    fn shared(fd: OwnedFd) -> io::Result<Self> {
        let file = File::from(fd);
        let kind = file.metadata()?.file_type();
        let method = if kind.is_file() {
            Self::Direct(file)
        } else if kind.is_socket() {
            Self::Socket(file.into())
        } else {
            match reopen_nonblocking(&file) {
                Ok(own) => Self::Direct(own),
                Err(_) => Self::Polled(file),
            }
        };
        if let (Self::Direct(file) | Self::Polled(file), true) = (&method, kind.is_fifo()) {
            let _ = sys::grow_pipe(file.as_fd(), PIPE);
        }
        Ok(method)
    }
}

/// Opens a log file for appending. Does not block, not even on a named pipe without a reader.
fn open_file(path: &str) -> io::Result<File> {
    paths::append(Path::new(path))
}

/// Opens the file behind a descriptor again, non-blocking.
fn reopen_nonblocking(file: &File) -> io::Result<File> {
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

/// Writes a message about the log itself to standard error, if that does not block.
pub(crate) fn write_stderr(text: &str) {
    if let Ok(mut stderr) = LogSink::open(&plan::Output::Stderr) {
        let _ = stderr.write(format!("containerpilot: {text}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn fill(output: &mut LogSink) -> usize {
        let mut written = 0;
        loop {
            match output.write(&[b'x'; 10_000]) {
                Ok(count) => written += count,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    return written;
                }
            }
        }
    }

    #[test]
    fn l4_full_pipe_does_not_block_and_stays_blocking_for_others() {
        let (_reader, writer) = io::pipe().unwrap();
        let others = writer.try_clone().unwrap();
        let mut output = LogSink::shared(writer.into()).unwrap();
        assert!(fill(&mut output) > 10_000);
        let flags = nix::fcntl::fcntl(&others, nix::fcntl::FcntlArg::F_GETFL).unwrap();
        assert_eq!(flags & nix::libc::O_NONBLOCK, 0);
    }

    #[test]
    fn l4_pipe_that_cannot_be_reopened_is_polled_first() {
        let (mut reader, writer) = io::pipe().unwrap();
        let method = Method::Polled(File::from(OwnedFd::from(writer)));
        let mut output = LogSink { target: plan::Output::Stdout, method };
        let written = fill(&mut output);
        assert!(written > 10_000);
        drop(output);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), written);
    }

    #[test]
    fn l4_socket_does_not_block() {
        let (_reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut output = LogSink::shared(writer.into()).unwrap();
        assert!(matches!(output.method, Method::Socket(_)));
        assert!(fill(&mut output) > 10_000);
    }

    #[test]
    fn l1_errors_name_the_output() {
        assert_eq!(LogSink::open(&plan::Output::Stderr).unwrap().name(), "standard error");
        let file = plan::Output::File("/no/such/file".to_owned());
        let error = LogSink::open(&file).unwrap_err().to_string();
        assert_eq!(error, "cannot open the log output /no/such/file: no such file or directory");
    }

    #[test]
    fn l4_closed_reader_is_a_permanent_error() {
        let (reader, writer) = io::pipe().unwrap();
        let mut output = LogSink::shared(writer.into()).unwrap();
        drop(reader);
        let error = output.write(b"x").unwrap_err();
        assert!(output.is_gone(&error));
    }
}
