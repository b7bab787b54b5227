//! `examples/distroless`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::Container;
use crate::support::deadline::InTime;
use crate::support::program::containerpilot;
use crate::support::skip::skip;
use crate::support::supervisor::{child_pids, wait_until};

#[test]
fn p8_p9_recipe_runs_in_an_image_with_nothing_but_the_two_programs() {
    let is_static = |path: &str| {
        let libraries = Command::new("ldd").arg(path).output_in_time();
        Path::new(path).exists() && libraries.is_ok_and(|output| !output.status.success())
    };
    let Some(busybox) = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| is_static(path)) else {
        skip("there is no static busybox");
        return;
    };
    // The image. A build for tests is not static, and needs its libraries.
    let script = format!(
        "root=$CONTAINERPILOT_TEST/root
         mkdir -p $root/bin $root/etc $root/srv $root/proc
         cp {pilot} $root/bin/containerpilot; cp {busybox} $root/bin/httpd
         cp $recipe/containerpilot.json5 $root/etc; cp $recipe/index.html $root/srv
         for library in $(ldd {pilot} | grep -o '/[^ ]*'); do cp --parents -L $library $root; done
         mount -t proc proc $root/proc
         unset CONTAINERPILOT_SOCKET
         set -- chroot $root /bin/containerpilot",
        pilot = containerpilot()
    );
    let Some(mut container) = Container::start("distroless", &script) else { return };
    container.supervisor.wait_for_line("server healthy");
    let page = container.shell("curl -s --max-time 30 http://127.0.0.1:8080/");
    assert_eq!(page.trim(), "Hello from an image without a shell.");
    let root = container.supervisor.file("root");
    let health = format!(
        "env -u CONTAINERPILOT_SOCKET chroot {} /bin/containerpilot health && echo yes",
        root.display()
    );
    wait_until("the container is healthy", || container.shell(&health).contains("yes"));
    let server = child_pids(container.supervisor.pid())[0];
    let owner = fs::metadata(format!("/proc/{server}")).unwrap();
    assert_eq!((owner.uid(), owner.gid()), (65532, 65532));
    container.supervisor.signal("-TERM");
    assert_eq!(container.supervisor.wait().0, 0);
}
