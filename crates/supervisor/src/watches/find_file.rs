//! Finds a watched file, and reads it.
//!
//! The path is followed by hand, name by name and link by link, so that each directory in which a name is looked up can
//! be followed before the look-up. Then no change is missed, whether a file is renamed over the old one, a link such as
//! Kubernetes' `..data` is swapped, or a directory appears.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use containerpilot_core::answer::{Entries, MAX_VALUE_BYTES};
use containerpilot_core::input::{Answer, WatchResult};
use containerpilot_process::error_text::describe;
use containerpilot_process::paths::{self, names};
use containerpilot_process::regular_file;
use nix::dir::Dir;
use nix::errno::Errno;

/// Most links on the way to a file, as in the kernel.
const MAX_LINKS: usize = 40;
/// Most names on the way. Each takes as long as its path is long, and has a place in the kernel's list of watches.
const MAX_NAMES: usize = 256;
/// What an entry of a directory costs beside its name and contents.
const ENTRY_BYTES: usize = 64;

/// Most entries of a directory, with those that are no files.
const MAX_ENTRIES: usize = MAX_VALUE_BYTES / ENTRY_BYTES;

/// What a place on the way to a file is followed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// A name in a directory.
    Name(OsString),
    /// The contents of the file, or of any file in the directory.
    Contents,
}

/// Follows a path to its end. `visit` is called with every directory and what is looked up in it, before the look-up,
/// and with the end itself. Returns the end, `None` if it does not exist.
pub(super) fn find(path: &Path, mut visit: impl FnMut(&Path, Interest)) -> io::Result<Option<PathBuf>> {
    let mut at = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = names(path);
    let (mut links, mut followed) = (0, 0);
    while let Some(name) = rest.pop_front() {
        followed += 1;
        if followed > MAX_NAMES {
            return Err(io::Error::other(format!(
                "it has more than {MAX_NAMES} names with those of its links; watch a shorter path"
            )));
        }
        if name == ".." {
            at.pop();
            continue;
        }
        visit(&at, Interest::Name(name.clone()));
        let next = at.join(&name);
        let metadata = match fs::symlink_metadata(&next) {
            Ok(metadata) => metadata,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !metadata.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::ELOOP.into());
        }
        let target = match fs::read_link(&next) {
            Ok(target) => target,
            // It was replaced meanwhile, which is an event.
            Err(error) if is_absent(&error) || error.kind() == ErrorKind::InvalidInput => return Ok(None),
            Err(error) => return Err(error),
        };
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        for name in names(&target).into_iter().rev() {
            rest.push_front(name);
        }
    }
    visit(&at, Interest::Contents);
    Ok(Some(at))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Finds and reads a file or the files of a directory.
pub(super) fn read(path: &Path, visit: impl FnMut(&Path, Interest)) -> WatchResult {
    let found = find(path, visit).and_then(|end| match end {
        None => Ok(Some(Answer::Absent)),
        // Not by its end: whose links led there decides who must be able to read it.
        Some(end) if end.is_dir() => directory(path),
        Some(_) => Ok(content(path, MAX_VALUE_BYTES)?.map(|content| Answer::Value(Arc::from(content)))),
    });
    match found {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => {
            let path = path.display();
            Err(format!("{path} has more than 1 MiB or {MAX_ENTRIES} entries; watch a smaller one"))
        }
        Err(error) if is_absent(&error) => Ok(Answer::Absent),
        Err(error) => Err(format!("{}: {}", path.display(), describe(&error))),
    }
}

/// The content of a file; `None` if it has more bytes.
fn content(path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let content = regular_file::read(path, limit as u64 + 1)?;
    Ok(Some(content).filter(|content| content.len() <= limit))
}

