//! Writes a text to a file in one step: readers see the old text or the new one, never a part, also after a crash.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use containerpilot_core::plan::{Principal, RenderedFile};
use containerpilot_process::error_text::describe;
use containerpilot_process::paths::FolderEntry;
use containerpilot_process::users;
use nix::fcntl::OFlag;
use nix::libc;

/// Between the name of the target and a random number.
const MARK: &str = ".containerpilot-";

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("{path}: {}", describe(.source))]
    Io { path: String, source: io::Error },
    #[error("{path} is {what}, not a file")]
    NotAFile { path: String, what: &'static str },
    #[error("unknown {what} `{name}`")]
    Account { what: &'static str, name: String },
    #[error(
        "{path} cannot be tested in a folder in which others can replace it: set `user` to the owner of the folder, so that \
         `test` runs as that user, or write it to a folder that only the supervisor can change"
    )]
    Replaceable { path: String },
    #[error("another process has replaced {path}")]
    Replaced { path: String },
}

impl WriteError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Io { path, source }
    }
}

/// A text in a temporary file beside its target. It is not removed by itself: that may block, so a thread does it, and
/// the next rendering removes what was left behind.
#[derive(Debug)]
pub(crate) struct TempFile {
    entry: FolderEntry,
    name: OsString,
    target: PathBuf,
    file: File,
}

/// Writes a text to a temporary file; `None` if the target has that text already, with its mode and owner.
pub(crate) fn prepare(file: &RenderedFile, text: &[u8]) -> Result<Option<TempFile>, WriteError> {
    let target = Path::new(&file.to);
    let owner = Owner::of(file)?;
    let entry = FolderEntry::of(target, false).map_err(WriteError::at(target))?;
    if file.test.is_some() && entry.others_can_replace(owner.user).map_err(WriteError::at(target))? {
        return Err(WriteError::Replaceable { path: file.to.clone() });
    }
    refuse_other_kinds(&entry, target)?;
    remove_leftovers(&entry);
    if has_same(&entry, &owner, text).map_err(WriteError::at(target))? {
        return Ok(None);
    }
    let name = temporary_name(&entry);
    let write = || -> io::Result<File> {
        // O_EXCL also refuses symbolic links.
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let mut new = entry.open(&name, flags, 0o600)?;
        new.write_all(text).and_then(|()| owner.apply(&new))?;
        Ok(new)
    };
    let written = write().map_err(|error| {
        if error.kind() != ErrorKind::AlreadyExists {
            let _ = entry.remove(&name);
        }
        WriteError::at(&target.with_file_name(&name))(error)
    });
    let file = written?;
    Ok(Some(TempFile { entry, name, target: target.to_owned(), file }))
}

impl TempFile {
    pub(crate) fn path(&self) -> PathBuf {
        self.target.with_file_name(&self.name)
    }

    /// Replaces the target. If that fails, the target is as before.
    pub(crate) fn install(self) -> Result<(), WriteError> {
        let Self { entry, name, target, file } = &self;
        let replace = || {
            let path = self.path();
            file.sync_all().map_err(WriteError::at(&path))?;
            refuse_other_kinds(entry, target)?;
            self.is_named(name, &path)?;
            entry.rename(name, entry.name()).map_err(WriteError::at(target))?;
            self.is_named(entry.name(), target)
        };
        replace().inspect_err(|_| self.remove())?;
        // The target is replaced whether or not the file system can sync a directory.
        let _ = entry.sync();
        Ok(())
    }

    /// An error unless the file with this name is this one.
    fn is_named(&self, name: &OsStr, path: &Path) -> Result<(), WriteError> {
        let own = self.file.metadata().map_err(WriteError::at(path))?;
        let found = self.entry.metadata(name).map_err(WriteError::at(path))?;
        let is_same = (found.st_dev, found.st_ino) == (own.dev(), own.ino());
        is_same.then_some(()).ok_or_else(|| WriteError::Replaced { path: path.display().to_string() })
    }

    pub(crate) fn remove(&self) {
        let _ = self.entry.remove(&self.name);
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

    /// Whether a file has this owner and mode, and no other name. Where others can create files, a file without a
    /// configured owner must belong to the supervisor.
    fn has(&self, found: &Metadata, is_shared: bool) -> bool {
        let own = is_shared.then(|| nix::unistd::geteuid().as_raw());
        let is_owner = self.user.or(own).is_none_or(|user| user == found.uid());
        let is_group = self.group.is_none_or(|group| group == found.gid());
        is_owner && is_group && found.mode() & 0o7777 == self.mode && found.nlink() == 1
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
fn refuse_other_kinds(entry: &FolderEntry, target: &Path) -> Result<(), WriteError> {
    let found = match entry.metadata(entry.name()) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(WriteError::at(target)(error)),
    };
    let what = match found.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFLNK => return Ok(()),
        libc::S_IFDIR => "a directory",
        libc::S_IFCHR | libc::S_IFBLK => "a device",
        libc::S_IFIFO => "a pipe",
        _ => "a socket",
    };
    Err(WriteError::NotAFile { path: target.display().to_string(), what })
}

/// Whether the target is a file with this text, mode and owner, and no other name.
fn has_same(entry: &FolderEntry, owner: &Owner, text: &[u8]) -> io::Result<bool> {
    let mut file = match entry.open(entry.name(), OFlag::O_RDONLY, 0) {
        Ok(file) => file,
        // A symbolic link, or a file that only others can read: it is replaced.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ELOOP | libc::EACCES)) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() != text.len() as u64 || !owner.has(&found, entry.is_shared()) {
        return Ok(false);
    }
    let mut content = Vec::with_capacity(text.len() + 1);
    (&mut file).take(text.len() as u64 + 1).read_to_end(&mut content)?;
    Ok(content == text)
}

/// Removes temporary files of this target that a crashed supervisor left behind.
fn remove_leftovers(entry: &FolderEntry) {
    for name in entry.names_with_prefix(&prefix(entry)).unwrap_or_default() {
        let _ = entry.remove(&name);
    }
}

fn temporary_name(entry: &FolderEntry) -> OsString {
    // Keyed with a random number of the system.
    let number = RandomState::new().build_hasher().finish();
    format!("{}{number:016x}", prefix(entry)).into()
}

/// Hidden, so that programs that read all files of a directory do not read it.
fn prefix(entry: &FolderEntry) -> String {
    format!(".{}{MARK}", entry.name().to_string_lossy())
}

#[cfg(test)]
mod tests;
