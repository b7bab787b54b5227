//! A real name server.

use std::process::{Child, Command, Stdio};

use super::servers::{Server, server};
use super::skip::skip;
use super::supervisor::{Mode, modes};

/// dnsmasq at an address of its own, at port 53.
pub(crate) struct NameServer {
    dnsmasq: Server,
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
        let dnsmasq = server("usr/sbin/dnsmasq")?;
        let mut name_server = Self { dnsmasq, address, child: None };
        name_server.restart(records);
        Some(name_server)
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Serves these records, and no others, with a TTL of one second.
    pub(crate) fn restart(&mut self, records: &[&str]) {
        self.stop();
        let listen = format!("--listen-address={}", self.address);
        let mut command = Command::new(&self.dnsmasq.program);
        command.env("LD_LIBRARY_PATH", &self.dnsmasq.libraries);
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
        let Server { program, libraries } = &self.dnsmasq;
        format!(
            "echo nameserver {} > @/resolv; echo options timeout:1 attempts:1 >> @/resolv;
             mount --bind @/resolv /etc/resolv.conf || exit 9;
             export PATH={}:$PATH LD_LIBRARY_PATH={}",
            self.address,
            program.parent().unwrap().display(),
            libraries.display()
        )
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop();
    }
}
