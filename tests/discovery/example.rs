//! `examples/consul.json5`, two services and a Consul agent in one container, does what the manual says.

use std::path::Path;
use std::time::Duration;

use crate::support::consul::{consul, http, own_address, service_id};
use crate::support::supervisor::{Mode, Supervisor, wait_until};

#[test]
fn consul_example_finds_its_database_and_deregisters_before_the_agent_stops() {
    let ip = own_address();
    let programs = consul().parent().unwrap().display();
    let example =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/consul.json5"));
    let script = format!("export CONSUL_IP={ip} PATH={programs}:$PATH");
    let control = "{\n  control: { socket: \"@/control\" },";
    let config = example.unwrap().replacen("{\n", control, 1);
    let mut run = Supervisor::with_setup(Mode::Plain, &script, &config);
    run.wait_for_lines("the database is up", 1);
    run.wait_for_lines("the website is up, the database is known", 1);
    run.wait_for_lines("the databases have changed", 1);
    let address = format!("{ip}:8500");
    wait_until("the website is registered", || {
        let found = http(&address, "GET", "/v1/health/service/web?passing=1", None, "");
        found.is_ok_and(|(_, body)| body.contains(&service_id("web")))
    });
    run.signal("-TERM");
    let stopping = std::time::Instant::now();
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(stopping.elapsed() < Duration::from_secs(30));
    assert!(!log.contains("deregistration not confirmed"));
    let position = |text: &str| log.find(text).unwrap_or_else(|| panic!("no `{text}`"));
    let agent = position("consul-agent stopping: sent");
    assert!(position("db exited on SIGTERM") < agent && position("web exited on SIGTERM") < agent);
}
