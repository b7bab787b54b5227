//! The example with two services and an agent inside the container does what its page says.

use std::path::Path;
use std::time::Duration;

use crate::agent::{consul, http, own_address, service_id};
use crate::support::{As, Supervisor, until};

#[test]
fn the_example_finds_its_database_and_leaves_the_catalog_before_the_agent_goes() {
    let ip = own_address();
    let programs = consul().parent().unwrap().display();
    let example =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/consul.json5"));
    let script = format!("export CONSUL_IP={ip} PATH={programs}:$PATH");
    let control = "{\n  control: { socket: \"@/control\" },";
    let config = example.unwrap().replacen("{\n", control, 1);
    let mut run = Supervisor::behind(As::Plain, &script, &config);
    run.lines("the database is up", 1);
    run.lines("the website is up, the database is known", 1);
    run.lines("the databases have changed", 1);
    let address = format!("{ip}:8500");
    until("the website is not there", || {
        let found = http(&address, "GET", "/v1/health/service/web?passing=1", None, "");
        found.is_ok_and(|(_, body)| body.contains(&service_id("web")))
    });
    run.signal("-TERM");
    let asked = std::time::Instant::now();
    let (code, log) = run.end();
    assert_eq!(code, 0, "{log}");
    assert!(asked.elapsed() < Duration::from_secs(10), "{log}");
    assert!(!log.contains("deregistration not confirmed"), "{log}");
    let place = |text: &str| log.find(text).unwrap_or_else(|| panic!("no `{text}` in\n{log}"));
    let agent = place("consul-agent stopping: sent");
    assert!(place("db exited on SIGTERM") < agent && place("web exited on SIGTERM") < agent, "{log}");
}
