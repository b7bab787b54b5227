//! `examples/nginx-php-fpm`.

use std::process::Stdio;

use super::Container;
use crate::support::deadline::InTime;
use crate::support::program::out;
use crate::support::servers::{path_from, server, servers};
use crate::support::supervisor::wait_until;

#[test]
fn w18_nginx_starts_after_php_fpm_and_a_stop_finishes_its_requests() {
    let Some(php_fpm) = server("usr/sbin/php-fpm") else { return };
    let nginx = path_from("nginx", "nginx");
    let script = format!(
        "{}ln -s {} $CONTAINERPILOT_TEST/bin/nginx
         mkdir -p /etc/nginx; mkdir -m 700 /var/lib/nginx; cp {}/etc/nginx/* /etc/nginx 2>/dev/null || true
         cp $recipe/nginx.conf /etc/nginx; cp $recipe/php-fpm.conf /etc; cp -r $recipe/app /srv",
        php_fpm.link("php-fpm"),
        nginx.display(),
        servers().display()
    );
    let Some(mut container) = Container::start("nginx-php-fpm", &script) else { return };
    let get = |path: &str| format!("curl -s --max-time 30 http://127.0.0.1{path}");
    container.supervisor.wait_for_line("nginx started");
    let log = container.supervisor.log_so_far();
    let line = |text: &str| log.lines().position(|line| line.contains(text)).unwrap_or(usize::MAX);
    assert!(line("php-fpm healthy") < line("nginx started"));
    wait_until("the container is healthy", || container.pilot(&["health"]).status.success());
    assert!(container.shell(&get("/")).starts_with("Hello from PHP"));
    container.supervisor.wait_for_line("index.php was asked for");
    // Larger than what nginx keeps in memory.
    let large = format!("head -c 300000 /dev/zero | {} --data-binary @-", get("/"));
    assert!(container.shell(&large).ends_with("you have sent 300000 bytes\n"));

    // php-fpm crashes, and comes back without a restart of nginx.
    assert!(container.pilot(&["signal", "php-fpm", "KILL"]).status.success());
    container.supervisor.wait_for_lines("php-fpm started", 2);
    wait_until("PHP answers again", || container.shell(&get("/")).starts_with("Hello from PHP"));

    // The stop finds a request in the middle of its work.
    let slow = get("/?seconds=3");
    let mut command = container.command(&["sh", "-c", &slow]);
    let slow = command.stdout(Stdio::piped()).spawn().unwrap();
    let requests = || container.shell("ss -Htn state established '( sport = :9000 )' | wc -l");
    wait_until("the slow request is with php-fpm", || requests().trim() == "1");
    container.supervisor.signal("-TERM");
    assert!(out(&slow.output_in_time().unwrap()).starts_with("Hello from PHP"));
    let (code, log) = container.supervisor.wait();
    assert_eq!(code, 0);
    let line = |text: &str| log.lines().position(|line| line.contains(text)).unwrap_or(usize::MAX);
    assert!(line("nginx exited with code 0") < line("php-fpm stopping"));
    assert_eq!(log.matches("nginx started").count(), 1);
}
