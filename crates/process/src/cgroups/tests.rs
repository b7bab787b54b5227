use containerpilot_test_support::folder;

use super::*;

const HYBRID: &str = "24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw
31 24 0:27 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
32 31 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:10 - cgroup2 cgroup2 rw
";

fn directory(path: &str, mounts: &str) -> Option<String> {
    Some(directory_of(path, mounts)?.to_str().unwrap().trim_end_matches('/').to_owned())
}

#[test]
fn p4_own_cgroup_is_found_below_the_mount_that_shows_it() {
    let expected = |path: &str| Some(path.to_owned());
    assert_eq!(directory("/", HYBRID), expected("/sys/fs/cgroup/unified"));
    assert_eq!(directory("/a/b", HYBRID), expected("/sys/fs/cgroup/unified/a/b"));
    // The whole hierarchy, and then a part of it, as without a cgroup namespace of the container.
    let part = "50 24 0:38 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
    assert_eq!(directory("/docker/abc", part), expected("/sys/fs/cgroup"));
    assert_eq!(directory("/docker/abc/x", part), expected("/sys/fs/cgroup/x"));
    assert_eq!(directory("/docker/abcd", part), None);
    // Of two mounts, the one that shows it: the root of the first is outside of the cgroup namespace.
    let outer =
        "50 24 0:38 /.. /outer rw - cgroup2 cgroup2 rw\n51 24 0:38 / /inner rw - cgroup2 cgroup2 rw\n";
    assert_eq!(directory("/x", outer), expected("/inner/x"));
    assert_eq!(directory("/../x", outer), expected("/outer/x"));
    assert_eq!(directory("/../../x", outer), None);
    for nothing in ["", "nonsense - cgroup2 x\n", "1 2 3 / /x rw - tmpfs cgroup2 rw\n"] {
        assert_eq!(directory("/", nothing), None, "{nothing}");
    }
}

#[test]
fn p4_path_of_a_process_names_its_run() {
    let run = |path: &str| run_in(&format!("4:memory:/own/7\n0::{path}\n"), "/own").map(|run| run.0);
    assert_eq!(run("/own/7"), Some(7));
    assert_eq!(run("/own/7/made/by/itself"), Some(7));
    for other in ["/", "/own", "/own/", "/ownx/7", "/own/x7", "/7", "/own/7 (deleted)"] {
        assert_eq!(run(other), None, "{other}");
    }
    assert_eq!(run_in("4:memory:/own/7\n", "/own"), None);
}

/// A directory with some of the files of a cgroup.
fn fake(files: &[(&str, &str)]) -> PathBuf {
    let folder = folder();
    for (name, content) in [("cgroup.kill", ""), ("cgroup.procs", "")].iter().chain(files) {
        fs::write(folder.join(name), content).unwrap();
    }
    folder
}

#[test]
fn p4_cgroup_with_a_limit_is_not_used_because_programs_would_not_find_it() {
    for (file, value) in
        [("memory.max", "1073741824\n"), ("memory.high", "0\n"), ("cpu.max", "50000 100000\n")]
    {
        let own = fake(&[("memory.max", "max\n"), (file, value)]);
        let error = Parent::below(&own, "/").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("jobs would not find the {file} of {} in theirs", own.display())
        );
        assert!(!own.join(format!("containerpilot-{}-0", std::process::id())).exists());
        fs::remove_dir_all(own).unwrap();
    }
    let own = fake(&[("memory.max", "max\n"), ("cpu.max", "max 100000\n"), ("pids.max", "2048\n")]);
    Parent::below(&own, "/").unwrap();
    fs::remove_dir_all(own).unwrap();
}

#[test]
fn p4_cgroup_without_cgroup_kill_is_not_used() {
    let own = folder();
    assert!(matches!(Parent::below(&own, "/"), Err(CgroupError::NoKill(_))));
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    fs::remove_dir_all(own).unwrap();
}

#[test]
fn p4_cgroup_that_another_supervisor_has_left_is_not_used() {
    let own = fake(&[]);
    let name = |number: u32| format!("containerpilot-{}-{number}", std::process::id());
    let [first, second] = ["/", "/x"].map(|path| Parent::below(&own, path).unwrap());
    assert_eq!((&first.directory, &*first.path), (&own.join(name(0)), &*format!("/{}", name(0))));
    assert_eq!((&second.directory, &*second.path), (&own.join(name(1)), &*format!("/x/{}", name(1))));
    for number in 2..=MAX_NAMES {
        fs::create_dir(own.join(name(number))).unwrap();
    }
    assert!(Parent::below(&own, "/").unwrap_err().to_string().ends_with(": file exists"));
    fs::remove_dir_all(own).unwrap();
}

#[test]
fn p4_directories_that_are_gone_or_not_writable_change_nothing() {
    let own = fake(&[]);
    let mut cgroups = Cgroups { parent: Some(Parent::below(&own, "/").unwrap()), ..Cgroups::default() };
    assert!(cgroups.create(RunId(1)).is_some());
    assert!(cgroups.create(RunId(1)).is_none(), "it exists");
    cgroups.ended(RunId(1));
    assert!(cgroups.ended.is_empty() && !cgroups.directory_of(RunId(1)).unwrap().exists());
    fs::remove_dir_all(&own).unwrap();
    assert!(cgroups.create(RunId(2)).is_none());
    cgroups.kill(RunId(2));
    cgroups.kill_all();
    cgroups.ended(RunId(2));
    cgroups.remove_ended();
    cgroups.remove_all(Instant::now());
    assert!(cgroups.ended.is_empty());
}
