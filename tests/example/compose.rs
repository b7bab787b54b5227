//! The containers of `docker-compose.yml`, started as the file says and removed when dropped.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::clients::wait_for_response;
use crate::{HOME, script, static_binary, wait_until};

pub(crate) struct Project {
    project: String,
    port: u16,
    /// The base images, as environment variables of docker-compose.
    images: Vec<(String, String)>,
}

impl Project {
    /// Builds the images, starts everything and waits for the first response.
    pub(crate) fn up() -> Self {
        let built = script("example-images").arg(static_binary()).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let built = String::from_utf8(built.stdout).unwrap();
        let variable = |line: &str| line.split_once('=').map(|(name, value)| (name.into(), value.into()));
        let images: Vec<_> = built.lines().filter_map(variable).collect();
        assert_eq!(images.len(), 4, "{built}");

        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let project = format!("behindnginx{}", std::process::id());
        let started = Self { project, port, images };
        started.compose(&["up", "-d", "--build"]);
        wait_for_response(port);
        wait_until(
            || format!("nginx lists two instances; its list was {}", started.list()),
            || started.list().lines().count() == 2,
        );
        started
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The names of the instances: those of their containers.
    pub(crate) fn instances(&self) -> BTreeSet<String> {
        self.containers("app").lines().map(str::to_owned).collect()
    }

    pub(crate) fn scale(&self, count: usize) {
        self.compose(&["up", "-d", "--no-build", "--scale", &format!("app={count}")]);
    }

    /// Runs a command of the supervisor in an instance.
    pub(crate) fn run_command(&self, instance: &str, words: &[&str]) {
        docker(&[&["exec", instance, "containerpilot"], words].concat());
    }

    /// Runs `docker stop`; returns the exit code of the container.
    pub(crate) fn stop(&self, container: &str) -> i32 {
        docker(&["stop", container]);
        docker(&["inspect", "--format", "{{.State.ExitCode}}", container]).trim().parse().unwrap()
    }

    /// Kills an instance with SIGKILL.
    pub(crate) fn kill(&self, instance: &str) {
        docker(&["kill", instance]);
    }

    pub(crate) fn runs(&self, instance: &str) -> bool {
        docker(&["inspect", "--format", "{{.State.Running}}", instance]).trim() == "true"
    }

    /// Restarts Consul, and waits until the nginx container has reconnected to it.
    pub(crate) fn restart_consul(&self) {
        let nginx = self.nginx();
        let reconnects = || docker(&["logs", &nginx]).matches("is available again").count();
        let before = reconnects();
        docker(&["restart", "--time", "1", self.containers("consul").trim()]);
        wait_until(
            || format!("nginx's supervisor has reconnected to Consul; the logs were:\n{}", self.logs()),
            || reconnects() > before,
        );
    }

    /// The id of the nginx container.
    pub(crate) fn nginx(&self) -> String {
        self.containers("nginx").trim().to_owned()
    }

    /// The instances in nginx's configuration.
    pub(crate) fn list(&self) -> String {
        docker(&["exec", &self.nginx(), "cat", "/run/upstreams.conf"])
    }

    /// The logs of all containers.
    pub(crate) fn logs(&self) -> String {
        let logs = self.command(&["logs", "--no-color"]).output().unwrap();
        String::from_utf8_lossy(&logs.stdout).into_owned()
    }

    /// The containers of a service, including those that have exited.
    fn containers(&self, service: &str) -> String {
        let project = format!("label=com.docker.compose.project={}", self.project);
        let service = format!("label=com.docker.compose.service={service}");
        docker(&["ps", "--all", "--quiet", "--filter", &project, "--filter", &service])
    }

    fn command(&self, words: &[&str]) -> Command {
        // Falls back to the plug-in `docker compose`.
        let standalone = Command::new("docker-compose").arg("version").stdout(Stdio::null()).status();
        let mut command = match standalone {
            Ok(status) if status.success() => Command::new("docker-compose"),
            _ => {
                let mut docker = Command::new("docker");
                docker.arg("compose");
                docker
            }
        };
        command.current_dir(Path::new(HOME).join("examples/behind-nginx"));
        command.args(["--project-name", &self.project]).args(words);
        command.envs(self.images.iter().map(|(name, value)| (name, value)));
        command.env("HTTP_PORT", self.port.to_string()).stdin(Stdio::null());
        command
    }

    fn compose(&self, words: &[&str]) {
        let output = self.command(words).output().unwrap();
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
        let _ = self.command(&["down", "--timeout", "0", "--volumes", "--rmi", "all"]).output();
        let images = self.images.iter().map(|(_, image)| image);
        let _ = Command::new("docker").args(["rmi", "--force"]).args(images).output();
    }
}

fn docker(words: &[&str]) -> String {
    let output = Command::new("docker").args(words).stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    // `docker logs` writes to both streams.
    if words.first() == Some(&"logs") {
        return stdout + &stderr;
    }
    assert!(output.status.success(), "docker {}: {stderr}", words.join(" "));
    stdout
}
