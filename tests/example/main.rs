//! The example `examples/behind-nginx` in real containers, under load, while instances start, stop and die. It needs a
//! Docker engine: `scripts/docker run cargo test --test example`, or `make test-docker`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation fails the test")]

mod clients;
mod compose;
#[path = "../support/deadline.rs"]
mod deadline;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clients::Clients;
use compose::Project;

/// The test fails if a single wait takes longer.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The root of the repository.
const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// A script of the repository, with the download directory that all tests share.
fn script(name: &str) -> Command {
    let mut command = Command::new(Path::new(HOME).join("scripts").join(name));
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."));
    command
}

/// The static binary: an image FROM scratch has no dynamic loader. `scripts/test-docker` builds it.
fn static_binary() -> std::ffi::OsString {
    std::env::var_os("STATIC_BINARY").expect("STATIC_BINARY is not set; run `make test-docker`")
}

/// Waits until something holds, and says what it was that did not.
fn wait_until(what: impl Fn() -> String, holds: impl FnMut() -> bool) {
    deadline::wait_until_within(TIMEOUT, what, holds);
}

#[test]
fn no_request_fails_while_instances_start_stop_and_die() {
    let project = Project::up();
    let first = project.instances();
    assert_eq!(first.len(), 2);

    let mut clients = Clients::start(project.port());
    let all_of = |names: &[&String]| names.iter().map(|name| (*name).clone()).collect::<BTreeSet<_>>();
    let wait_for_instances = |clients: &Clients, what: &str, names: &BTreeSet<String>| {
        clients.wait_for_instances(what, names);
        wait_until(
            || format!("nginx lists {} instances ({what}); its list was\n{}", names.len(), project.list()),
            || project.list().lines().count() == names.len(),
        );
        println!("{what}: {} instances respond", names.len());
    };
    wait_for_instances(&clients, "at first", &first);

    // Scale up.
    project.scale(3);
    let all = project.instances();
    assert!(all.is_superset(&first) && all.len() == 3, "{all:?}");
    wait_for_instances(&clients, "an instance was added", &all);
    let [one, two, three] = &all.iter().collect::<Vec<_>>()[..] else { panic!("{all:?}") };

    // Maintenance: deregistered but running.
    project.run_command(one, &["maintenance", "enable"]);
    wait_for_instances(&clients, "one is in maintenance", &all_of(&[two, three]));
    assert!(project.runs(one));
    project.run_command(one, &["-maintenance", "disable"]);
    wait_for_instances(&clients, "leaving maintenance mode", &all);

    // A graceful stop.
    assert_eq!(project.stop(two), 0, "its exit code");
    wait_for_instances(&clients, "one was stopped", &all_of(&[one, three]));
    project.scale(3);
    wait_for_instances(&clients, "it was started again", &all);

    // Consul loses its data.
    project.restart_consul();
    wait_for_instances(&clients, "Consul was restarted", &all);

    // Until here no POST may fail, although nginx never retries POST requests. A killed instance loses the requests in
    // progress, so POST requests end before the kill.
    clients.stop_posts();
    let killed = Instant::now();
    project.kill(three);
    wait_for_instances(&clients, "one was killed", &all_of(&[one, two]));
    assert!(!project.runs(three));
    project.scale(3);
    wait_for_instances(&clients, "the killed instance is back", &all);

    let tally = clients.end();
    println!("{tally}; the killed one was back after {:.1?}", killed.elapsed());
    assert!(tally.failures.is_empty(), "{tally}\n{}\n{}", tally.failures.join("\n"), project.logs());
    // Enough requests to hit a gap of 100 ms.
    assert!(tally.gets > 500 && tally.posts > 30, "{tally}");

    // The nginx image sets STOPSIGNAL to SIGQUIT; the example's Dockerfile sets it back to SIGTERM.
    assert_eq!(project.stop(&project.nginx()), 0, "nginx's exit code");
}
