//! Names, with a real name server.

use super::{Watching, config};
use crate::support::name_server::NameServer;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

fn watching(server: &NameServer, watch: &str) -> Watching {
    Watching { run: Supervisor::with_setup(Mode::Pid1, &server.setup(), &config(watch)) }
}

#[test]
fn d13_the_addresses_of_a_name_are_looked_up_at_their_ttl() {
    let one = "--host-record=db.test,10.0.0.1";
    let Some(mut server) = NameServer::start("127.53.0.1", &[one]) else { return };
    // An interval of an hour: only the TTL can tell.
    let watching = watching(&server, "dns: 'db.test', interval: 3600");
    watching.wait_for(&["changed 10.0.0.1", "healthy 10.0.0.1"]);
    let both = ["--host-record=db.test,10.0.0.2,fd00::2", one];
    server.restart(&both);
    watching.wait_for(&["changed 10.0.0.1,10.0.0.2", "healthy 10.0.0.1,10.0.0.2"]);
    watching.wait_for_explanation(
        "watch.it: 2 healthy instances\n  10.0.0.1\n  10.0.0.2\n  A records of db.test",
    );
}

#[test]
fn d13_a_name_that_is_gone_is_an_empty_set_and_a_silent_server_is_not() {
    let one = "--host-record=db.test,fd00::1";
    let Some(mut server) = NameServer::start("127.53.0.2", &[]) else { return };
    let watching = watching(&server, "dns: 'db.test', type: 'AAAA', interval: 1");
    watching.wait_for_explanation("watch.it: no healthy instances");
    assert_eq!(watching.seen(), [""; 0], "a name without records is no change");
    server.restart(&[one]);
    watching.wait_for(&["changed fd00::1", "healthy fd00::1"]);
    server.stop();
    watching.wait_for_explanation("watch.it: 1 healthy instance (as of ");
    assert_eq!(watching.seen(), [""; 0], "the last answer stays");
    server.restart(&[]);
    watching.wait_for(&["changed", "unhealthy"]);
    server.restart(&[one]);
    watching.wait_for(&["changed fd00::1", "healthy fd00::1"]);
}

#[test]
fn d13_a_name_server_that_did_not_answer_is_asked_again_long_before_the_interval() {
    let Some(mut server) = NameServer::start("127.53.0.5", &[]) else { return };
    server.stop();
    let mut watching = watching(&server, "dns: 'db.test', interval: 3600");
    watching.run.wait_for_line("watch.it is not answered: ");
    server.restart(&["--host-record=db.test,10.0.0.1"]);
    watching.wait_for(&["changed 10.0.0.1", "healthy 10.0.0.1"]);
}

#[test]
fn d13_services_of_a_name_have_hosts_and_ports() {
    let records =
        ["--srv-host=_db._tcp.test,db1.test,5432,1,2", "--srv-host=_db._tcp.test,db2.test,5433,1,2"];
    let Some(server) = NameServer::start("127.53.0.3", &records) else { return };
    let watching = watching(&server, "dns: '_db._tcp.test', type: 'srv', interval: 1");
    let all = "db1.test:5432,db2.test:5433";
    watching.wait_for(&[&format!("changed {all}"), &format!("healthy {all}")]);
    wait_until("the instances are told", || {
        watching.command(&["status", "watch.it"]).contains("  db1.test:5432 at db1.test port 5432\n")
    });
}
