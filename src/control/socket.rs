//! The control socket's file: made before anything starts, ours alone, and taken away at the end (E4, S6).
//!
//! The mode is set on the socket before it has a name, so there is no moment at which others could connect. A lock on
//! the folder keeps two supervisors that start at once from taking each other's file for one that was left behind.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use containerpilot_core::plan::Control;
use nix::libc;

use crate::process::{sys, users};

/// How many connections the system keeps for us before we have taken them.
const BACKLOG: i32 = 512;
/// How long another supervisor may take to make its socket beside ours, at the start.
pub(super) const NEIGHBOUR: Duration = Duration::from_secs(1);

/// The file, which is removed again if it is still ours.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and number of the file. As long as the socket is open, no other file can have the same.
    identity: (u64, u64),
}

/// Why there is no socket.
#[derive(Debug)]
pub(crate) struct NoSocket {
    /// What went wrong, where, and what to do about it.
    pub(crate) message: String,
}

/// Makes the socket and listens on it. `write_timeout` is for others who make one in the same folder.
pub(crate) fn open(
    control: &Control,
    write_timeout: Duration,
) -> Result<(UnixListener, SocketFile), NoSocket> {
    let path = Path::new(&control.socket);
    let failed = |what: &str, error: &io::Error| NoSocket {
        message: format!("the control socket {} {what}: {error}; {}", path.display(), advice(error)),
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let lock = match lock(folder, write_timeout) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // As `mkdir -p` does, but for us alone where the mask would let others write.
            let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.map_err(|error| failed("needs a folder, which cannot be made", &error))?;
            lock(folder, write_timeout).ok().flatten()
        }
        other => other.ok().flatten(),
    };
    let listener = bind(path, control).map_err(|refusal| match refusal {
        Refusal::Failed(error) => failed("cannot be made", &error),
        Refusal::Taken(what) => NoSocket {
            message: format!(
                "the control socket {} is not replaced: {what}; give this supervisor a path of its own with \
                 control: {{ socket: \"…\" }} or CONTAINERPILOT_SOCKET",
                path.display()
            ),
        },
    })?;
    let opened = settle(path, control);
    drop(lock);
    match opened {
        Ok(file) => Ok((listener, file)),
        Err(error) => {
            // What is no socket is not ours.
            let is_socket = |about: fs::Metadata| about.mode() & libc::S_IFMT == libc::S_IFSOCK;
            if fs::symlink_metadata(path).is_ok_and(is_socket) {
                let _ = fs::remove_file(path);
            }
            Err(failed("cannot be given its group and mode", &error))
        }
    }
}

/// What to do about an error.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => {
            "name a path that can be written with control: { socket: \"…\" } or CONTAINERPILOT_SOCKET, or mount a tmpfs there"
        }
        _ => "name a path that this user may write with control: { socket: \"…\" } or CONTAINERPILOT_SOCKET",
    }
}

/// Locks a folder against other supervisors, for a moment. Nothing where the folder cannot be locked.
fn lock(folder: &Path, write_timeout: Duration) -> io::Result<Option<File>> {
    let opened = File::options().read(true).custom_flags(libc::O_DIRECTORY).open(folder);
    let folder = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(error),
        Err(_) => return Ok(None),
        Ok(folder) => folder,
    };
    let deadline = Instant::now() + write_timeout;
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(Some(folder)),
            // Somebody holds it for another reason, and for longer than that: it was worth a try.
            Err(_) if Instant::now() >= deadline => return Ok(None),
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            Err(fs::TryLockError::Error(_)) => return Ok(None),
        }
    }
}

/// Why a path could not be bound.
enum Refusal {
    /// The system does not want it.
    Failed(io::Error),
    /// Something is there that is not to be replaced, in words.
    Taken(String),
}

/// Binds the path; replaces a file that was left behind by a supervisor that is no more.
fn bind(path: &Path, control: &Control) -> Result<UnixListener, Refusal> {
    // Narrower at first: a wider mode waits until the group is set.
    let mode = u32::from(control.mode) & 0o700;
    match sys::listen_unix(path, mode, BACKLOG) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {}
        other => return other.map_err(Refusal::Failed),
    }
    let about = match fs::symlink_metadata(path) {
        // It has just gone, with whoever had made it.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return sys::listen_unix(path, mode, BACKLOG).map_err(Refusal::Failed);
        }
        other => other.map_err(Refusal::Failed)?,
    };
    if about.mode() & libc::S_IFMT != libc::S_IFSOCK {
        return Err(Refusal::Taken("there is a file there that is no socket".to_owned()));
    }
    match sys::connect_unix(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
        Ok(stream) => {
            let who = sys::peer_pid(&stream).map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            return Err(Refusal::Taken(format!("another process{who} listens there")));
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            return Err(Refusal::Taken("another process listens there".to_owned()));
        }
        // What we may not even ask is not ours.
        Err(error) => {
            let what = format!("it is not known whether somebody listens there: {error}");
            return Err(Refusal::Taken(what));
        }
    }
    fs::remove_file(path).map_err(Refusal::Failed)?;
    sys::listen_unix(path, mode, BACKLOG).map_err(Refusal::Failed)
}

