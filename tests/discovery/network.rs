//! Machines with a network of their own: namespaces that a bridge connects. All of it is gone when the test ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use nix::sched::{CloneFlags, unshare};

use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::is_root;

/// Runs `test` on a thread with a new, empty network.
pub(crate) fn in_own_network(test: impl FnOnce() + Send + 'static) {
    if !is_root() || Command::new("ip").arg("-V").output_in_time().is_err() {
        skip("this needs root and the program `ip`");
        return;
    }
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        shell("ip link set lo up && ip link add bridge type bridge && ip link set bridge up");
        shell("ip address add 10.77.0.254/24 dev bridge");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn shell(script: &str) {
    assert!(Command::new("sh").args(["-c", script]).status_in_time().unwrap().success(), "{script}");
}

/// A network namespace at the bridge, which exists while its first process runs.
pub(crate) struct Machine {
    number: u8,
    first: Child,
}

impl Machine {
    pub(crate) fn new(number: u8) -> Self {
        // `cat` ends with the test, even if the test is killed.
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up; echo ready; exec cat"]);
        let mut first = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(first.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let machine = Self { number, first };
        let (pid, inside) = (machine.first.id(), machine.wrapper().join(" "));
        shell(&format!("ip link add port{number} type veth peer name eth0 netns {pid}"));
        shell(&format!("{inside} ip address add {}/24 dev eth0", machine.address()));
        shell(&format!("{inside} ip link set eth0 up && ip link set port{number} master bridge"));
        machine.connect(true);
        machine
    }

    pub(crate) fn address(&self) -> String {
        format!("10.77.0.{}", self.number)
    }

    /// A command line that starts a program on this machine.
    pub(crate) fn wrapper(&self) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.first.id()), "--".to_owned()]
    }

    /// Plugs its cable in, or pulls it out.
    pub(crate) fn connect(&self, is_connected: bool) {
        let state = if is_connected { "up" } else { "down" };
        shell(&format!("ip link set port{} {state}", self.number));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.first.kill();
        let _ = self.first.wait();
    }
}
