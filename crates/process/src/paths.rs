//! Opens paths in which other users may have a hand.
//!
//! A job may own a folder on the way to a file that the supervisor reads or writes for it, and can replace it by a
//! symbolic link at any moment. Therefore every path is followed with its folders held open, name by name, and each
//! link is judged:
//!
//! | the link lies | it belongs to | to read | to write |
//! | --- | --- | --- | --- |
//! | in a folder that only root or the supervisor can change | root or the supervisor | followed | followed |
//! | there, or in a folder like `/tmp` | another user | with the rights of that user | an error |
//! | below a folder of another user | any user | with the rights of that user | an error |
//! | below a folder that everyone can change | root or the supervisor | followed | an error |
//!
//! So the links of Kubernetes' `..data`, of `/var/run` and of `/dev/stdout` work, and a link of another user leads
//! nowhere that this user could not read. In a path without any link, the kernel does all of it in one call.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat2, readlinkat, renameat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::sys::statvfs::FsFlags;
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use crate::sys;

/// Most links on the way, as in the kernel.
const MAX_LINKS: usize = 40;
/// For every file: nothing here may wait, or get a terminal.
const FLAGS: OFlag = OFlag::O_CLOEXEC.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY);
const FOLDER: OFlag = OFlag::O_CLOEXEC.union(OFlag::O_PATH).union(OFlag::O_DIRECTORY);

/// Opens a file or a directory for reading.
pub fn open(path: &Path) -> io::Result<File> {
    match without_links(path, FLAGS) {
        Err(errno) if may_have_links(errno) => {}
        opened => return Ok(opened?.into()),
    }
    let mut walk = Walk::begin(path, Purpose::Read)?;
    let rights = match walk.follow()? {
        ControlFlow::Continue(last) => return Ok(walk.open(&last)?.into()),
        ControlFlow::Break(rights) => rights,
    };
    let opened = sys::with_file_access_of(rights.user, rights.group, || {
        walk.rights = Some(rights);
        match walk.follow()? {
            ControlFlow::Continue(last) => walk.open(&last),
            ControlFlow::Break(_) => Err(Errno::EACCES.into()),
        }
    })?;
    rights.require(&opened, libc::S_IROTH)?;
    Ok(opened.into())
}

/// Opens a file for appending, and creates it. A link that may be followed is: it may lead to a device or a pipe.
pub fn append(path: &Path) -> io::Result<File> {
    let mut walk = Walk::begin(path, Purpose::Append)?;
    let ControlFlow::Continue(last) = walk.follow()? else { return Err(Errno::EACCES.into()) };
    Ok(walk.open(&last)?.into())
}

/// A name in a folder that is held open, for files that are written. The name itself is never followed.
#[derive(Debug)]
pub struct FolderEntry {
    folder: OwnedFd,
    name: OsString,
    is_shared: bool,
}

impl FolderEntry {
    /// The entry of a path. With `create`, missing folders are created.
    pub fn of(path: &Path, create: bool) -> io::Result<Self> {
        let name = path.file_name().ok_or(Errno::EISDIR)?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = match without_links(folder, FOLDER) {
            Err(errno) if may_have_links(errno) || (create && errno == Errno::ENOENT) => {
                let mut walk = Walk::begin(folder, Purpose::Folder { create })?;
                let ControlFlow::Continue(last) = walk.follow()? else { return Err(Errno::EACCES.into()) };
                walk.enter(&last)?;
                walk.at
            }
            opened => opened?,
        };
        let is_shared = Writers::of(&folder)? != Writers::Trusted;
        Ok(Self { folder, name, is_shared })
    }

    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether other users can create files in the folder.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Whether other users than this one can replace a file that belongs to it or to the supervisor.
    pub fn others_can_replace(&self, user: Option<u32>) -> io::Result<bool> {
        Ok(match Writers::of(&self.folder)? {
            Writers::Trusted | Writers::OwnersOfEntries => false,
            Writers::User(owner, _) => {
                Some(owner) != user || fstat(&self.folder)?.st_mode & (libc::S_IWGRP | libc::S_IWOTH) != 0
            }
            Writers::Everyone => true,
        })
    }