/// Gives the file its group and mode, and remembers which one it is.
fn settle(path: &Path, control: &Control) -> io::Result<SocketFile> {
    // By a handle on this very file: whoever may write to the folder may meanwhile have put a link there that leads to a
    // file of ours.
    let held = File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    let about = held.metadata()?;
    if about.mode() & libc::S_IFMT != libc::S_IFSOCK {
        return Err(io::Error::other("somebody has put something else there"));
    }
    let by_handle = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    // Without `/proc` there is only the name.
    let file = if by_handle.exists() { by_handle.as_path() } else { path };
    if let Some(group) = &control.group {
        let id = users::group(group).ok_or_else(|| io::Error::other("there is no such group any more"))?;
        std::os::unix::fs::chown(file, None, Some(id))?;
    }
    // The process's mask may have taken bits away.
    if about.mode() & 0o7777 != u32::from(control.mode) {
        fs::set_permissions(file, Permissions::from_mode(control.mode.into()))?;
    }
    Ok(SocketFile { path: path.to_owned(), identity: (about.dev(), about.ino()) })
}

impl SocketFile {
    /// Gives the file another group and mode.
    pub(crate) fn resettle(&mut self, control: &Control) -> io::Result<()> {
        *self = settle(&self.path, control)?;
        Ok(())
    }

    /// Removes the file, unless somebody has put another there.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let ours = fs::symlink_metadata(&self.path).map(|now| (now.dev(), now.ino()) == self.identity);
        match ours.and_then(|ours| if ours { fs::remove_file(&self.path) } else { Ok(()) }) {
            // Whoever has taken the folder away has taken the file along.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn control(path: &Path) -> Control {
        Control { socket: path.to_str().unwrap().to_owned(), required: true, mode: 0o600, group: None }
    }

    fn made(control: &Control) -> Result<(UnixListener, SocketFile), NoSocket> {
        open(control, NEIGHBOUR)
    }

    #[test]
    fn x1_the_socket_is_made_with_its_folder_and_removed_again() {
        let folder = crate::test_support::folder();
        let path = folder.join("a/b/socket");
        let (listener, file) = made(&control(&path)).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o7777, 0o600);
        UnixStream::connect(&path).unwrap();
        drop(listener);
        file.remove().unwrap();
        assert!(!path.exists());
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_a_mode_is_what_was_asked_for_whatever_the_mask() {
        let folder = crate::test_support::folder();
        for mode in [0o600, 0o660, 0o666, 0o622] {
            let path = folder.join(format!("{mode:o}"));
            let (_listener, _file) = made(&Control { mode, ..control(&path) }).unwrap();
            assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o7777, u32::from(mode));
        }
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_a_link_at_the_path_is_neither_followed_nor_removed() {
        let folder = crate::test_support::folder();
        let (path, precious) = (folder.join("socket"), folder.join("precious"));
        fs::write(&precious, "kept").unwrap();
        fs::set_permissions(&precious, Permissions::from_mode(0o640)).unwrap();
        for target in [precious.as_path(), Path::new("/no/such/file")] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let refused = made(&control(&path)).unwrap_err().message;
            assert!(refused.contains("there is a file there that is no socket"), "{refused}");
            // Not even if it came there after the socket was made.
            assert!(settle(&path, &Control { mode: 0o666, ..control(&path) }).is_err());
            assert_eq!(fs::read_link(&path).unwrap(), target);
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::metadata(&precious).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_what_was_left_behind_is_replaced_and_what_lives_is_not() {
        let folder = crate::test_support::folder();
        let path = folder.join("socket");
        let (listener, _) = made(&control(&path)).unwrap();
        let refused = made(&control(&path)).unwrap_err().message;
        let me = format!("another process (pid {}) listens there", std::process::id());
        assert!(refused.contains(&me) && refused.contains("CONTAINERPILOT_SOCKET"), "{refused}");
        drop(listener);
        let (_listener, file) = made(&control(&path)).unwrap();
        fs::remove_file(&path).unwrap();
        let (_other, others) = made(&control(&path)).unwrap();
        file.remove().unwrap();
        assert!(path.exists(), "it is another's file by now");
        others.remove().unwrap();
        assert!(!path.exists());
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_a_file_that_is_no_socket_is_left_alone() {
        let folder = crate::test_support::folder();
        let path = folder.join("precious");
        fs::write(&path, "data").unwrap();
        assert!(made(&control(&path)).unwrap_err().message.contains("no socket"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
        let below = path.join("socket");
        assert!(made(&control(&below)).unwrap_err().message.contains("precious/socket"));
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_supervisors_that_start_at_once_do_not_replace_each_other() {
        let folder = crate::test_support::folder();
        let path = folder.join("socket");
        drop(made(&control(&path)).unwrap());
        let made: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(|| made(&control(&path)))).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(made.iter().filter(|one| one.is_ok()).count(), 1);
        let _ = fs::remove_dir_all(folder);
    }
}
