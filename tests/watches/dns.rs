//! Names, with a real name server.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{Watching, config};
use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

/// dnsmasq at an address of its own, at port 53.
pub(crate) struct NameServer {
    program: (PathBuf, PathBuf),
    address: &'static str,
    child: Option<Child>,
}

impl NameServer {
    /// `None` if it does not run here.
    pub(crate) fn start(address: &'static str, records: &[&str]) -> Option<Self> {
        if !modes().contains(&Mode::Pid1) {
            skip("needs a PID namespace");
            return None;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/servers");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../servers");
        let output = Command::new(script).arg(folder).output_in_time().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let machine =
            String::from_utf8(Command::new("uname").arg("-m").output_in_time().unwrap().stdout).unwrap();
        let libraries = folder.join(format!("usr/lib/{}-linux-gnu", machine.trim()));
        let program = (folder.join("usr/sbin/dnsmasq"), libraries);
        let found = Command::new(&program.0).arg("-v").env("LD_LIBRARY_PATH", &program.1).output_in_time();
        if !found.is_ok_and(|output| output.status.success()) {
            skip(&format!("{} does not run here", program.0.display()));
            return None;
        }
        let mut server = Self { program, address, child: None };
        server.restart(records);
        Some(server)
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Serves these records, and no others, with a TTL of one second.
    pub(crate) fn restart(&mut self, records: &[&str]) {
        self.stop();
        let listen = format!("--listen-address={}", self.address);
        let mut command = Command::new(&self.program.0);
        command.env("LD_LIBRARY_PATH", &self.program.1);
        command.args([
            "-k",
            "--no-resolv",
            "--no-hosts",
            "--conf-file=/dev/null",
            "--bind-interfaces",
            "--pid-file=",
        ]);
        command.args(["--user=root", "--local-ttl=1", "--auth-ttl=1", "--max-ttl=1", "--local=/test/"]);
        command.arg(listen).args(records).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
    }

    /// A script that makes this the name server of what it starts, and its neighbours in the folder of servers available.
    pub(crate) fn setup(&self) -> String {
        let (program, libraries) = (&self.program.0, &self.program.1);
        format!(
            "echo nameserver {} > @/resolv; echo options timeout:1 attempts:1 >> @/resolv;
             mount --bind @/resolv /etc/resolv.conf || exit 9;
             export PATH={}:$PATH LD_LIBRARY_PATH={}",
            self.address,
            program.parent().unwrap().display(),
            libraries.display()
        )
    }

    fn watch(&self, watch: &str) -> Watching {
        Watching { run: Supervisor::with_setup(Mode::Pid1, &self.setup(), &config(watch)) }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn d13_the_addresses_of_a_name_are_looked_up_at_their_ttl() {
    let one = "--host-record=db.test,10.0.0.1";
    let Some(mut server) = NameServer::start("127.53.0.1", &[one]) else { return };
    // An interval of an hour: only the TTL can tell.
    let watching = server.watch("dns: 'db.test', interval: 3600");
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
    let watching = server.watch("dns: 'db.test', type: 'AAAA', interval: 1");
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
    let mut watching = server.watch("dns: 'db.test', interval: 3600");
    watching.run.wait_for_line("watch.it is not answered: ");
    server.restart(&["--host-record=db.test,10.0.0.1"]);
    watching.wait_for(&["changed 10.0.0.1", "healthy 10.0.0.1"]);
}

#[test]
fn d13_services_of_a_name_have_hosts_and_ports() {
    let records =
        ["--srv-host=_db._tcp.test,db1.test,5432,1,2", "--srv-host=_db._tcp.test,db2.test,5433,1,2"];
    let Some(server) = NameServer::start("127.53.0.3", &records) else { return };
    let watching = server.watch("dns: '_db._tcp.test', type: 'srv', interval: 1");
    let all = "db1.test:5432,db2.test:5433";
    watching.wait_for(&[&format!("changed {all}"), &format!("healthy {all}")]);
    wait_until("the instances are told", || {
        watching.command(&["status", "watch.it"]).contains("  db1.test:5432 at db1.test port 5432\n")
    });
}
