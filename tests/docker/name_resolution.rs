//! Host names in an image that contains only the binary (D1, D5, H5).

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::engine::{Container, Network, folder, import, put_busybox, put_program, scratch, wait_until};
use crate::support::deadline::InTime;

/// An image with a real Consul agent.
fn consul() -> &'static str {
    static IMAGE: OnceLock<String> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let root = folder("consul");
        put_busybox(&root);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/consul");
        let agent = Command::new(script).output_in_time().unwrap();
        let agent = String::from_utf8(agent.stdout).unwrap().trim().to_owned();
        assert!(!agent.is_empty(), "scripts/consul failed");
        put_program(&root, Path::new(&agent), "consul");
        import(&root)
    })
}

fn agent(network: &Network, name: &str) -> Container {
    let options = ["--network", &network.0, "--network-alias", name, "--entrypoint", "/bin/consul"];
    let args = ["agent", "-dev", "-client", "0.0.0.0", "-log-level", "warn"];
    let agent = Container::start_with_args(&options, consul(), &args);
    wait_until("Consul responds", || agent.exec(&["/bin/consul", "catalog", "services"]).status.success());
    agent
}

/// A job without `exec`, because the image contains no other program.
fn config(consul: &str) -> String {
    format!(
        "{{ consul: '{consul}:8500', control: {{ socket: '/socket' }}, jobs: [{{ name: 'web', port: 8500, interfaces: 'inet', \
         health: {{ tcp: '{consul}:8500', interval: 1, ttl: 10 }} }}] }}"
    )
}

fn wait_until_registered(agent: &Container) {
    wait_until("the service is registered", || {
        let services = agent.exec(&["/bin/consul", "catalog", "services"]);
        String::from_utf8_lossy(&services.stdout).lines().any(|line| line == "web")
    });
}

#[test]
fn d5_container_name_is_resolved_by_dockers_dns() {
    let network = Network::new();
    let agent = agent(&network, "the-agent");
    let pilot = Container::start(&config("the-agent"), &["--network", &network.0], scratch());
    wait_until_registered(&agent);
    pilot.stop(300);
    assert_eq!(pilot.exit_code(), "0");
    wait_until("the service is deregistered", || {
        let services = agent.exec(&["/bin/consul", "catalog", "services"]);
        !String::from_utf8_lossy(&services.stdout).contains("web")
    });
}

#[test]
fn d5_name_is_resolved_by_etc_hosts() {
    let network = Network::new();
    let agent = agent(&network, "unused-name");
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let host = format!("From-Hosts:{}", agent.inspect(format));
    let options = ["--network", &network.0, "--add-host", &host];
    let _pilot = Container::start(&config("from-hosts"), &options, scratch());
    wait_until_registered(&agent);
}

#[test]
fn d5_unknown_name_is_logged_and_stops_nothing() {
    let network = Network::new();
    let config = "{ consul: 'nobody:8500', stopTimeout: 300, control: { socket: '/socket' }, watches: [{ name: 'db', interval: 1 }], \
                  jobs: [{ name: 'web', port: 8500, interfaces: 'inet', health: { tcp: '127.0.0.1:1', interval: 1, ttl: 10 } }] }";
    let pilot = Container::start(config, &["--network", &network.0], scratch());
    pilot.wait_for_log("cannot resolve nobody");
    assert_eq!(pilot.inspect("{{.State.Running}}"), "true");
    pilot.stop(300);
    assert_eq!(pilot.exit_code(), "0");
}

#[test]
fn d5_short_name_is_completed_with_the_search_domain() {
    let network = Network::new();
    let agent = agent(&network, "agent.inner.example");
    // `ndots:1` tries the search domain first; Docker's default asks for the bare name first, which gets no answer here.
    let options = ["--network", &network.0, "--dns-search", "inner.example", "--dns-option", "ndots:1"];
    let _pilot = Container::start(&config("agent"), &options, scratch());
    wait_until_registered(&agent);
}
