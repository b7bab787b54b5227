use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::time::Duration;

use containerpilot_test_support as test_support;

use super::*;

fn file(to: &Path) -> RenderedFile {
    RenderedFile {
        name: "f".into(),
        template: Some(b"".as_slice().into()),
        template_name: "template".into(),
        to: to.to_str().unwrap().into(),
        mode: 0o640,
        user: None,
        group: None,
        test: None,
        debounce: Duration::ZERO,
        watches: Vec::new(),
        secrets: BTreeMap::new(),
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn d15_a_text_is_written_beside_its_target_and_then_renamed() {
    let folder = test_support::folder();
    let to = folder.join("f");
    let new = prepare(&file(&to), b"one").unwrap().unwrap();
    assert!(!to.exists());
    assert_eq!((std::fs::read(new.path()).unwrap(), mode(&new.path())), (b"one".to_vec(), 0o640));
    assert!(new.path().file_name().unwrap().to_str().unwrap().starts_with(".f.containerpilot-"));
    new.install().unwrap();
    assert_eq!((std::fs::read(&to).unwrap(), mode(&to)), (b"one".to_vec(), 0o640));
    assert_eq!(names(&folder), ["f"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn d15_an_equal_text_is_written_only_for_its_mode_owner_and_number_of_names() {
    let folder = test_support::folder();
    let to = folder.join("f");
    std::fs::write(&to, "one").unwrap();
    std::fs::set_permissions(&to, Permissions::from_mode(0o600)).unwrap();
    prepare(&file(&to), b"one").unwrap().unwrap().install().unwrap();
    assert_eq!(mode(&to), 0o640);
    assert!(prepare(&file(&to), b"one").unwrap().is_none());
    // Another name: a job could write to the file by it, or it is a file of another user.
    std::fs::hard_link(&to, folder.join("other")).unwrap();
    prepare(&file(&to), b"one").unwrap().unwrap().install().unwrap();
    std::fs::remove_file(folder.join("other")).unwrap();
    assert!(prepare(&file(&to), b"one").unwrap().is_none());
    for other in [&b"two"[..], b"on", b"one\n", b""] {
        let new = prepare(&file(&to), other).unwrap().unwrap();
        new.remove();
    }
    assert_eq!(names(&folder), ["f"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn d15_only_a_file_or_a_symbolic_link_is_replaced() {
    let folder = test_support::folder();
    let (to, victim) = (folder.join("f"), folder.join("victim"));
    std::fs::create_dir(&to).unwrap();
    let error = prepare(&file(&to), b"one").unwrap_err().to_string();
    assert_eq!(error, format!("{} is a directory, not a file", to.display()));
    std::fs::remove_dir(&to).unwrap();
    nix::unistd::mkfifo(&to, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(prepare(&file(&to), b"one").unwrap_err().to_string().ends_with("is a pipe, not a file"));
    std::fs::remove_file(&to).unwrap();
    // It becomes a directory between test and installation.
    let new = prepare(&file(&to), b"one").unwrap().unwrap();
    std::fs::create_dir(&to).unwrap();
    assert!(new.install().unwrap_err().to_string().ends_with("is a directory, not a file"));
    std::fs::remove_dir(&to).unwrap();
    // The target of a link is neither read nor written.
    std::fs::write(&victim, "one").unwrap();
    symlink(&victim, &to).unwrap();
    prepare(&file(&to), b"two").unwrap().unwrap().install().unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"one");
    assert!(to.symlink_metadata().unwrap().is_file());
    assert_eq!(names(&folder), ["f", "victim"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn d15_what_a_crash_left_behind_is_removed() {
    let folder = test_support::folder();
    let to = folder.join("f");
    for name in [".f.containerpilot-0123", ".g.containerpilot-0123", ".f.swp"] {
        std::fs::write(folder.join(name), "part").unwrap();
    }
    prepare(&file(&to), b"one").unwrap().unwrap().install().unwrap();
    assert_eq!(names(&folder), [".f.swp", ".g.containerpilot-0123", "f"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn d15_a_temporary_file_that_was_replaced_is_not_installed() {
    let folder = test_support::folder();
    let to = folder.join("f");
    let new = prepare(&file(&to), b"one").unwrap().unwrap();
    let path = new.path();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "two").unwrap();
    let error = new.install().unwrap_err();
    assert_eq!(error.to_string(), format!("another process has replaced {}", path.display()));
    assert_eq!(names(&folder), [""; 0]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn d15_a_file_is_tested_only_where_no_other_user_can_replace_it() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can give files to another user");
        return;
    }
    let folder = test_support::folder();
    let test = containerpilot_core::plan::FileTest {
        command: containerpilot_core::plan::Command { program: "true".into(), arguments: Vec::new() },
        timeout: Duration::from_secs(1),
    };
    let tested = RenderedFile { test: Some(test), ..file(&folder.join("f")) };
    let with_user = RenderedFile { user: Some(Principal::Id(12_345)), ..tested.clone() };
    prepare(&tested, b"one").unwrap().unwrap().remove();
    std::os::unix::fs::chown(&folder, Some(12_345), None).unwrap();
    let error = prepare(&tested, b"one").unwrap_err().to_string();
    assert!(error.contains("set `user` to the owner of the folder"), "{error}");
    prepare(&with_user, b"one").unwrap().unwrap().remove();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
    assert!(prepare(&with_user, b"one").is_err(), "its group can replace it");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn d15_a_file_that_cannot_be_written_says_why() {
    let folder = test_support::folder();
    let to = folder.join("none").join("f");
    let error = prepare(&file(&to), b"one").unwrap_err().to_string();
    assert!(error.ends_with("no such file or directory"), "{error}");
    let unknown = RenderedFile { user: Some(Principal::Name("no-such-user".into())), ..file(&to) };
    assert_eq!(prepare(&unknown, b"one").unwrap_err().to_string(), "unknown user `no-such-user`");
    std::fs::remove_dir_all(folder).unwrap();
}
