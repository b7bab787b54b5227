//! The control socket's file: created before any job starts, for its owner only, and removed at exit (E4, S6).
//!
//! The mode is set before the socket has a name, so other users can never connect. A lock on the
//! directory prevents that two supervisors that start at once remove each other's file as stale.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use containerpilot_core::plan::Control;
use containerpilot_process::error_text::describe;
use containerpilot_process::paths::FolderEntry;
use containerpilot_process::{sys, users};
use nix::libc;
use thiserror::Error;

/// Length of the listen queue.
const BACKLOG: i32 = 512;
/// At the start, how long to wait for another supervisor that holds the directory's lock.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The socket's file.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode number. No other file can have the same while the socket is open.
    identity: (u64, u64),
}

/// Why there is no control socket.
#[derive(Debug, Error)]
pub(crate) enum SocketError {
    #[error("cannot create the directory of the control socket {}: {}; {}", path.display(), describe(source), advice(source))]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot create the control socket {}: {}; {}", path.display(), describe(source), advice(source))]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot change group and mode of the control socket {}: {}", path.display(), describe(source))]
    Change { path: PathBuf, source: io::Error },
    #[error("cannot remove the control socket {}: {}", path.display(), describe(source))]
    Remove { path: PathBuf, source: io::Error },
    #[error("cannot set group and mode of the control socket {}: {}; {}", path.display(), describe(source), advice(source))]
    Permissions { path: PathBuf, source: io::Error },
    #[error(
        "cannot create the control socket {}: {occupant}; give this supervisor another path with control: {{ socket: \"…\" }} \
         or CONTAINERPILOT_SOCKET",
        path.display()
    )]
    Occupied { path: PathBuf, occupant: String },
}

/// What to do about an error.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => {
            "set a writable path with control: { socket: \"…\" } or CONTAINERPILOT_SOCKET, or mount a tmpfs there"
        }
        _ => "set a path that this user may write with control: { socket: \"…\" } or CONTAINERPILOT_SOCKET",
    }
}

/// Creates the socket and listens on it.
pub(crate) fn open(
    control: &Control,
    lock_timeout: Duration,
) -> Result<(UnixListener, SocketFile), SocketError> {
    let path = Path::new(&control.socket);
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    // Creates it, if it is missing. A link of another user on the way is an error.
    FolderEntry::of(path, true).map_err(|source| SocketError::Directory { path: path.to_owned(), source })?;
    let lock = lock(directory, lock_timeout);
    let listener = bind(path, control)?;
    let file = set_permissions(path, control);
    drop(lock);
    file.map(|file| (listener, file)).map_err(|source| {
        if fs::symlink_metadata(path).is_ok_and(|metadata| is_socket(&metadata)) {
            let _ = fs::remove_file(path);
        }
        SocketError::Permissions { path: path.to_owned(), source }
    })
}

fn is_socket(metadata: &fs::Metadata) -> bool {
    metadata.mode() & libc::S_IFMT == libc::S_IFSOCK
}

/// Locks a directory against other supervisors. `None` if it cannot be locked in time: the lock is a precaution.
fn lock(directory: &Path, lock_timeout: Duration) -> Option<File> {
    let directory = File::options().read(true).custom_flags(libc::O_DIRECTORY).open(directory).ok()?;
    let deadline = Instant::now() + lock_timeout;
    loop {
        match directory.try_lock() {
            Ok(()) => return Some(directory),
            Err(_) if Instant::now() >= deadline => return None,
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            Err(fs::TryLockError::Error(_)) => return None,
        }
    }
}

/// Binds the path. Replaces the socket of a supervisor that no longer runs.
fn bind(path: &Path, control: &Control) -> Result<UnixListener, SocketError> {
    let failed = |source| SocketError::Create { path: path.to_owned(), source };
    let occupied = |occupant: String| SocketError::Occupied { path: path.to_owned(), occupant };
    // For the owner only at first: a wider mode must not take effect before the group is set.
    let mode = u32::from(control.mode) & 0o700;
    match sys::listen_unix(path, mode, BACKLOG) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {}
        other => return other.map_err(failed),
    }
    let metadata = match fs::symlink_metadata(path) {
        // Its owner has removed it just now.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return sys::listen_unix(path, mode, BACKLOG).map_err(failed);
        }
        other => other.map_err(failed)?,
    };
    if !is_socket(&metadata) {
        return Err(occupied("a file that is not a socket is there".to_owned()));
    }
    match sys::connect_unix(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
        Ok(stream) => {
            let pid = sys::peer_pid(&stream).map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            return Err(occupied(format!("another process{pid} listens there")));
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            return Err(occupied("another process listens there".to_owned()));
        }
        // A socket that this process may not connect to belongs to another process.
        Err(error) => {
            return Err(occupied(format!(
                "cannot determine whether another process listens there: {}",
                describe(&error)
            )));
        }
    }
    fs::remove_file(path).map_err(failed)?;
    sys::listen_unix(path, mode, BACKLOG).map_err(failed)
}