/// The files of a directory, without those of its directories; `None` if they are too long.
fn directory(path: &Path) -> io::Result<Option<Answer>> {
    let mut entries = Entries::new();
    let mut room = MAX_VALUE_BYTES;
    let folder = paths::open(path)?;
    let mut folder = Dir::from_fd(folder.into())?;
    for (nth, entry) in folder.iter().enumerate() {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if nth >= MAX_ENTRIES {
            return Ok(None);
        }
        let file = path.join(&name);
        // Links count as what they lead to. Kubernetes' own begin with two dots.
        let is_file = fs::metadata(&file).is_ok_and(|metadata| metadata.is_file());
        if !is_file || is_hidden_link(&name) {
            continue;
        }
        let name = name.to_string_lossy().into_owned();
        let Some(left) = room.checked_sub(name.len() + ENTRY_BYTES) else { return Ok(None) };
        match content(&file, left) {
            Ok(None) => return Ok(None),
            Ok(Some(content)) => {
                room = left - content.len();
                entries.insert(name, Arc::from(content));
            }
            // It was removed meanwhile.
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(Answer::Entries(entries)))
}

fn is_hidden_link(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"..")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use containerpilot_test_support as test_support;

    fn answer(path: &Path) -> WatchResult {
        read(path, |_, _| {})
    }

    fn value(text: &str) -> Answer {
        Answer::Value(Arc::from(text.as_bytes()))
    }

    #[test]
    fn d13_links_are_followed_and_every_directory_on_the_way_is_visited() {
        let folder = test_support::folder();
        fs::create_dir(folder.join("one")).unwrap();
        fs::write(folder.join("one/app.conf"), "1").unwrap();
        symlink("one", folder.join("..data")).unwrap();
        symlink("..data/app.conf", folder.join("app.conf")).unwrap();
        let mut visited = Vec::new();
        let read = read(&folder.join("app.conf"), |path, interest| visited.push((path.to_owned(), interest)));
        assert_eq!(read, Ok(value("1")));
        let name = |folder: &Path, name: &str| (folder.to_owned(), Interest::Name(name.into()));
        let end = visited.len() - 5;
        assert_eq!(
            visited[end..],
            [
                name(&folder, "app.conf"),
                name(&folder, "..data"),
                name(&folder, "one"),
                name(&folder.join("one"), "app.conf"),
                (folder.join("one/app.conf"), Interest::Contents),
            ]
        );
        symlink("loop", folder.join("loop")).unwrap();
        let deep = folder.join("a/".repeat(MAX_NAMES + 1));
        fs::create_dir_all(&deep).unwrap();
        let error = answer(&deep).unwrap_err();
        assert!(error.ends_with(" names with those of its links; watch a shorter path"), "{error}");
        let error = answer(&folder.join("loop")).unwrap_err();
        assert_eq!(error, format!("{}: too many symbolic links encountered", folder.join("loop").display()));
        symlink("none", folder.join("broken")).unwrap();
        assert_eq!(answer(&folder.join("broken")), Ok(Answer::Absent));
        assert_eq!(answer(&folder.join("app.conf/below/a/file")), Ok(Answer::Absent));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn d13_a_directory_has_its_files_and_limits_are_told() {
        let folder = test_support::folder();
        fs::create_dir_all(folder.join("dir/..2024")).unwrap();
        fs::write(folder.join("dir/..2024/b"), "2").unwrap();
        fs::write(folder.join("dir/a"), "1").unwrap();
        symlink("..2024", folder.join("dir/..data")).unwrap();
        symlink("..data/b", folder.join("dir/b")).unwrap();
        let entries = |all: &[(&str, &str)]| {
            let all = all.iter().map(|(name, text)| ((*name).to_owned(), Arc::from(text.as_bytes())));
            Ok(Answer::Entries(all.collect()))
        };
        assert_eq!(answer(&folder.join("dir")), entries(&[("a", "1"), ("b", "2")]));
        let large = folder.join("dir/large");
        fs::write(&large, vec![b'x'; MAX_VALUE_BYTES]).unwrap();
        assert!(answer(&large).is_ok());
        let text = format!(
            "{} has more than 1 MiB or 16384 entries; watch a smaller one",
            folder.join("dir").display()
        );
        assert_eq!(answer(&folder.join("dir")), Err(text));
        fs::write(&large, vec![b'x'; MAX_VALUE_BYTES + 1]).unwrap();
        assert!(answer(&large).unwrap_err().contains("more than 1 MiB"));
        let fifo = folder.join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(answer(&fifo), Err(format!("{}: not a regular file", fifo.display())));
        fs::remove_dir_all(folder).unwrap();
    }
}
