//! Files, directories, links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{Watching, config};
use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

/// An empty folder for what is watched, which exists before the supervisor starts.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("containerpilot-watches-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn d13_a_file_is_seen_at_once_when_it_comes_changes_and_goes() {
    let folder = folder("file");
    let file = folder.join("deep/er/app.conf");
    // An interval of an hour: only inotify can tell.
    let watching = Watching::start(&format!("file: '{}', interval: 3600", file.display()));
    watching.wait_for_explanation("watch.it: does not exist");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "one\n").unwrap();
    watching.wait_for(&["changed one", "healthy one"]);
    // Written in place, and by an atomic rename.
    fs::write(&file, "two\n").unwrap();
    watching.wait_for(&["changed two"]);
    replace(&file, "three\n");
    watching.wait_for(&["changed three"]);
    // The same contents again are no change; then a directory takes the place of the file.
    replace(&file, "three\n");
    fs::remove_file(&file).unwrap();
    watching.wait_for(&["changed", "unhealthy"]);
    fs::create_dir(&file).unwrap();
    watching.wait_for(&["changed", "healthy"]);
    fs::write(file.join("b"), "1").unwrap();
    watching.wait_for(&["changed b"]);
    fs::write(file.join("a"), "1").unwrap();
    watching.wait_for(&["changed a,b"]);
    fs::write(file.join("a"), "2").unwrap();
    watching.wait_for(&["changed a,b"]);
    // A directory on the way is moved away and back.
    fs::rename(folder.join("deep"), folder.join("away")).unwrap();
    watching.wait_for(&["changed", "unhealthy"]);
    fs::rename(folder.join("away"), folder.join("deep")).unwrap();
    watching.wait_for(&["changed a,b", "healthy a,b"]);
    fs::remove_dir_all(folder).unwrap();
}

/// Publishes a new version as the kubelet does: a new directory, and a link that is swapped.
pub(crate) fn publish(volume: &Path, version: &str, file: &str, text: &str) {
    let new = volume.join(format!("..{version}"));
    fs::create_dir(&new).unwrap();
    fs::write(new.join(file), text).unwrap();
    let link = volume.join("..data_tmp");
    symlink(format!("..{version}"), &link).unwrap();
    let old = fs::read_link(volume.join("..data")).ok();
    fs::rename(&link, volume.join("..data")).unwrap();
    if let Some(old) = old {
        fs::remove_dir_all(volume.join(old)).unwrap();
    }
}

#[test]
fn d13_a_volume_of_kubernetes_is_seen_to_change_as_a_file_and_as_a_directory() {
    for is_directory in [false, true] {
        let volume = folder(if is_directory { "volume" } else { "mount" });
        publish(&volume, "v1", "app.conf", "v1");
        symlink("..data/app.conf", volume.join("app.conf")).unwrap();
        let path = if is_directory { volume.clone() } else { volume.join("app.conf") };
        let watching = Watching::start(&format!("file: '{}', interval: 3600", path.display()));
        let line = |code: &str, version: &str| {
            if is_directory { format!("{code} app.conf") } else { format!("{code} {version}") }
        };
        watching.wait_for(&[&line("changed", "v1"), &line("healthy", "v1")]);
        for version in ["v2", "v3", "v4"] {
            publish(&volume, version, "app.conf", version);
            watching.wait_for(&[&line("changed", version)]);
        }
        fs::remove_dir_all(volume).unwrap();
    }
}

#[test]
fn d13_what_cannot_be_read_is_told_and_changes_nothing() {
    let folder = folder("unreadable");
    let file = folder.join("file");
    fs::write(&file, "good").unwrap();
    let watching = Watching::start(&format!("file: '{}'", file.display()));
    watching.wait_for(&["changed good", "healthy good"]);
    // A FIFO without a writer would block a reader.
    let fifo = folder.join("fifo");
    let status = std::process::Command::new("mkfifo").arg(&fifo).status_in_time().unwrap();
    assert!(status.success());
    fs::rename(&fifo, &file).unwrap();
    watching.wait_for_explanation("watch.it: 4 bytes (as of ");
    let status = watching.command(&["status"]);
    assert!(status.contains("not a regular file"), "{status}");
    replace(&file, &"x".repeat(1024 * 1024 + 1));
    wait_until("the size is told", || watching.command(&["status"]).contains("more than 1 MiB"));
    assert_eq!(watching.seen(), [""; 0], "the last value stays");
    replace(&file, &"x".repeat(1024 * 1024));
    watching.wait_for(&["changed"]);
    replace(&file, "better");
    watching.wait_for(&["changed better"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn d13_where_files_change_without_an_event_they_are_polled() {
    if !modes().contains(&Mode::Pid1) {
        return;
    }
    // The kernel tells nothing about files of proc. This one has another content in a namespace of its own.
    let rename = "jobs: [{ name: 'rename', exec: ['sh', '-c', 'echo two > /proc/sys/kernel/hostname'],
        when: { source: 'watch.it', once: 'healthy' } }, ";
    let text = config("file: '/proc/sys/kernel/hostname', interval: '100ms'").replace("jobs: [", rename);
    let script = "set -- unshare --uts sh -c 'echo one > /proc/sys/kernel/hostname; exec \"$@\"' sh \"$@\"";
    let watching = Watching { run: Supervisor::with_setup(Mode::Pid1, script, &text) };
    watching.wait_for(&["changed one", "changed two", "healthy one"]);
}

#[test]
fn d13_where_the_limits_of_inotify_are_reached_files_are_polled() {
    // The limits of a user namespace; those of the machine stay as they are.
    let inside = |limit: &str| {
        format!("set -- unshare -Ur sh -c 'echo 0 > /proc/sys/user/{limit} && exec \"$@\"' sh \"$@\"")
    };
    for (limit, words) in [
        ("max_inotify_watches", "ENOSPC; polling them instead; raise fs.inotify.max_user_watches"),
        ("max_inotify_instances", "EMFILE; polling them instead; raise fs.inotify.max_user_instances"),
    ] {
        let probe = std::process::Command::new("sh")
            .args(["-c", &format!("{}; \"$@\"", inside(limit)), "sh", "true"])
            .status_in_time();
        if !probe.is_ok_and(|status| status.success()) {
            skip("user namespaces are not permitted here");
            return;
        }
        let folder = folder(limit);
        let file = folder.join("file");
        fs::write(&file, "one").unwrap();
        let text = config(&format!("file: '{}', interval: '100ms'", file.display()));
        let mut watching = Watching { run: Supervisor::with_setup(Mode::Plain, &inside(limit), &text) };
        watching.run.wait_for_line(&format!("cannot follow files with inotify: {words}"));
        watching.wait_for(&["changed one", "healthy one"]);
        for text in ["two", "three"] {
            replace(&file, text);
            watching.wait_for(&[&format!("changed {text}")]);
        }
        watching.run.signal("-TERM");
        let (code, log) = watching.run.wait();
        assert_eq!(code, 0);
        assert_eq!(log.matches("cannot follow files").count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
