//! Programs as they are: servers that support systemd or s6, or print a line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{job, wait_healthy};
use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::{Supervisor, is_root, modes};

/// Runs a script of this repository that prints a path.
fn path_from(script: &str, folder: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..").join(folder);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script);
    let output = Command::new(script).arg(folder).output_in_time().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// A server of `scripts/servers` with the folder of its libraries; `None` if it does not run here.
fn server(program: &str) -> Option<(String, String)> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| path_from("servers", "servers"));
    let machine = Command::new("uname").arg("-m").output_in_time().unwrap().stdout;
    let machine = String::from_utf8(machine).unwrap();
    let libraries = folder.join(format!("usr/lib/{}-linux-gnu", machine.trim()));
    let program = folder.join(program);
    let found = Command::new(&program).arg("-v").env("LD_LIBRARY_PATH", &libraries).output_in_time();
    if !found.is_ok_and(|output| output.status.success()) {
        skip(&format!("{} does not run here", program.display()));
        return None;
    }
    Some((program.to_str()?.to_owned(), libraries.to_str()?.to_owned()))
}

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
    let Some((redis, libraries)) = server("usr/bin/redis-server") else { return };
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
    let Some((haproxy, libraries)) = server("usr/sbin/haproxy") else { return };
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
