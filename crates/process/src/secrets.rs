//! Reads the files of secrets for processes that are being started (P11).
//!
//! A file may be on a file system that does not answer, so the event loop does not read it. The new process waits for
//! its secrets at a pipe, and a thread reads the files with the rights of the supervisor and writes them there. While
//! the process waits, it is killed, given up and reaped like any other that has not executed its program. There is one
//! thread for each set of files that is wanted just now: a file system that does not answer holds up only the starts
//! that need it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use containerpilot_log_format::{HiddenValues, Patterns};
use nix::errno::Errno;
use thiserror::Error;

use crate::error_text::describe;
use crate::regular_file;

/// The most bytes of a value.
pub const MAX_BYTES: usize = 64 * 1024;
/// How many starts wait for one set of files. More of them only wait if the files cannot be read.
const MAX_WAITING: usize = 1000;

/// The files of secrets by the names of their variables.
type Files = BTreeMap<String, String>;

/// A start that waits for its secrets.
#[derive(Debug)]
struct Waiting {
    pipe: OwnedFd,
    hidden: HiddenValues,
}

/// The starts that wait for secrets. There is a thread for each entry.
#[derive(Clone, Debug, Default)]
pub struct SecretReader {
    waiting: Arc<Mutex<BTreeMap<Files, VecDeque<Waiting>>>>,
}

/// The errors that are about the content of a file.
const NOT_REGULAR: Errno = Errno::EINVAL;
const TOO_LARGE: Errno = Errno::EFBIG;
const NUL_BYTE: Errno = Errno::EILSEQ;

impl SecretReader {
    /// Has the files read and written to the pipe, in the form that [`sys::start`](crate::sys::start) expects. Returns
    /// the values that the log must hide; they are known before the process has executed its program.
    pub fn read(&self, files: &Files, pipe: OwnedFd) -> io::Result<HiddenValues> {
        let hidden = HiddenValues::default();
        let waiting = Waiting { pipe, hidden: hidden.clone() };
        let mut all = self.lock();
        if let Some(same) = all.get_mut(files) {
            if same.len() >= MAX_WAITING {
                return Err(io::Error::other(
                    "its files cannot be read, and too many processes wait for them",
                ));
            }
            same.push_back(waiting);
            return Ok(hidden);
        }
        let thread = std::thread::Builder::new().name("secrets".to_owned()).stack_size(256 * 1024);
        let (reader, wanted) = (self.clone(), files.clone());
        thread.spawn(move || reader.run(&wanted))?;
        all.insert(files.clone(), VecDeque::from([waiting]));
        Ok(hidden)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Files, VecDeque<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next start that waits for these files. Without one, the thread ends.
    fn next(&self, files: &Files) -> Option<Waiting> {
        let mut all = self.lock();
        let next = all.get_mut(files).and_then(VecDeque::pop_front);
        if next.is_none() {
            all.remove(files);
        }
        next
    }

    fn run(&self, files: &Files) {
        while let Some(Waiting { pipe, hidden }) = self.next(files) {
            // After a panic the pipe is closed, and the start fails.
            let _ = catch_unwind(AssertUnwindSafe(|| serve(files, File::from(pipe), &hidden)));
        }
    }
}

/// Writes two numbers: an error and the position of its file, or 0 and the number of bytes that follow. These are the
/// variables, each with a NUL at its end.
fn serve(files: &Files, mut pipe: File, hidden: &HiddenValues) {
    let mut variables = Vec::new();
    let mut values = Vec::new();
    for (nth, (name, file)) in files.iter().enumerate() {
        match value(file) {
            Ok(value) => {
                variables.extend_from_slice(name.as_bytes());
                variables.push(b'=');
                variables.extend_from_slice(&value);
                variables.push(0);
                values.push(value);
            }
            Err(SecretError(errno)) => {
                let nth = u32::try_from(nth).unwrap_or(u32::MAX);
                let _ = pipe.write_all(&head(errno as i32 as u32, nth));
                return;
            }
        }
    }
    hidden.set(Patterns::new(values.iter().map(Vec::as_slice)).map(Arc::new));
    // It fails if the process was killed.
    let _ = pipe
        .write_all(&head(0, u32::try_from(variables.len()).unwrap_or(u32::MAX)))
        .and_then(|()| pipe.write_all(&variables));
}

fn head(errno: u32, number: u32) -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&errno.to_ne_bytes());
    head[4..].copy_from_slice(&number.to_ne_bytes());
    head
}

