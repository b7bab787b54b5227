//! `examples/headless-service`.

use std::net::TcpListener;

use super::Container;
use crate::support::http_server::instance;
use crate::support::name_server::NameServer;
use crate::support::program::out;
use crate::support::servers::path_from;
use crate::support::supervisor::wait_until;

#[test]
fn d13_d15_recipe_follows_the_pods_of_a_headless_service() {
    let (one, two) = ("127.0.55.1", "127.0.55.2");
    let record = |ip: &str| format!("--host-record=app.default.test,{ip}");
    // The cluster knows all names, so it answers that there is no `app` without a namespace.
    let known = "--local=/app/";
    let Some(mut cluster) = NameServer::start("127.53.0.5", &[known]) else { return };
    let app_port = instance(one, 0);
    instance(two, app_port);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nginx = path_from("nginx", "nginx");
    let script = format!(
        "{}\nmkdir -p /var/lib/nginx; PATH={}:$PATH
         echo search default.test >>$CONTAINERPILOT_TEST/resolv
         export TEMPLATES=$recipe APP_PORT={app_port} PORT={port}",
        cluster.setup().replace("@/", "$CONTAINERPILOT_TEST/"),
        nginx.parent().unwrap().display()
    );
    let Some(mut container) = Container::in_network_of_host("headless-service", &script) else { return };
    let get =
        |container: &Container| container.shell(&format!("curl -s --max-time 30 http://127.0.0.1:{port}/"));

    // Without a pod there is no list, and no nginx.
    wait_until("the name is known to have no records", || {
        out(&container.pilot(&["explain", "watch.app"])).contains("no healthy instances")
    });
    assert!(out(&container.pilot(&["explain", "nginx"])).contains("file.nginx-conf"));
    cluster.restart(&[known, &record(one)]);
    wait_until("the first pod answers", || get(&container) == one);
    cluster.restart(&[known, &record(one), &record(two)]);
    wait_until("the second pod answers", || get(&container) == two);
    wait_until("the first pod answers, too", || get(&container) == one);
    cluster.restart(&[known, &record(two)]);
    wait_until("only the second pod answers", || (0..6).all(|_| get(&container) == two));

    // All are gone: the list stays.
    cluster.restart(&[known]);
    container.supervisor.wait_for_line("is not changed: test");
    assert_eq!(get(&container), two);
    container.supervisor.signal("-TERM");
    let (code, log) = container.supervisor.wait();
    assert_eq!(code, 0);
    assert_eq!(log.matches("nginx started").count(), 1, "reloaded, not restarted");
}
