//! `containerpilot health` as the HEALTHCHECK of an image (X4).

use std::fs;

use super::engine::{Container, busybox, docker, folder, new_name, wait_until};

#[test]
fn x4_healthcheck_status_follows_the_health_of_jobs() {
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
    let wait_for = |state: &str| {
        wait_until(&format!("the container is {state}"), || {
            container.inspect("{{.State.Health.Status}}") == state
        })
    };
    wait_for("unhealthy");
    container.shell("touch /tmp/well");
    wait_for("healthy");
    let output = container.inspect("{{range .State.Health.Log}}{{.Output}}{{end}}");
    assert!(output.contains("main"), "{output}");
    container.shell("rm /tmp/well");
    wait_for("unhealthy");
}
