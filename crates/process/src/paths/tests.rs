use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::PathBuf;

use super::*;
use containerpilot_test_support as test_support;

const OTHER: u32 = 12_345;

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

fn write(path: &Path) -> io::Result<()> {
    let entry = FolderEntry::of(path, true)?;
    let mut file = entry.open(entry.name(), OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_APPEND, 0o600)?;
    file.write_all(b"+")
}

/// A folder with `own/secret`, which only root can read, and `own/public`; `None` unless this is root.
fn folder() -> Option<PathBuf> {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can give files to another user");
        return None;
    }
    let folder = test_support::folder();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir(folder.join("own")).unwrap();
    for (name, mode) in [("secret", 0o600), ("public", 0o644)] {
        fs::write(folder.join("own").join(name), name).unwrap();
        fs::set_permissions(folder.join("own").join(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    Some(folder)
}

#[test]
fn l8_d13_links_of_root_are_followed() {
    let Some(folder) = folder() else { return };
    // As in a volume of Kubernetes.
    symlink("own", folder.join("..data")).unwrap();
    symlink("..data/secret", folder.join("file")).unwrap();
    symlink(folder.join("..data"), folder.join("absolute")).unwrap();
    assert_eq!(read(&folder.join("file")).unwrap(), "secret");
    assert_eq!(read(&folder.join("absolute/../own/secret")).unwrap(), "secret");
    write(&folder.join("absolute/new/deep/log")).unwrap();
    assert_eq!(read(&folder.join("own/new/deep/log")).unwrap(), "+");
    append(&folder.join("file")).unwrap().write_all(b"+").unwrap();
    assert_eq!(read(&folder.join("own/secret")).unwrap(), "secret+");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn l8_d13_links_of_other_users_are_read_with_their_rights_and_not_written() {
    let Some(folder) = folder() else { return };
    fs::create_dir(folder.join("home")).unwrap();
    chown(folder.join("home"), Some(OTHER), Some(OTHER)).unwrap();
    // One in a folder of root, and one of root in a folder of the other user, who may have moved it there.
    symlink("own", folder.join("theirs")).unwrap();
    lchown(folder.join("theirs"), Some(OTHER), Some(OTHER)).unwrap();
    symlink("../own", folder.join("home/moved")).unwrap();
    for link in ["theirs", "home/moved"] {
        let link = folder.join(link);
        assert_eq!(read(&link.join("public")).unwrap(), "public");
        assert_eq!(read(&link.join("secret")).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        for error in [write(&link.join("public")), append(&link.join("public")).map(drop)] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains("symbolic link that user 12345 can change"), "{error}");
        }
    }
    // Files that only a group of the supervisor can read are not theirs either.
    fs::set_permissions(folder.join("own/secret"), PermissionsExt::from_mode(0o640)).unwrap();
    assert_eq!(read(&folder.join("theirs/secret")).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    // Nor are files in folders that only a group of the supervisor can search, or behind the links in `/proc`.
    fs::create_dir(folder.join("own/group")).unwrap();
    fs::write(folder.join("own/group/public"), "").unwrap();
    fs::set_permissions(folder.join("own/group"), PermissionsExt::from_mode(0o750)).unwrap();
    symlink(format!("/proc/{}/cwd", std::process::id()), folder.join("home/cwd")).unwrap();
    lchown(folder.join("home/cwd"), Some(OTHER), Some(OTHER)).unwrap();
    for file in ["theirs/group/public", "home/cwd", "home/cwd/Cargo.toml"] {
        assert_eq!(read(&folder.join(file)).unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{file}");
    }
    // Without a link, a folder of another user is as good as any.
    write(&folder.join("home/log")).unwrap();
    assert_eq!(read(&folder.join("home/log")).unwrap(), "+");
    assert_eq!(fs::read_to_string(folder.join("own/public")).unwrap(), "public");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn l8_d13_in_folders_that_everyone_can_change_only_links_in_sticky_ones_are_written_through() {
    let Some(folder) = folder() else { return };
    for (name, mode, is_written) in [("sticky", 0o1777, true), ("open", 0o777, false)] {
        let open = folder.join(name);
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, PermissionsExt::from_mode(mode)).unwrap();
        symlink("../own", open.join("link")).unwrap();
        assert_eq!(read(&open.join("link/secret")).unwrap(), "secret");
        assert_eq!(write(&open.join("link/log")).is_ok(), is_written, "{name}");
        assert!(FolderEntry::of(&open.join("x"), false).unwrap().is_shared());
    }
    assert!(!FolderEntry::of(&folder.join("own/x"), false).unwrap().is_shared());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn l8_d13_last_name_is_not_followed_and_loops_end() {
    let Some(folder) = folder() else { return };
    symlink("own/public", folder.join("last")).unwrap();
    assert_eq!(write(&folder.join("last")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    symlink("loop", folder.join("loop")).unwrap();
    assert_eq!(read(&folder.join("loop/x")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    assert_eq!(read(&folder.join("none/x")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(write(Path::new("/")).unwrap_err().raw_os_error(), Some(libc::EISDIR));
    // What a descriptor of this process leads to has no path.
    let (mut reader, writer) = io::pipe().unwrap();
    let by_descriptor = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
    append(Path::new(&by_descriptor)).unwrap().write_all(b"x").unwrap();
    reader.read_exact(&mut [0]).unwrap();
    fs::remove_dir_all(folder).unwrap();
}