/// Sets the file's group and mode.
fn set_permissions(path: &Path, control: &Control) -> io::Result<SocketFile> {
    // Through a descriptor of this very file: another user who may write to the directory could have replaced it by a
    // symbolic link to a file of the supervisor.
    let opened = File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    let metadata = opened.metadata()?;
    if !is_socket(&metadata) {
        return Err(io::Error::other("another process has replaced the file"));
    }
    let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    // Without `/proc` there is only the name.
    let file = if by_descriptor.exists() { by_descriptor.as_path() } else { path };
    if let Some(group) = &control.group {
        let id = users::group(group)?.ok_or_else(|| io::Error::other("the group does not exist any more"))?;
        std::os::unix::fs::chown(file, None, Some(id))?;
    }
    // The umask may have cleared bits.
    if metadata.mode() & 0o7777 != u32::from(control.mode) {
        fs::set_permissions(file, Permissions::from_mode(control.mode.into()))?;
    }
    Ok(SocketFile { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()) })
}

impl SocketFile {
    /// Sets another group and mode.
    pub(crate) fn set_permissions(&mut self, control: &Control) -> Result<(), SocketError> {
        let set = set_permissions(&self.path, control);
        *self = set.map_err(|source| SocketError::Change { path: self.path.clone(), source })?;
        Ok(())
    }

    /// Removes the file, unless it was replaced by another one.
    pub(crate) fn remove(&self) -> Result<(), SocketError> {
        let is_ours = fs::symlink_metadata(&self.path).map(|now| (now.dev(), now.ino()) == self.identity);
        match is_ours.and_then(|ours| if ours { fs::remove_file(&self.path) } else { Ok(()) }) {
            // The directory was removed, and the file with it.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
            other => other.map_err(|source| SocketError::Remove { path: self.path.clone(), source }),
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

    fn create(control: &Control) -> Result<(UnixListener, SocketFile), SocketError> {
        open(control, LOCK_TIMEOUT)
    }

    #[test]
    fn x1_the_socket_is_created_with_its_directory_and_removed_again() {
        let folder = containerpilot_test_support::folder();
        let path = folder.join("a/b/socket");
        let (listener, file) = create(&control(&path)).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o7777, 0o600);
        UnixStream::connect(&path).unwrap();
        drop(listener);
        file.remove().unwrap();
        assert!(!path.exists());
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_the_mode_does_not_depend_on_the_umask() {
        let folder = containerpilot_test_support::folder();
        for mode in [0o600, 0o660, 0o666, 0o622] {
            let path = folder.join(format!("{mode:o}"));
            let (_listener, _file) = create(&Control { mode, ..control(&path) }).unwrap();
            assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o7777, u32::from(mode));
        }
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_a_symbolic_link_at_the_path_is_neither_followed_nor_removed() {
        let folder = containerpilot_test_support::folder();
        let (path, precious) = (folder.join("socket"), folder.join("precious"));
        fs::write(&precious, "kept").unwrap();
        fs::set_permissions(&precious, Permissions::from_mode(0o640)).unwrap();
        for target in [precious.as_path(), Path::new("/no/such/file")] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let refused = create(&control(&path)).unwrap_err().to_string();
            assert!(refused.contains("a file that is not a socket is there"), "{refused}");
            // A link that replaces the socket after its creation is not followed either.
            assert!(set_permissions(&path, &Control { mode: 0o666, ..control(&path) }).is_err());
            assert_eq!(fs::read_link(&path).unwrap(), target);
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::metadata(&precious).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = containerpilot_test_support::folder();
        let path = folder.join("socket");
        let (listener, _) = create(&control(&path)).unwrap();
        let refused = create(&control(&path)).unwrap_err().to_string();
        let occupant = format!("another process (pid {}) listens there", std::process::id());
        assert!(refused.contains(&occupant) && refused.contains("CONTAINERPILOT_SOCKET"), "{refused}");
        drop(listener);
        let (_listener, file) = create(&control(&path)).unwrap();
        fs::remove_file(&path).unwrap();
        let (_other, others) = create(&control(&path)).unwrap();
        file.remove().unwrap();
        assert!(path.exists(), "the file now belongs to the other socket");
        others.remove().unwrap();
        assert!(!path.exists());
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_a_file_that_is_not_a_socket_is_not_changed() {
        let folder = containerpilot_test_support::folder();
        let path = folder.join("precious");
        fs::write(&path, "data").unwrap();
        assert!(create(&control(&path)).unwrap_err().to_string().contains("not a socket"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
        let inside = path.join("socket");
        assert!(create(&control(&inside)).unwrap_err().to_string().contains("precious/socket"));
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn x1_supervisors_that_start_at_once_do_not_replace_each_others_sockets() {
        let folder = containerpilot_test_support::folder();
        let path = folder.join("socket");
        drop(create(&control(&path)).unwrap());
        let results: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(|| create(&control(&path)))).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|one| one.is_ok()).count(), 1);
        let _ = fs::remove_dir_all(folder);
    }
}
