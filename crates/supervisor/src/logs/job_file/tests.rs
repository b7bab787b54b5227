use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use containerpilot_test_support::folder;

use super::*;

fn settings(path: &Path, max_size: u64, keep: u32) -> LogFile {
    LogFile { path: path.to_str().unwrap().to_owned(), max_size: std::num::NonZeroU64::new(max_size), keep }
}

fn write_all(file: &mut JobFile, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let count = file.write(bytes).unwrap();
        bytes = &bytes[count..];
    }
}

/// The files from the oldest to the present one, with their sizes.
fn contents(path: &Path, keep: u32) -> Vec<Vec<u8>> {
    let old = (1..=keep).rev().map(|number| PathBuf::from(format!("{}.{number}", path.display())));
    old.chain([path.to_owned()]).filter_map(|path| fs::read(path).ok()).collect()
}

#[test]
fn l8_rotation_loses_and_splits_no_line_for_writes_of_any_size() {
    for size in [1, 7, 10, 11, 64, 99, 100, 101, 100_000] {
        let (folder, keep) = (folder(), 1000);
        let path = folder.join("log");
        let mut file = JobFile::new(settings(&path, 100, keep));
        let lines: Vec<u8> =
            (0..300).flat_map(|n| format!("{n} {}\n", "x".repeat(n % 23)).into_bytes()).collect();
        for part in lines.chunks(size) {
            write_all(&mut file, part);
        }
        let all = contents(&path, keep);
        assert!(all.concat() == lines, "{size}");
        // A write of a part of a line may have to be completed.
        let most = if size < lines.len() { 130 } else { 100 };
        assert!(all.iter().all(|one| one.len() <= most && one.ends_with(b"\n")), "{size}");
        assert!(all.len() > 30 && all.len() < 60, "{size}: {} files", all.len());
        assert_eq!((file.take_notice(), file.take_lost()), (None, Loss::default()));
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn l8_only_so_many_old_files_are_kept() {
    for keep in [0, 1, 3] {
        let folder = folder();
        let path = folder.join("log");
        let mut file = JobFile::new(settings(&path, 10, keep));
        for number in 0..9 {
            write_all(&mut file, format!("line {number}\n").as_bytes());
        }
        let expected: Vec<Vec<u8>> =
            (8 - keep..9).map(|number| format!("line {number}\n").into_bytes()).collect();
        assert_eq!(contents(&path, 9), expected, "{keep}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn l8_existing_file_is_appended_to_and_counts() {
    let folder = folder();
    let path = folder.join("log");
    fs::write(&path, "0123456789\nincomplete").unwrap();
    let mut file = JobFile::new(settings(&path, 30, 2));
    write_all(&mut file, b"after\n");
    assert_eq!(fs::read(&path).unwrap(), b"0123456789\nincomplete\nafter\n", "lines are not mixed");
    write_all(&mut file, b"next\n");
    assert_eq!(contents(&path, 2), [b"0123456789\nincomplete\nafter\n".to_vec(), b"next\n".to_vec()]);
    // A longer line than a whole file is not split.
    let long = [vec![b'x'; 100], b"\n".to_vec()].concat();
    write_all(&mut file, &long[..50]);
    write_all(&mut file, &long[50..]);
    write_all(&mut file, b"end\n");
    assert_eq!(contents(&path, 2), [b"next\n".to_vec(), long, b"end\n".to_vec()]);
    // Another size and number count at once.
    file.set_rotation(&settings(&path, 0, 0));
    write_all(&mut file, &[b'y'; 100]);
    assert_eq!(fs::read(&path).unwrap().len(), 104);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn l8_only_a_regular_file_is_written() {
    let folder = folder();
    let [link, fifo, inner, below] = ["link", "fifo", "inner", "target/log"].map(|name| folder.join(name));
    let target = folder.join("target");
    fs::write(&target, "precious\n").unwrap();
    symlink(&target, &link).unwrap();
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(&inner).unwrap();
    let cases = [
        (&link, "it is a symbolic link"),
        (&fifo, "not a regular file"),
        (&inner, "Is a directory"),
        (&below, "Not a directory"),
        (&PathBuf::from("/dev/null"), "not a regular file"),
    ];
    for (path, why) in cases {
        let mut file = JobFile::new(settings(path, 100, 1));
        let error = file.write(b"line\n").unwrap_err();
        assert!(error.to_string().contains(why), "{}: {error}", path.display());
        assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
    }
    assert_eq!(fs::read(&target).unwrap(), b"precious\n");
    // It recovers when the file can be opened.
    let mut file = JobFile::new(settings(&below, 100, 1));
    file.write(b"line\n").unwrap_err();
    fs::remove_file(&target).unwrap();
    write_all(&mut file, b"line\n");
    assert_eq!(fs::read(&below).unwrap(), b"line\n", "its folder is created");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn l8_file_that_cannot_be_rotated_grows_to_a_bound_and_that_is_reported_once() {
    let folder = folder();
    let path = folder.join("log");
    let obstacle = folder.join("log.1");
    fs::create_dir_all(obstacle.join("full")).unwrap();
    let mut file = JobFile::new(settings(&path, 10, 1));
    for number in 0..4 {
        write_all(&mut file, format!("line {number}\n").as_bytes());
    }
    // Two files of ten bytes.
    assert_eq!(fs::read(&path).unwrap(), b"line 0\nline 1\n");
    assert_eq!(file.take_lost(), Loss { lines: 2, bytes: 14 });
    let (level, notice) = file.take_notice().unwrap();
    assert!(
        level == Level::Error && notice.starts_with(&format!("cannot rotate {}: ", path.display())),
        "{notice}"
    );
    for _ in 0..10_000 {
        write_all(&mut file, b"line x\n");
    }
    assert_eq!(file.take_notice(), None, "once");
    fs::remove_dir_all(&obstacle).unwrap();
    // Not before its time.
    write_all(&mut file, b"line x\n");
    assert!(fs::symlink_metadata(&obstacle).is_err());
    file.stuck.as_mut().unwrap().retry_at = Instant::now();
    write_all(&mut file, b"line 8\n");
    assert_eq!(contents(&path, 1), [b"line 0\nline 1\n".to_vec(), b"line 8\n".to_vec()], "it works again");
    let (level, notice) = file.take_notice().unwrap();
    let lost = "works again; 10003 lines (70021 bytes) were lost";
    assert!(level == Level::Warn && notice.ends_with(lost), "{notice}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn l8_file_is_opened_again_after_it_was_renamed() {
    let folder = folder();
    let (path, old) = (folder.join("log"), folder.join("old"));
    let mut file = JobFile::new(settings(&path, 0, 1));
    write_all(&mut file, b"one\nincom");
    file.reopen().unwrap();
    write_all(&mut file, b"plete\n");
    assert_eq!(fs::read(&path).unwrap(), b"one\nincomplete\n", "the same file is continued");
    fs::rename(&path, &old).unwrap();
    write_all(&mut file, b"two\n");
    file.reopen().unwrap();
    write_all(&mut file, b"three\n");
    assert_eq!(
        [fs::read(&old).unwrap(), fs::read(&path).unwrap()],
        [b"one\nincomplete\ntwo\n".to_vec(), b"three\n".to_vec()]
    );
    fs::remove_dir_all(folder).unwrap();
}
