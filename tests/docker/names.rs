//! D1, D5, H5: names of other machines in an image of nothing but the binary.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::engine::{Container, Network, folder, import, put_busybox, scratch, until};

/// An image with a real agent of Consul.
fn consul() -> &'static str {
    static IMAGE: OnceLock<String> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let root = folder("consul");
        put_busybox(&root);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/consul");
        let agent = Command::new(script).output().unwrap();
        let agent = String::from_utf8(agent.stdout).unwrap().trim().to_owned();
        assert!(!agent.is_empty(), "`scripts/consul` has found no agent");
        fs::copy(&agent, root.join("bin/consul")).unwrap();
        // Debian's wants the C library, at the places it names.
        let needs = Command::new("ldd").arg(&agent).output().unwrap().stdout;
        for library in
            String::from_utf8(needs).unwrap().split_whitespace().filter(|word| word.starts_with('/'))
        {
            let place = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(library, place).unwrap();
        }
        import(&root)
    })
}

fn agent(network: &Network, name: &str) -> Container {
    let options = ["--network", &network.0, "--network-alias", name, "--entrypoint", "/bin/consul"];
    let args = ["agent", "-dev", "-client", "0.0.0.0", "-log-level", "warn"];
    let agent = Container::running(&options, consul(), &args);
    until("Consul answers", || agent.exec(&["/bin/consul", "catalog", "services"]).status.success());
    agent
}

/// Nothing but the catalog and a check, since there is no other program.
fn config(consul: &str) -> String {
    format!(
        "{{ consul: '{consul}:8500', control: {{ socket: '/socket' }}, jobs: [{{ name: 'web', port: 8500, interfaces: 'inet', \
         health: {{ tcp: '{consul}:8500', interval: 1, ttl: 10 }} }}] }}"
    )
}

fn advertises(agent: &Container) {
    until("the service is in the catalog", || {
        let services = agent.exec(&["/bin/consul", "catalog", "services"]);
        String::from_utf8_lossy(&services.stdout).lines().any(|line| line == "web")
    });
}

#[test]
fn d5_a_container_name_is_found_through_dockers_own_name_server() {
    let network = Network::new();
    let agent = agent(&network, "the-agent");
    let pilot = Container::start(&config("the-agent"), &["--network", &network.0], scratch());
    advertises(&agent);
    pilot.stop(300);
    assert_eq!(pilot.code(), "0");
    until("the service has left the catalog", || {
        let services = agent.exec(&["/bin/consul", "catalog", "services"]);
        !String::from_utf8_lossy(&services.stdout).contains("web")
    });
}

#[test]
fn d5_a_name_is_found_in_the_containers_own_list_of_hosts() {
    let network = Network::new();
    let agent = agent(&network, "nobody-asks-for-this");
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let host = format!("From-Hosts:{}", agent.inspect(format));
    let options = ["--network", &network.0, "--add-host", &host];
    let _pilot = Container::start(&config("from-hosts"), &options, scratch());
    advertises(&agent);
}

#[test]
fn d5_a_name_that_nobody_knows_is_told_and_stops_nothing() {
    let network = Network::new();
    let config = "{ consul: 'nobody:8500', stopTimeout: 300, control: { socket: '/socket' }, watches: [{ name: 'db', interval: 1 }], \
                  jobs: [{ name: 'web', port: 8500, interfaces: 'inet', health: { tcp: '127.0.0.1:1', interval: 1, ttl: 10 } }] }";
    let pilot = Container::start(config, &["--network", &network.0], scratch());
    pilot.says("looked up");
    assert_eq!(pilot.inspect("{{.State.Running}}"), "true");
    pilot.stop(300);
    assert_eq!(pilot.code(), "0");
}

#[test]
fn d5_a_short_name_gets_the_domains_of_the_container() {
    let network = Network::new();
    let agent = agent(&network, "agent.inner.example");
    // Docker has short names asked for as they stand first, which outside its network nobody answers here.
    let options = ["--network", &network.0, "--dns-search", "inner.example", "--dns-option", "ndots:1"];
    let _pilot = Container::start(&config("agent"), &options, scratch());
    advertises(&agent);
}
