//! Files with a number of old ones: `FILE.1` is the newest of them (L8, B2).

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use containerpilot_process::paths::FolderEntry;
use nix::fcntl::OFlag;
use nix::libc;

/// Renames the old files up to the first number that is free, or removes the oldest one.
pub(crate) fn make_room(entry: &FolderEntry, keep: u32) -> io::Result<()> {
    if keep == 0 {
        return ignore_missing(entry.remove(entry.name()));
    }
    let is_free = |number: &u32| entry.metadata(&old(entry, *number)).is_err();
    let free = (1..keep).find(is_free).unwrap_or(keep);
    for number in (1..free).rev() {
        ignore_missing(entry.rename(&old(entry, number), &old(entry, number + 1)))?;
    }
    ignore_missing(entry.rename(entry.name(), &old(entry, 1)))
}

/// The name of an old file.
pub(crate) fn old(entry: &FolderEntry, number: u32) -> OsString {
    let mut name = entry.name().to_owned();
    name.push(format!(".{number}"));
    name
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Opens a regular file, without following a link.
pub(crate) fn open(entry: &FolderEntry, flags: OFlag, mode: u32) -> io::Result<File> {
    let file = entry.open(entry.name(), flags, mode).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a symbolic link"),
        // It becomes writable later, but there is no notification.
        Some(libc::EWOULDBLOCK) => io::Error::other("a process has a lease on it"),
        _ => error,
    })?;
    let found = file.metadata()?;
    match () {
        () if !found.is_file() => Err(io::Error::other("not a regular file")),
        // Another user may have given it the name of a file that only the supervisor can write.
        () if found.nlink() > 1 && entry.is_shared() => {
            Err(io::Error::other("it has another name, by a hard link"))
        }
        () => Ok(file),
    }
}
