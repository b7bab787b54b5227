//! The containers of a `docker-compose.yml`, started as the file says and removed when dropped.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{HOME, script, static_binary, wait_until};
use crate::docker::docker_compose::docker_compose;
use crate::support::deadline::InTime;

pub(crate) struct Project {
    example: &'static str,
    project: String,
    port: u16,
    /// The base images, as environment variables of docker-compose.
    images: Vec<(String, String)>,
}

impl Project {
    /// Builds the images and starts everything.
    pub(crate) fn up(example: &'static str) -> Self {
        let project = format!("{}{}", example.replace('-', ""), std::process::id());
        let built = script("example-images").arg(static_binary()).arg(&project).output_in_time().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let built = String::from_utf8(built.stdout).unwrap();
        let variable = |line: &str| line.split_once('=').map(|(name, value)| (name.into(), value.into()));
        let images = built.lines().filter_map(variable).collect();

        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let started = Self { example, project, port, images };
        started.compose(&["up", "-d", "--build"]);
        started
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn scale(&self, service: &str, count: usize) {
        self.compose(&["up", "-d", "--no-build", "--scale", &format!("{service}={count}")]);
    }

    /// Restarts Consul, and waits until the supervisor in `container` has reconnected to it. Consul is away until the
    /// supervisor has noticed: the kernel repeats a connection attempt after a second, so that it may notice nothing.
    pub(crate) fn restart_consul(&self, container: &str) {
        let count = |message: &str| docker(&["logs", container]).matches(message).count();
        let (consul, before) = (self.container("consul"), count("is available again"));
        let failures = count("is unreachable");
        docker(&["stop", "--time", "1", &consul]);
        wait_until(
            || format!("{container} has noticed that Consul is away; the logs were:\n{}", self.logs()),
            || count("is unreachable") > failures,
        );
        docker(&["start", &consul]);
        wait_until(
            || format!("{container} has reconnected to Consul; the logs were:\n{}", self.logs()),
            || count("is available again") > before,
        );
    }

    /// Sets the network interface of a container `up` or `down`.
    pub(crate) fn set_network(&self, container: &str, state: &str) {
        let (_, image) = self.images.iter().find(|(name, _)| name == "BUSYBOX_IMAGE").unwrap();
        let network = format!("container:{container}");
        let command = ["run", "--rm", "--network", &network, "--cap-add", "NET_ADMIN", image];
        docker(&[&command[..], &["ip", "link", "set", "eth0", state]].concat());
    }

    /// The logs of all containers.
    pub(crate) fn logs(&self) -> String {
        let logs = self.command(&["logs", "--no-color"]).output_in_time().unwrap();
        String::from_utf8_lossy(&logs.stdout).into_owned()
    }

    /// The containers of a service, including those that have exited.
    pub(crate) fn containers(&self, service: &str) -> Vec<String> {
        let project = format!("label=com.docker.compose.project={}", self.project);
        let service = format!("label=com.docker.compose.service={service}");
        let found = docker(&["ps", "--all", "--quiet", "--filter", &project, "--filter", &service]);
        found.lines().map(str::to_owned).collect()
    }

    /// The only container of a service.
    pub(crate) fn container(&self, service: &str) -> String {
        let found = self.containers(service);
        assert_eq!(found.len(), 1, "containers of {service}");
        found[0].clone()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = docker_compose();
        command.current_dir(Path::new(HOME).join("examples").join(self.example));
        command.args(["--project-name", &self.project]).args(words);
        command.envs(self.images.iter().map(|(name, value)| (name, value)));
        command.env("HTTP_PORT", self.port.to_string()).env("REDIS_PORT", self.port.to_string());
        command.stdin(Stdio::null());
        command
    }

    fn compose(&self, words: &[&str]) {
        let output = self.command(words).output_in_time().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "docker-compose {}:\n{stdout}\n{stderr}", words.join(" "));
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        // The engine may outlive the test, so the images are removed too.
        let _ = self.command(&["down", "--timeout", "0", "--volumes", "--rmi", "all"]).output_in_time();
        let images = self.images.iter().map(|(_, image)| image);
        let _ = Command::new("docker").args(["rmi", "--force"]).args(images).output_in_time();
    }
}

pub(crate) fn docker(words: &[&str]) -> String {
    let output = Command::new("docker").args(words).stdin(Stdio::null()).output_in_time().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    // `docker logs` writes to both streams.
    if words.first() == Some(&"logs") {
        return stdout + &stderr;
    }
    assert!(output.status.success(), "docker {}: {stderr}", words.join(" "));
    stdout
}
