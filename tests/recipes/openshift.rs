//! `examples/openshift`.

use std::fs;

use super::Container;
use crate::support::program::containerpilot;
use crate::support::servers::path_from;
use crate::support::supervisor::wait_until;

/// A user id as OpenShift chooses them.
const USER: u32 = 1_000_680_000;

#[test]
fn x1_p8_recipe_runs_as_any_user_of_group_0_with_a_read_only_root() {
    let nginx = path_from("nginx", "nginx");
    let script = format!(
        "mkdir -p /etc/nginx /srv/data; cp $recipe/nginx.conf /etc/nginx
         PATH={}:$PATH; unset CONTAINERPILOT_SOCKET
         mount -t tmpfs -o mode=1777 none /tmp
         mount -t tmpfs -o mode=775,gid=0 none /srv/data
         for folder in / /etc /run /srv /var/lib; do mount -o remount,bind,ro $folder; done
         for folder in / /etc /run /srv /var/lib; do if touch $folder/test 2>/dev/null; then exit 9; fi; done
         set -- setpriv --reuid {USER} --regid 0 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \"$@\"",
        nginx.parent().unwrap().display()
    );
    let Some(mut container) = Container::start("openshift", &script) else { return };
    container.supervisor.wait_for_line("nginx started");
    let health = format!("CONTAINERPILOT_SOCKET=/tmp/containerpilot.socket {} health", containerpilot());
    wait_until("the container is healthy", || {
        container.shell(&format!("{health} && echo yes")).contains("yes")
    });
    let page = container.shell("curl -s --max-time 30 http://127.0.0.1:8080/");
    assert_eq!(page.trim(), format!("written by user {USER} and group 0"));
    let status = fs::read_to_string(format!("/proc/{}/status", container.supervisor.pid())).unwrap();
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    assert_eq!(value("CapBnd:").trim_start_matches('0'), "");
    assert!(value("Uid:").split_whitespace().all(|uid| uid == USER.to_string()));

    container.supervisor.signal("-TERM");
    let (code, log) = container.supervisor.wait();
    assert_eq!(code, 0);
    assert!(log.contains("nginx exited with code 0"));
}
