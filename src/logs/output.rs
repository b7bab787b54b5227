//! Where the log goes, written to without ever waiting.
//!
//! Standard output is shared: with the shell that started us, with children whose output is raw. Setting it
//! non-blocking would change it for them too. So a pipe or a terminal is opened anew through `/proc`, which gives an
//! open file of our own; where that is refused, the stream is asked first and given no more than it takes whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use containerpilot_core::plan;

use crate::process::sys;

/// As much as a pipe that can be written takes whole (`PIPE_BUF`).
const SURE: usize = 4096;
/// The size asked for a pipe that is our output: fewer turns between us and its reader.
const PIPE: usize = 256 * 1024;

/// A place to write to.
#[derive(Debug)]
pub(super) struct Output {
    /// The path, if it is a file of the configuration.
    path: Option<String>,
    way: Way,
}

/// How it is written to.
#[derive(Debug)]
enum Way {
    /// A write never waits: a regular file, or an open file of our own that is non-blocking.
    Direct(File),
    /// A socket, told with every write not to wait.
    Socket(OwnedFd),
    /// Something shared that would wait: asked first, and given little at a time.
    Careful(File),
}

impl Output {
    /// Opens what a configuration names.
    pub(super) fn open(output: &plan::Output) -> io::Result<Self> {
        match output {
            plan::Output::Stdout => Self::shared(io::stdout().as_fd().try_clone_to_owned()?),
            plan::Output::Stderr => Self::shared(io::stderr().as_fd().try_clone_to_owned()?),
            plan::Output::File(path) => {
                Ok(Self { way: Way::Direct(open_file(path)?), path: Some(path.clone()) })
            }
        }
    }

    /// Writes to a stream that others may hold too.
    pub(super) fn shared(fd: OwnedFd) -> io::Result<Self> {
        let file = File::from(fd);
        let kind = file.metadata()?.file_type();
        let way = if kind.is_file() {
            Way::Direct(file)
        } else if kind.is_socket() {
            Way::Socket(file.into())
        } else {
            match open_own(&file) {
                Ok(own) => Way::Direct(own),
                Err(_) => Way::Careful(file),
            }
        };
        if let (Way::Direct(file) | Way::Careful(file), true) = (&way, kind.is_fifo())
            && sys::pipe_size(file.as_fd()).is_some_and(|size| size < PIPE)
        {
            let _ = sys::grow_pipe(file.as_fd(), PIPE);
        }
        Ok(Self { path: None, way })
    }

    /// Writes some of the bytes, or says that it would have to wait.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.way {
            Way::Direct(file) => file.write(bytes),
            Way::Socket(fd) => sys::send_now(fd.as_fd(), bytes),
            Way::Careful(file) => {
                if !sys::can_write_now(file.as_fd()) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                file.write(bytes.get(..SURE).unwrap_or(bytes))
            }
        }
    }

    /// What to wait for until it can be written again.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Direct(file) | Way::Careful(file) => file.as_fd(),
            Way::Socket(fd) => fd.as_fd(),
        }
    }

    /// Device and number of what is written to, by which it can be told whether another output leads to the same place.
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        let about = match &self.way {
            Way::Direct(file) | Way::Careful(file) => file.metadata().ok()?,
            Way::Socket(fd) => File::from(fd.try_clone().ok()?).metadata().ok()?,
        };
        Some((about.dev(), about.ino()))
    }

    /// Opens a file again by its name, after it was rotated. Anything else stays as it is.
    ///
    /// If that fails the old file is still there to be written.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.way = Way::Direct(open_file(path)?);
        }
        Ok(())
    }

    /// Whether an error means that nobody will ever read what is written here.
    ///
    /// A stream whose reader has left gets no other; a file (also a named pipe) can recover.
    pub(super) fn is_gone(&self, error: &io::Error) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
        // EBADF has no kind of its own.
        let bad_descriptor = error.raw_os_error() == Some(nix::libc::EBADF);
        self.path.is_none()
            && (bad_descriptor || matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected))
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> &str {
        self.path.as_deref().unwrap_or("the standard streams")
    }
}

/// Opens a log file to append to it. Never waits, not even for the reader of a named pipe.
fn open_file(path: &str) -> io::Result<File> {
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    OpenOptions::new().append(true).create(true).custom_flags(flags).open(path)
}

/// Opens what is behind a descriptor anew, non-blocking.
fn open_own(file: &File) -> io::Result<File> {
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

/// Says something on standard error, if that can be done without waiting: for troubles of the log itself.
pub(super) fn complain(text: &str) {
    if let Ok(mut stderr) = Output::open(&plan::Output::Stderr) {
        let _ = stderr.write(format!("containerpilot: {text}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn fill(output: &mut Output) -> usize {
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
    fn l4_a_full_pipe_is_not_waited_for_and_not_changed_for_others() {
        let (_reader, writer) = io::pipe().unwrap();
        let others = writer.try_clone().unwrap();
        let mut output = Output::shared(writer.into()).unwrap();
        assert!(fill(&mut output) > 10_000);
        let flags = nix::fcntl::fcntl(&others, nix::fcntl::FcntlArg::F_GETFL).unwrap();
        assert_eq!(flags & nix::libc::O_NONBLOCK, 0);
    }

    #[test]
    fn l4_a_pipe_that_cannot_be_opened_anew_is_asked_first() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = Output { path: None, way: Way::Careful(File::from(OwnedFd::from(writer))) };
        let written = fill(&mut output);
        assert!(written > 10_000);
        drop(output);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), written);
    }

    #[test]
    fn l4_a_socket_is_not_waited_for() {
        let (_reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut output = Output::shared(writer.into()).unwrap();
        assert!(matches!(output.way, Way::Socket(_)));
        assert!(fill(&mut output) > 10_000);
    }

    #[test]
    fn l4_a_reader_that_left_is_gone() {
        let (reader, writer) = io::pipe().unwrap();
        let mut output = Output::shared(writer.into()).unwrap();
        drop(reader);
        let error = output.write(b"x").unwrap_err();
        assert!(output.is_gone(&error));
    }
}