    /// Opens a file of the folder; a link is an error.
    pub fn open(&self, name: &OsStr, flags: OFlag, mode: u32) -> io::Result<File> {
        let opened =
            openat(&self.folder, name, flags | FLAGS | OFlag::O_NOFOLLOW, Mode::from_bits_truncate(mode))?;
        Ok(opened.into())
    }

    /// What has this name.
    pub fn metadata(&self, name: &OsStr) -> io::Result<FileStat> {
        Ok(fstatat(&self.folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// The names in the folder that begin with a text.
    pub fn names_with_prefix(&self, prefix: &str) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in
            Dir::openat(&self.folder, OsStr::new("."), FLAGS | OFlag::O_DIRECTORY, Mode::empty())?.iter()
        {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name.as_bytes().starts_with(prefix.as_bytes()) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Writes the names of the folder to the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(nix::unistd::fsync(openat(
            &self.folder,
            OsStr::new("."),
            FLAGS | OFlag::O_DIRECTORY,
            Mode::empty(),
        )?)?)
    }
}

/// Opens a path in which there is no symbolic link.
fn without_links(path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    uninterrupted(|| openat2(AT_FDCWD, path, how))
}

/// As `nix::fcntl::openat`, but repeated if a signal interrupts it.
fn openat(at: impl AsFd, name: &OsStr, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
    uninterrupted(|| nix::fcntl::openat(at.as_fd(), name, flags, mode))
}

fn uninterrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

/// Whether a path has a link, or the kernel or a filter of system calls does not know the call.
fn may_have_links(errno: Errno) -> bool {
    matches!(errno, Errno::ELOOP | Errno::ENOSYS | Errno::EPERM | Errno::EINVAL)
}

/// With whose rights a file is read.
#[derive(Clone, Copy, Debug)]
struct Rights {
    user: u32,
    group: u32,
}

impl Rights {
    /// Fails unless this user has a permission, which is given as that of all others. The kernel has not looked at
    /// this alone: the supplementary groups and the capabilities were those of the supervisor.
    fn require(self, file: &OwnedFd, permission: u32) -> Result<(), Errno> {
        let found = fstat(file)?;
        let wanted = match () {
            () if found.st_uid == self.user => permission << 6,
            () if found.st_gid == self.group => permission << 3,
            () => permission,
        };
        if found.st_mode & wanted != 0 { Ok(()) } else { Err(Errno::EACCES) }
    }
}

/// Who can replace an entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    /// Root and the supervisor.
    Trusted,
    /// Everyone can add entries, but replace only their own, as in `/tmp`.
    OwnersOfEntries,
    /// Its user, who is another one.
    User(u32, u32),
    Everyone,
}

impl Writers {
    fn of(folder: &OwnedFd) -> Result<Self, Errno> {
        let found = fstat(folder)?;
        let others = found.st_mode & (libc::S_IWGRP | libc::S_IWOTH) != 0;
        if is_trusted(found.st_uid) && !others {
            return Ok(Self::Trusted);
        }
        let is_read_only =
            nix::sys::statvfs::fstatvfs(folder).is_ok_and(|of| of.flags().contains(FsFlags::ST_RDONLY));
        Ok(match () {
            () if is_read_only => Self::Trusted,
            () if !is_trusted(found.st_uid) => Self::User(found.st_uid, found.st_gid),
            () if found.st_mode & libc::S_ISVTX != 0 => Self::OwnersOfEntries,
            () => Self::Everyone,
        })
    }
}

fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Read,
    Append,
    Folder { create: bool },
}

/// A path that is being followed.
struct Walk {
    purpose: Purpose,
    /// The folder in which the next name is looked up.
    at: OwnedFd,
    rest: VecDeque<OsString>,
    links: usize,
    /// The user of the last folder that belongs to another one.
    user: Option<Rights>,
    /// Whether everyone can change a folder on the way.
    is_open: bool,
    /// With whose rights it is followed; `None` for those of the supervisor.
    rights: Option<Rights>,
}

impl Walk {
    fn begin(path: &Path, purpose: Purpose) -> io::Result<Self> {
        let start = if path.is_absolute() { "/" } else { "." };
        let at = openat(AT_FDCWD, OsStr::new(start), FOLDER, Mode::empty())?;
        let rest = names(path);
        let mut walk = Self { purpose, at, rest, links: 0, user: None, is_open: false, rights: None };
        walk.judge_folder()?;
        Ok(walk)
    }