/// Why a file has no value for a secret: an error of the system, or one of those above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub struct SecretError(pub(crate) Errno);

impl fmt::Display for SecretError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NOT_REGULAR => out.write_str("not a regular file"),
            TOO_LARGE => write!(out, "larger than {} KiB", MAX_BYTES / 1024),
            NUL_BYTE => out.write_str("it contains a NUL byte"),
            errno => out.write_str(&describe(&io::Error::from(errno))),
        }
    }
}

/// The value of a secret: the content of a file without one newline at its end (D15).
pub fn value(file: &str) -> Result<Vec<u8>, SecretError> {
    // Two bytes more for the newline, and one to find out that it is larger.
    let read = regular_file::read(file, MAX_BYTES as u64 + 3);
    let mut value =
        read.map_err(|error| SecretError(error.raw_os_error().map_or(NOT_REGULAR, Errno::from_raw)))?;
    if value.ends_with(b"\n") {
        value.pop();
        if value.ends_with(b"\r") {
            value.pop();
        }
    }
    match value {
        large if large.len() > MAX_BYTES => Err(SecretError(TOO_LARGE)),
        binary if binary.contains(&0) => Err(SecretError(NUL_BYTE)),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use containerpilot_test_support as test_support;

    fn read(reader: &SecretReader, files: &[(&str, &std::path::Path)]) -> (Vec<u8>, HiddenValues) {
        let files = files.iter().map(|(name, file)| ((*name).to_owned(), file.to_str().unwrap().to_owned()));
        let (mut output, pipe) = io::pipe().unwrap();
        let hidden = reader.read(&files.collect(), pipe.into()).unwrap();
        let mut written = Vec::new();
        output.read_to_end(&mut written).unwrap();
        (written, hidden)
    }

    #[test]
    fn p11_files_are_read_without_one_newline_and_within_bounds() {
        let folder = test_support::folder();
        let reader = SecretReader::default();
        let file = folder.join("secret");
        let written = |content: &[u8]| {
            std::fs::write(&file, content).unwrap();
            read(&reader, &[("NAME", &file)]).0
        };
        let expected = |value: &[u8]| {
            let variable = [b"NAME=", value, b"\0"].concat();
            [&head(0, u32::try_from(variable.len()).unwrap())[..], &variable].concat()
        };
        let failed = |errno: Errno| head(errno as i32 as u32, 0).to_vec();
        for (content, value) in [
            (&b"hunter2\n"[..], &b"hunter2"[..]),
            (b"a\n\n", b"a\n"),
            (b"a\r\n", b"a"),
            (b"", b""),
            (b"\xff", b"\xff"),
        ] {
            assert_eq!(written(content), expected(value));
        }
        let large = vec![b'x'; MAX_BYTES];
        assert_eq!(written(&[&large[..], b"\n"].concat()), expected(&large));
        assert_eq!(written(&[&large[..], b"x"].concat()), failed(TOO_LARGE));
        assert_eq!(written(b"a\0b"), failed(NUL_BYTE));
        assert_eq!(read(&reader, &[("NAME", &folder)]).0, failed(NOT_REGULAR));
        assert_eq!(read(&reader, &[("NAME", &folder.join("none"))]).0, failed(Errno::ENOENT));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn p11_values_to_hide_are_known_and_threads_end() {
        let folder = test_support::folder();
        let (reader, file) = (SecretReader::default(), folder.join("secret"));
        std::fs::write(&file, "hunter2").unwrap();
        let (_, hidden) = read(&reader, &[("A", &file), ("B", &file)]);
        assert_eq!(hidden.get().unwrap().redact(b"a hunter2"), b"a ***");
        while !reader.lock().is_empty() {
            std::thread::yield_now();
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
