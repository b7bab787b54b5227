//! Reads files that a job may have replaced.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc;

/// The content of a regular file, at most `limit` bytes. Another kind of file, such as a FIFO, and one that can only be opened
/// later, because a process has a lease on it, are errors: waiting for them could take forever.
pub(crate) fn read(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;

    #[test]
    fn e7_only_regular_files_are_read_up_to_a_limit() {
        let folder = test_support::folder();
        let (file, fifo) = (folder.join("file"), folder.join("fifo"));
        std::fs::write(&file, "0123456789").unwrap();
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"0123");
        assert_eq!(read(&file, 100).unwrap(), b"0123456789");
        for other in [&fifo, &folder, Path::new("/dev/zero")] {
            assert_eq!(read(other, 100).unwrap_err().to_string(), "not a regular file");
        }
        assert_eq!(read(folder.join("none"), 100).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
