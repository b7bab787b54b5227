//! Programs as they are: servers that support systemd or s6, or print a line.

use std::process::Command;

use super::{job, wait_healthy};
use crate::support::deadline::InTime;
use crate::support::servers::{Server, path_from, server};
use crate::support::skip::skip;
use crate::support::supervisor::{Supervisor, is_root, modes};

/// A program in the search path; `None` if it is not installed.
fn installed(program: &str) -> Option<String> {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output_in_time().unwrap();
    if !found.status.success() {
        skip(&format!("{program} is not installed"));
        return None;
    }
    Some(String::from_utf8(found.stdout).unwrap().trim().to_owned())
}

/// Waits until the job `server` is healthy, and stops everything.
fn becomes_healthy(run: Supervisor) {
    wait_healthy(&run, "server");
    assert_eq!(job(&run, "server")["readiness"], "ready");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn h11_redis_tells_systemd_that_it_is_ready() {
    let Some(Server { program, libraries }) = server("usr/bin/redis-server") else { return };
    let (redis, libraries) = (program.display(), libraries.display());
    for mode in modes() {
        let config = format!(
            "{{ jobs: [{{ name: 'server', ready: 'notify', env: {{ LD_LIBRARY_PATH: '{libraries}' }}, exec: ['{redis}',
                '--supervised', 'systemd', '--port', '0', '--unixsocket', '@/redis', '--dir', '@/', '--save', ''] }}] }}"
        );
        let run = Supervisor::start(mode, &config);
        wait_healthy(&run, "server");
        let status = job(&run, "server")["processStatus"].as_str().unwrap_or_default().to_owned();
        assert!(status.contains("Ready to accept connections"), "{status}");
        becomes_healthy(run);
    }
}

#[test]
fn h11_haproxy_tells_systemd_that_it_is_ready() {
    let Some(Server { program, libraries }) = server("usr/sbin/haproxy") else { return };
    let (haproxy, libraries) = (program.display(), libraries.display());
    let script = "printf 'defaults\\n mode tcp\\n timeout client 1s\\n timeout server 1s\\n timeout connect 1s\\n\
                  frontend f\\n bind unix@%s\\n' @/haproxy.socket >@/haproxy.cfg";
    let config = format!(
        "{{ jobs: [{{ name: 'server', ready: 'notify', env: {{ LD_LIBRARY_PATH: '{libraries}' }},
            exec: ['{haproxy}', '-Ws', '-f', '@/haproxy.cfg'] }}] }}"
    );
    becomes_healthy(Supervisor::with_setup(modes()[0], script, &config));
}

#[test]
fn h11_postgresql_tells_systemd_that_it_is_ready() {
    let (Some(initdb), Some(postgres)) = (installed("initdb"), installed("postgres")) else { return };
    let notifies =
        std::fs::read(&postgres).is_ok_and(|program| program.windows(9).any(|bytes| bytes == b"sd_notify"));
    if !is_root() || !notifies {
        skip("this needs root, and a PostgreSQL that was built with systemd");
        return;
    }
    let config = format!(
        "{{ jobs: [
            {{ name: 'init', user: 'nobody', exec: ['{initdb}', '-D', '@/data', '-A', 'trust', '--no-sync', '-U', 'postgres'] }},
            {{ name: 'server', user: 'nobody', ready: 'notify', when: {{ source: 'init', once: 'exitSuccess' }}, stopSignal: 'SIGINT',
               exec: ['{postgres}', '-D', '@/data', '-k', '@/data', '-c', 'listen_addresses='] }} ] }}"
    );
    let setup = "mkdir @/data && chown nobody @/data && chmod 700 @/data";
    becomes_healthy(Supervisor::with_setup(modes()[0], setup, &config));
}

#[test]
fn h11_nginx_prints_a_line_when_it_is_ready() {
    let nginx = path_from("nginx", "nginx");
    let script = "printf 'daemon off; pid @/pid; error_log stderr notice; events {}\\nhttp { access_log off; \
                  client_body_temp_path @/a; proxy_temp_path @/b; fastcgi_temp_path @/c; uwsgi_temp_path @/d; scgi_temp_path @/e; \
                  server { listen unix:@/nginx.socket; } }\\n' >@/nginx.conf";
    let config = format!(
        "{{ jobs: [{{ name: 'server', ready: {{ line: 'start worker process(es)?$' }},
            exec: ['{}', '-c', '@/nginx.conf', '-e', 'stderr'] }}] }}",
        nginx.display()
    );
    becomes_healthy(Supervisor::with_setup(modes()[0], script, &config));
}
