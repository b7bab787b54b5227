//! `examples/no-consul` does what its README says, with a real name server, a real haproxy, and a volume as the kubelet writes it.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::files::{folder, publish};
use super::listen_again;
use crate::support::http_server::instance;
use crate::support::name_server::NameServer;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

/// The status and the body of an answer; empty without one.
fn get(port: u16, path: &str) -> String {
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")?;
        std::io::read_to_string(stream)
    };
    let answer = ask().unwrap_or_default();
    let status = answer.split(' ').nth(1).unwrap_or_default();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    if status == "200" { body.to_owned() } else { status.to_owned() }
}

#[test]
fn d13_d15_the_example_without_consul_follows_names_files_and_peers() {
    let (one, two) = ("127.0.54.1", "127.0.54.2");
    let record = |ip: &str| format!("--host-record=app.test,{ip}");
    let Some(mut server) = NameServer::start("127.53.0.4", &[&record(one)]) else { return };
    let app_port = instance(one, 0);
    instance(two, app_port);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let volume = folder("rules");
    let rules = |version: &str, text: &str| publish(&volume, version, "rules.cfg", text);
    rules("v1", "");
    std::os::unix::fs::symlink("..data/rules.cfg", volume.join("rules.cfg")).unwrap();
    let database = TcpListener::bind("127.0.0.1:0").unwrap();
    let db: SocketAddr = database.local_addr().unwrap();

    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/no-consul");
    let config = std::fs::read_to_string(format!("{example}/containerpilot.json5")).unwrap();
    let config = config.replacen("{\n", "{\n  control: { socket: '@/control' },", 1).replace("/run/", "@/");
    let script = format!(
        "{}\nexport TEMPLATES={example} APP=app.test APP_PORT={app_port} PORT={port} DB={db}
         export RULES={}/rules.cfg WORKER='sleep 1000'",
        server.setup(),
        volume.display()
    );
    let mut run = Supervisor::with_setup(Mode::Pid1, &script, &config);

    // By name.
    wait_until("the first instance answers", || get(port, "/admin") == one);
    server.restart(&[&record(one), &record(two)]);
    wait_until("the second instance answers", || get(port, "/") == two);
    server.restart(&[&record(two)]);
    wait_until("only the second instance answers", || (0..4).all(|_| get(port, "/") == two));

    // In a file.
    rules("v2", "    http-request deny if { path_beg /admin }\n");
    wait_until("the rule counts", || get(port, "/admin") == "403");
    assert_eq!(get(port, "/"), two);
    rules("v3", "    wrong\n");
    run.wait_for_line("unknown keyword 'wrong'");
    run.wait_for_line("haproxy.cfg is not changed: test");
    assert_eq!((get(port, "/admin").as_str(), get(port, "/").as_str()), ("403", two), "the old rules stay");
    rules("v4", "");
    wait_until("the rule is gone", || get(port, "/admin") == two);

    // By address.
    run.wait_for_lines("worker started", 1);
    drop(database);
    run.wait_for_line("worker exited on SIGTERM");
    let _database = listen_again(db);
    run.wait_for_line("worker started");
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert_eq!(log.matches("haproxy started").count(), 1, "reloaded, not restarted");
    std::fs::remove_dir_all(volume).unwrap();
}
