//! A real Consul agent on its own loopback address, killed when it is dropped.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::deadline::InTime;
use super::program::repository;
use super::supervisor::wait_until;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A loopback address that no other test uses, so that every agent can use the default ports.
pub(crate) fn own_address() -> String {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{}.{}", 64 + (high ^ middle) % 128, low, 1 + number % 250)
}

/// The path of the Consul binary; `scripts/consul` downloads it if it is missing.
pub(crate) fn consul() -> &'static Path {
    static CONSUL: OnceLock<PathBuf> = OnceLock::new();
    CONSUL.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../consul");
        let script = repository().join("scripts/consul");
        let output = Command::new(script).arg(folder).output_in_time().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    })
}

pub(crate) fn folder() -> PathBuf {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("containerpilot-consul-{}-{number}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

pub(crate) struct Agent {
    pub(crate) ip: String,
    /// A command line that starts the agent in another namespace.
    pub(crate) wrapper: Vec<String>,
    folder: PathBuf,
    args: Vec<String>,
    child: Option<Child>,
    pub(crate) token: Option<String>,
}

impl Agent {
    /// Starts an agent in development mode: one server with everything in memory.
    pub(crate) fn dev() -> Self {
        Self::dev_with(&json!({}))
    }

    /// Like [`Agent::dev`], with additional settings.
    pub(crate) fn dev_with(settings: &Value) -> Self {
        let mut agent = Self::prepared(&["-dev"], settings);
        agent.start();
        agent.wait_for_leader();
        agent
    }

    /// An agent that is not started yet.
    pub(crate) fn prepared(args: &[&str], settings: &Value) -> Self {
        Self::prepared_at(own_address(), args, settings)
    }

    /// Like [`Agent::prepared`], at an address that the caller has chosen.
    pub(crate) fn prepared_at(ip: String, args: &[&str], settings: &Value) -> Self {
        let folder = folder();
        fs::write(folder.join("agent.json"), settings.to_string()).unwrap();
        let node = format!("node-{}", ip.replace('.', "-"));
        let mut words: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        for option in ["-bind=", "-client=", "-advertise="] {
            words.push(format!("{option}{ip}"));
        }
        words.push(format!("-node={node}"));
        words.push(format!("-config-file={}", folder.join("agent.json").display()));
        Self { ip, wrapper: Vec::new(), folder, args: words, child: None, token: None }
    }

    /// Gives the agent another node name.
    pub(crate) fn rename(&mut self, node: &str) {
        self.args.push(format!("-node={node}"));
    }

    /// Adds the cluster's addresses and a data directory to its arguments.
    pub(crate) fn join(&mut self, addresses: &[String]) {
        self.args.extend(addresses.iter().map(|ip| format!("-retry-join={ip}")));
        self.args.push(format!("-data-dir={}", self.folder.join("data").display()));
    }

    pub(crate) fn start(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        let program = consul().to_string_lossy().into_owned();
        let line: Vec<String> = self.wrapper.iter().cloned().chain([program, "agent".to_owned()]).collect();
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).args(&self.args).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn wait_for_leader(&self) {
        wait_until(&format!("{} has a leader: {}", self.ip, self.log()), || {
            self.try_get("/v1/status/leader").is_some_and(|leader| leader.as_str() != Some(""))
        });
    }

    /// The address for the key `consul` of a configuration.
    pub(crate) fn address(&self) -> String {
        format!("{}:8500", self.ip)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status_in_time().unwrap().success());
    }

    /// Kills it with SIGKILL; everything it had in memory is lost.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        log.lines().rev().take(5).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn try_get(&self, path: &str) -> Option<Value> {
        let (status, body) = http(&self.address(), "GET", path, self.token.as_deref(), "").ok()?;
        if status == 200 { serde_json::from_str(&body).ok() } else { None }
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.try_get(path).unwrap_or_else(|| panic!("no answer to {path}: {}", self.log()))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = http(&self.address(), "PUT", path, self.token.as_deref(), &body).unwrap();
        assert_eq!(status, 200, "{path}: {answer}");
    }

    /// The status of the service of job `name` in the catalog; `None` if it is not registered.
    pub(crate) fn status(&self, name: &str) -> Option<String> {
        let id = service_id(name);
        let entries = self.try_get(&format!("/v1/health/service/{name}"))?;
        let own = entries.as_array()?.iter().find(|entry| entry["Service"]["ID"] == id.as_str())?;
        let check = format!("service:{id}");
        let check = own["Checks"].as_array()?.iter().find(|one| one["CheckID"] == check.as_str())?;
        Some(check["Status"].as_str()?.to_owned())
    }

    pub(crate) fn wait_for_status(&self, name: &str, status: Option<&str>) {
        wait_until(&format!("{name} is {status:?}; it was {:?}: {}", self.status(name), self.log()), || {
            self.status(name).as_deref() == status
        });
    }

    /// Registers a healthy service that no supervisor of this test owns.
    pub(crate) fn register(&self, name: &str, id: &str, port: u16, tags: &[&str]) {
        let body = json!({ "Name": name, "ID": id, "Port": port, "Tags": tags, "Address": "10.7.7.7" });
        self.put("/v1/agent/service/register", &body);
    }

    pub(crate) fn deregister(&self, id: &str) {
        self.put(&format!("/v1/agent/service/deregister/{id}"), &Value::Null);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the log of the agent at {}: {}", self.ip, self.log());
        }
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The service id of a job (D3).
pub(crate) fn service_id(name: &str) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    format!("{name}-{}", host.trim())
}

/// Sends one HTTP request and returns status and body.
pub(crate) fn http(
    address: &str,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let token = token.map(|token| format!("X-Consul-Token: {token}\r\n")).unwrap_or_default();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: x\r\n{token}Content-Length: {length}\r\n\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Ok((status, body.to_owned()))
}
