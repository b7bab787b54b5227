//! The worked example of `examples/behind-nginx`, as it stands: in real containers, while instances come and go. It needs a
//! Docker engine: `scripts/docker run cargo test --test example`, or `make test-docker`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it does not expect")]

mod clients;
mod composition;
#[path = "../supervisor/patience.rs"]
mod patience;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clients::Clients;
use composition::Composition;

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where the repository is.
const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// A script of the repository, which finds and leaves downloaded programs where all tests do.
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
fn until(what: impl Fn() -> String, holds: impl FnMut() -> bool) {
    patience::until_within(PATIENCE, what, holds);
}

#[test]
fn requests_go_on_without_an_error_while_instances_come_and_go() {
    let world = Composition::up();
    let first = world.instances();
    assert_eq!(first.len(), 2);

    let mut clients = Clients::start(world.port());
    let all_of = |names: &[&String]| names.iter().map(|name| (*name).clone()).collect::<BTreeSet<_>>();
    let settled = |clients: &Clients, what: &str, names: &BTreeSet<String>| {
        clients.settle(what, names);
        until(
            || format!("{what}: nginx's list is\n{}", world.list()),
            || world.list().lines().count() == names.len(),
        );
        println!("{what}: {} answer", names.len());
    };
    settled(&clients, "at first", &first);

    // One more.
    world.scale(3);
    let all = world.instances();
    assert!(all.is_superset(&first) && all.len() == 3, "{all:?}");
    settled(&clients, "an instance was added", &all);
    let [one, two, three] = &all.iter().collect::<Vec<_>>()[..] else { panic!("{all:?}") };

    // One out of the catalog, although it runs.
    world.ask(one, &["maintenance", "enable"]);
    settled(&clients, "one is in maintenance", &all_of(&[two, three]));
    assert!(world.runs(one));
    world.ask(one, &["-maintenance", "disable"]);
    settled(&clients, "maintenance is over", &all);

    // One that is asked to end.
    assert_eq!(world.stop(two), 0, "its exit code");
    settled(&clients, "one was stopped", &all_of(&[one, three]));
    world.scale(3);
    settled(&clients, "it was started again", &all);

    // The catalog forgets everything, and everybody.
    world.restart_consul();
    settled(&clients, "Consul was restarted", &all);

    // So far no request had to be asked twice, which nginx would not do with these. One that is being answered by an
    // instance that is killed is lost, and nobody can say whether it has been carried out.
    clients.rest_of_posts();
    let killed = Instant::now();
    world.kill(three);
    settled(&clients, "one was killed", &all_of(&[one, two]));
    assert!(!world.runs(three));
    world.scale(3);
    settled(&clients, "the dead are back", &all);

    let tally = clients.end();
    println!("{tally}; the killed one was back after {:.1?}", killed.elapsed());
    assert!(tally.failures.is_empty(), "{tally}\n{}\n{}", tally.failures.join("\n"), world.logs());
    // Enough of them for a gap of a tenth of a second to be met.
    assert!(tally.gets > 500 && tally.posts > 30, "{tally}");

    // Its image asks for a signal that is for nginx and not for a supervisor; ours asks for the right one again.
    assert_eq!(world.stop(&world.nginx()), 0, "nginx's exit code");
}