    /// Follows the path to its last name. Breaks at a link behind which another user's rights are needed.
    fn follow(&mut self) -> io::Result<ControlFlow<Rights, OsString>> {
        while let Some(name) = self.rest.pop_front() {
            if let Some(rights) = self.rights {
                rights.require(&self.at, libc::S_IXOTH)?;
            }
            if name == ".." {
                self.enter(&name)?;
                continue;
            }
            let found = match fstatat(&self.at, &*name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) if self.purpose == (Purpose::Folder { create: true }) => {
                    make_folder(&self.at, &name)?;
                    fstatat(&self.at, &*name, AtFlags::AT_SYMLINK_NOFOLLOW)?
                }
                Err(Errno::ENOENT) if self.rest.is_empty() => return Ok(ControlFlow::Continue(name)),
                found => found?,
            };
            let is_link = found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits();
            if !is_link && self.rest.is_empty() {
                return Ok(ControlFlow::Continue(name));
            }
            if !is_link {
                self.enter(&name)?;
                continue;
            }
            // A link in `/proc` is not a path: the kernel follows it, past the folders on the way.
            if fstatfs(&self.at).is_ok_and(|of| of.filesystem_type() == PROC_SUPER_MAGIC) {
                if self.rights.is_some() {
                    return Err(Errno::EACCES.into());
                }
                if self.rest.is_empty() {
                    return Ok(ControlFlow::Continue(name));
                }
                self.at = openat(&self.at, &name, FOLDER, Mode::empty())?;
                continue;
            }
            self.links += 1;
            if self.links > MAX_LINKS {
                return Err(Errno::ELOOP.into());
            }
            let owner = Rights { user: found.st_uid, group: found.st_gid };
            let owner = Some(owner).filter(|owner| !is_trusted(owner.user)).or(self.user);
            if self.purpose != Purpose::Read && (owner.is_some() || self.is_open) {
                let who =
                    owner.map_or_else(|| "another user".to_owned(), |owner| format!("user {}", owner.user));
                let link = name.display();
                return Err(io::Error::other(format!(
                    "`{link}` on the way is a symbolic link that {who} can change; write the path it should lead to"
                )));
            }
            let target = readlinkat(&self.at, &*name)?;
            let target = Path::new(&target);
            if target.is_absolute() {
                self.at = openat(AT_FDCWD, OsStr::new("/"), FOLDER, Mode::empty())?;
            }
            for name in names(target).into_iter().rev() {
                self.rest.push_front(name);
            }
            if let (Some(owner), None) = (owner, self.rights) {
                return Ok(ControlFlow::Break(owner));
            }
        }
        Ok(ControlFlow::Continue(".".into()))
    }

    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        self.at = openat(&self.at, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty())?;
        self.judge_folder()
    }

    fn judge_folder(&mut self) -> io::Result<()> {
        match Writers::of(&self.at)? {
            Writers::Trusted | Writers::OwnersOfEntries => {}
            Writers::User(user, group) => self.user = Some(Rights { user, group }),
            Writers::Everyone => self.is_open = true,
        }
        Ok(())
    }

    fn open(&self, last: &OsStr) -> io::Result<OwnedFd> {
        let may_be_link = self.rights.is_none()
            && fstatfs(&self.at).is_ok_and(|of| of.filesystem_type() == PROC_SUPER_MAGIC);
        let follow = if may_be_link { OFlag::empty() } else { OFlag::O_NOFOLLOW };
        let flags = match self.purpose {
            Purpose::Read | Purpose::Folder { .. } => OFlag::O_RDONLY,
            Purpose::Append => OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT,
        };
        Ok(openat(&self.at, last, flags | FLAGS | follow, Mode::from_bits_truncate(0o666))?)
    }
}

/// As `mkdir -p`, but never writable by others, even with umask 0.
fn make_folder(at: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match mkdirat(at, name, Mode::from_bits_truncate(0o755)) {
        Err(Errno::EEXIST) => Ok(()),
        made => made,
    }
}

/// The names in a path, without `/` and `.`.
pub fn names(path: &Path) -> VecDeque<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests;
