//! `examples/behind-nginx`: no request fails.

use std::collections::BTreeSet;
use std::time::Instant;

use super::clients::{self, Clients};
use super::compose::{Project, docker};
use super::wait_until;

fn runs(container: &str) -> bool {
    docker(&["inspect", "--format", "{{.State.Running}}", container]).trim() == "true"
}

/// Runs `docker stop`; returns the exit code of the container.
fn stop(container: &str) -> i32 {
    docker(&["stop", container]);
    docker(&["inspect", "--format", "{{.State.ExitCode}}", container]).trim().parse().unwrap()
}

#[test]
#[ignore = "slow: minutes of load, with the static binary"]
fn no_request_fails_while_instances_start_stop_and_die() {
    let project = Project::up("behind-nginx");
    let instances = || -> BTreeSet<String> { project.containers("app").into_iter().collect() };
    let nginx = project.container("nginx");
    let list = || docker(&["exec", &nginx, "cat", "/run/upstreams.conf"]);
    clients::wait_for_response(project.port());
    wait_until(
        || format!("nginx lists two instances; its list was {}", list()),
        || list().lines().count() == 2,
    );
    let first = instances();
    assert_eq!(first.len(), 2);

    let mut clients = Clients::start(project.port());
    let all_of = |names: &[&String]| names.iter().map(|name| (*name).clone()).collect::<BTreeSet<_>>();
    let wait_for_instances = |clients: &Clients, what: &str, names: &BTreeSet<String>| {
        clients.wait_for_instances(what, names);
        wait_until(
            || format!("nginx lists {} instances ({what}); its list was\n{}", names.len(), list()),
            || list().lines().count() == names.len(),
        );
        println!("{what}: {} instances respond", names.len());
    };
    wait_for_instances(&clients, "at first", &first);

    // Scale up.
    project.scale("app", 3);
    let all = instances();
    assert!(all.is_superset(&first) && all.len() == 3, "{all:?}");
    wait_for_instances(&clients, "an instance was added", &all);
    let [one, two, three] = &all.iter().collect::<Vec<_>>()[..] else { panic!("{all:?}") };

    // Maintenance: deregistered but running.
    docker(&["exec", one, "containerpilot", "maintenance", "enable"]);
    wait_for_instances(&clients, "one is in maintenance", &all_of(&[two, three]));
    assert!(runs(one));
    docker(&["exec", one, "containerpilot", "-maintenance", "disable"]);
    wait_for_instances(&clients, "leaving maintenance mode", &all);

    // A graceful stop.
    assert_eq!(stop(two), 0, "its exit code");
    wait_for_instances(&clients, "one was stopped", &all_of(&[one, three]));
    project.scale("app", 3);
    wait_for_instances(&clients, "it was started again", &all);

    // Consul loses its data.
    project.restart_consul(&nginx);
    wait_for_instances(&clients, "Consul was restarted", &all);

    // Until here no POST may fail, although nginx never retries POST requests. A killed instance loses the requests in
    // progress, so POST requests end before the kill.
    clients.stop_posts();
    let killed = Instant::now();
    docker(&["kill", three]);
    wait_for_instances(&clients, "one was killed", &all_of(&[one, two]));
    assert!(!runs(three));
    project.scale("app", 3);
    wait_for_instances(&clients, "the killed instance is back", &all);

    let tally = clients.end();
    println!("{tally}; the killed one was back after {:.1?}", killed.elapsed());
    assert!(tally.failures.is_empty(), "{tally}\n{}\n{}", tally.failures.join("\n"), project.logs());
    // Enough requests to hit a gap of 100 ms.
    assert!(tally.gets > 500 && tally.posts > 30, "{tally}");

    // The nginx image sets STOPSIGNAL to SIGQUIT; the example's Dockerfile sets it back to SIGTERM.
    assert_eq!(stop(&nginx), 0, "nginx's exit code");
}
