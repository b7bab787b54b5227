//! Reads and appends to files that a job may have replaced, by [`paths`](crate::paths).

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{AccessFlags, access};

use crate::paths::{self, FolderEntry};

/// The content of a regular file, at most `limit` bytes. Another kind of file, such as a FIFO, and one that can only be
/// opened later, because a process has a lease on it, are errors: waiting for them could take forever.
pub fn read(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let file = regular(paths::open(path.as_ref())?)?;
    // One call for a short file. The size may change meanwhile.
    let size = file.metadata()?.len().min(limit);
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0).saturating_add(1));
    file.take(limit).read_to_end(&mut content)?;
    Ok(content)
}

/// Appends to a regular file that exists.
pub fn append(path: impl AsRef<Path>, text: &[u8]) -> io::Result<()> {
    let entry = FolderEntry::of(path.as_ref(), false)?;
    regular(entry.open(entry.name(), OFlag::O_WRONLY | OFlag::O_APPEND, 0)?)?.write_all(text)
}

/// Opens any file for reading, and closes it. Does not wait for the writer of a FIFO.
pub fn try_open(path: impl AsRef<Path>) -> io::Result<()> {
    paths::open(path.as_ref()).map(drop)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

/// Checks that a file can be written, or created with its missing folders.
pub fn writable(path: &Path) -> io::Result<()> {
    match access(path, AccessFlags::W_OK) {
        Ok(()) if path.is_dir() => return Err(Errno::EISDIR.into()),
        Err(Errno::ENOENT) => {}
        result => return Ok(result?),
    }
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        match access(folder, AccessFlags::W_OK | AccessFlags::X_OK) {
            Err(Errno::ENOENT) => {}
            Ok(()) if !folder.is_dir() => return Err(Errno::ENOTDIR.into()),
            result => return Ok(result?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use containerpilot_test_support as test_support;

    #[test]
    fn e7_only_regular_files_are_read_and_appended_to() {
        let folder = test_support::folder();
        let (file, fifo) = (folder.join("file"), folder.join("fifo"));
        std::fs::write(&file, "0123456789").unwrap();
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"0123");
        assert_eq!(read(&file, 100).unwrap(), b"0123456789");
        for other in [&fifo, &folder, Path::new("/dev/zero")] {
            assert_eq!(read(other, 100).unwrap_err().to_string(), "not a regular file");
        }
        append(&file, b"ab").unwrap();
        assert_eq!(read(&file, 100).unwrap(), b"0123456789ab");
        for other in [&fifo, &folder.join("none")] {
            assert!(append(other, b"ab").is_err());
        }
        assert_eq!(read(folder.join("none"), 100).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
