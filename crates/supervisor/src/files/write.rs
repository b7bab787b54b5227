//! Writes a text to a file in one step: readers see the old text or the new one, never a part, also after a crash.

use std::collections::hash_map::RandomState;
use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use containerpilot_core::plan::{Principal, RenderedFile};
use containerpilot_process::error_text::describe;
use containerpilot_process::users;
use nix::libc;

/// Between the name of the target and a random number.
const MARK: &str = ".containerpilot-";

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("{path}: {}", describe(.error))]
    Io { path: String, error: io::Error },
    #[error("{path} is {what}, not a file")]
    NotAFile { path: String, what: &'static str },
    #[error("unknown {what} `{name}`")]
    Account { what: &'static str, name: String },
}

impl WriteError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |error| Self::Io { path, error }
    }
}

/// A text in a temporary file beside its target. It is not removed by itself: that may block, so a thread does it, and
/// the next rendering removes what was left behind.
#[derive(Debug)]
pub(crate) struct TempFile {
    path: PathBuf,
    target: PathBuf,
    file: File,
}

/// Writes a text to a temporary file; `None` if the target has that text already. Then it gets its mode and owner.
pub(crate) fn prepare(file: &RenderedFile, text: &[u8]) -> Result<Option<TempFile>, WriteError> {
    let target = Path::new(&file.to);
    let owner = Owner::of(file)?;
    refuse_other_kinds(target)?;
    if let Some(same) = open_same(target, text).map_err(WriteError::at(target))? {
        owner.apply(&same).map_err(WriteError::at(target))?;
        return Ok(None);
    }
    remove_leftovers(target);
    let path = temporary_path(target);
    let write = || -> io::Result<File> {
        // O_EXCL also refuses symbolic links.
        let mut new = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        new.write_all(text).and_then(|()| owner.apply(&new))?;
        Ok(new)
    };
    match write() {
        Ok(new) => Ok(Some(TempFile { path, target: target.to_owned(), file: new })),
        Err(error) => {
            if error.kind() != ErrorKind::AlreadyExists {
                let _ = std::fs::remove_file(&path);
            }
            Err(WriteError::at(&path)(error))
        }
    }
}

impl TempFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the target. If that fails, the target is as before.
    pub(crate) fn install(self) -> Result<(), String> {
        let Self { path, target, file } = &self;
        let replace = || {
            file.sync_all().map_err(WriteError::at(path))?;
            refuse_other_kinds(target)?;
            std::fs::rename(path, target).map_err(WriteError::at(target))
        };
        replace().map_err(|error| {
            self.remove();
            error.to_string()
        })?;
        // The target is replaced whether or not the file system can sync a directory.
        let _ = File::open(folder(target)).and_then(|folder| folder.sync_all());
        Ok(())
    }

    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The owner and the mode of a file.
struct Owner {
    user: Option<u32>,
    group: Option<u32>,
    mode: u32,
}

impl Owner {
    fn of(file: &RenderedFile) -> Result<Self, WriteError> {
        let name_of = |who: &Principal| match who {
            Principal::Name(name) => name.clone(),
            Principal::Id(id) => id.to_string(),
        };
        let user = match &file.user {
            None => None,
            Some(Principal::Id(id)) => Some(*id),
            Some(who) => match users::user(who).ok().flatten() {
                Some(user) => Some(user.id),
                None => return Err(WriteError::Account { what: "user", name: name_of(who) }),
            },
        };
        let group = match &file.group {
            None => None,
            Some(which) => match users::group(which).ok().flatten() {
                Some(group) => Some(group),
                None => return Err(WriteError::Account { what: "group", name: name_of(which) }),
            },
        };
        Ok(Self { user, group, mode: u32::from(file.mode) })
    }

    /// Sets what is different.
    fn apply(&self, file: &File) -> io::Result<()> {
        let now = file.metadata()?;
        let user = self.user.filter(|user| *user != now.uid());
        let group = self.group.filter(|group| *group != now.gid());
        if user.is_some() || group.is_some() {
            fchown(file, user, group)?;
        }
        if now.mode() & 0o7777 != self.mode {
            file.set_permissions(Permissions::from_mode(self.mode))?;
        }
        Ok(())
    }
}

/// A directory cannot be replaced; a device, a pipe or a socket should not be. A symbolic link is replaced by the file.
fn refuse_other_kinds(target: &Path) -> Result<(), WriteError> {
    let kind = match target.symlink_metadata() {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(WriteError::at(target)(error)),
    };
    let what = match () {
        () if kind.is_file() || kind.is_symlink() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () if kind.is_fifo() => "a pipe",
        () => "a socket",
    };
    Err(WriteError::NotAFile { path: target.display().to_string(), what })
}

/// The target, if it has this text.
fn open_same(target: &Path, text: &[u8]) -> io::Result<Option<File>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = match File::options().read(true).custom_flags(flags).open(target) {
        Ok(file) => file,
        // A symbolic link, or a file that only others can read: it is replaced.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ELOOP | libc::EACCES)) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let is_as_long = |found: &Metadata| found.is_file() && found.len() == text.len() as u64;
    if !file.metadata().is_ok_and(|found| is_as_long(&found)) {
        return Ok(None);
    }
    let mut content = Vec::with_capacity(text.len() + 1);
    (&mut file).take(text.len() as u64 + 1).read_to_end(&mut content)?;
    Ok((content == text).then_some(file))
}

/// Removes temporary files of this target that a crashed supervisor left behind.
fn remove_leftovers(target: &Path) {
    let prefix = prefix(target);
    let Ok(entries) = std::fs::read_dir(folder(target)) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn temporary_path(target: &Path) -> PathBuf {
    // Keyed with a random number of the system.
    let number = RandomState::new().build_hasher().finish();
    folder(target).join(format!("{}{number:016x}", prefix(target)))
}

/// Hidden, so that programs that read all files of a directory do not read it.
fn prefix(target: &Path) -> String {
    format!(".{}{MARK}", target.file_name().unwrap_or_default().to_string_lossy())
}

fn folder(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
