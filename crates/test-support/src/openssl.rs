//! `openssl s_server`, for tests of TLS.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Creates a self-signed certificate `NAME.pem` with the key `NAME.key`.
pub fn certificate(folder: &Path, name: &str, kind: &[&str]) {
    let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
    let fixed = ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=agent"];
    let names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"];
    let made = Command::new("openssl")
        .current_dir(folder)
        .args(fixed)
        .args(names)
        .args(["-keyout", &key, "-out", &certificate])
        .args(kind)
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success(), "{name}");
}

/// A server with these options.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Server {
    pub fn start(folder: &Path, name: &str, options: &[&str]) -> Self {
        let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
        let mut child = Command::new("openssl")
            .current_dir(folder)
            .args(["s_server", "-accept", "127.0.0.1:0", "-WWW", "-key", &key, "-cert", &certificate])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("ACCEPT ").map(str::to_owned)).unwrap();
        // Drains its output, so that it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
