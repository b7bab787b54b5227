//! X4: `containerpilot health` as the HEALTHCHECK of an image.

use std::fs;

use crate::engine::{Container, busybox, docker, folder, new_name, until};

#[test]
fn x4_a_healthcheck_follows_the_jobs() {
    let file = folder("dockerfile");
    let text = format!(
        "FROM {}\nHEALTHCHECK --interval=1s --retries=1 CMD [\"/bin/containerpilot\", \"health\"]\n",
        busybox()
    );
    fs::write(file.join("Dockerfile"), text).unwrap();
    let image = new_name("health");
    docker(&["build", "--quiet", "--tag", &image, file.to_str().unwrap()]);
    fs::remove_dir_all(file).unwrap();
    let config = "{ jobs: [{ name: 'main', exec: 'sleep 1000', health: { exec: 'test -e /tmp/well', interval: 1, ttl: 5 } }] }";
    let container = Container::start(config, &[], &image);
    let is = |state: &str| until(state, || container.inspect("{{.State.Health.Status}}") == state);
    is("unhealthy");
    container.shell("touch /tmp/well");
    is("healthy");
    let said = container.inspect("{{range .State.Health.Log}}{{.Output}}{{end}}");
    assert!(said.contains("main"), "{said}");
    container.shell("rm /tmp/well");
    is("unhealthy");
}
