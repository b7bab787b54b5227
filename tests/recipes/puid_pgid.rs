//! `examples/puid-pgid`.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::Container;
use crate::support::program::Folder;
use crate::support::supervisor::wait_until;

#[test]
fn p9_recipe_runs_as_the_user_of_the_environment_which_owns_the_data() {
    let folder = Folder::new("puid-pgid");
    let data = folder.file("data/deep/file", "data").ancestors().nth(2).unwrap().to_owned();
    let outside = folder.file("outside", "not a part of the data");
    symlink(&outside, data.join("link")).unwrap();
    let owner =
        |path: &str| fs::symlink_metadata(data.join(path)).map(|data| (data.uid(), data.gid())).unwrap();
    for (uid, gid) in [(1234, 2345), (4321, 2345)] {
        let script = format!(
            "mkdir /srv/data; mount --bind {} /srv/data; export PUID={uid} PGID={gid}",
            data.display()
        );
        let Some(mut container) = Container::start("puid-pgid", &script) else { return };
        container.supervisor.wait_for_line(&format!("running as {uid}:{gid}"));
        for path in ["", "deep", "deep/file", "link", "started"] {
            assert_eq!(owner(path), (uid, gid), "{path}");
        }
        assert_eq!(fs::metadata(&outside).unwrap().uid(), 0, "a link is not followed");
        wait_until("the container is healthy", || container.pilot(&["health"]).status.success());
        // No supplementary groups.
        let groups = format!("uid={uid} gid={gid} groups={gid}");
        assert_eq!(fs::read_to_string(data.join("started")).unwrap().trim(), groups);
        container.supervisor.signal("-TERM");
        assert_eq!(container.supervisor.wait().0, 0);
    }
}

#[test]
fn p9_recipe_refuses_a_user_that_does_not_exist() {
    let Some(container) = Container::start("puid-pgid", "export PUID=nobody-here") else { return };
    let supervisor = container.supervisor;
    wait_until("the error is written to standard error", || supervisor.stderr().contains("nobody-here"));
    assert_eq!(supervisor.wait().0, 1);
}
