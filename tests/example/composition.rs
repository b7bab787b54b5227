//! The containers of `docker-compose.yml`, brought up as the file stands and taken away with the test.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::clients::wait_for_answer;
use crate::{HOME, script, static_binary, until};

pub(crate) struct Composition {
    project: String,
    port: u16,
    /// The images to build on, as variables.
    images: Vec<(String, String)>,
}

impl Composition {
    /// Makes the images, starts everything and waits for the first answer.
    pub(crate) fn up() -> Self {
        let made = script("example-images").arg(static_binary()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let made = String::from_utf8(made.stdout).unwrap();
        let variable = |line: &str| line.split_once('=').map(|(name, value)| (name.into(), value.into()));
        let images: Vec<_> = made.lines().filter_map(variable).collect();
        assert_eq!(images.len(), 4, "{made}");

        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let project = format!("behindnginx{}", std::process::id());
        let this = Self { project, port, images };
        this.compose(&["up", "-d", "--build"]);
        wait_for_answer(port);
        until(|| format!("the list is {}", this.list()), || this.list().lines().count() == 2);
        this
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The names under which the instances answer: those of their containers.
    pub(crate) fn instances(&self) -> BTreeSet<String> {
        self.containers("app").lines().map(str::to_owned).collect()
    }

    /// Has so many instances run.
    pub(crate) fn scale(&self, count: usize) {
        self.compose(&["up", "-d", "--no-build", "--scale", &format!("app={count}")]);
    }

    /// Asks the supervisor of an instance.
    pub(crate) fn ask(&self, instance: &str, words: &[&str]) {
        docker(&[&["exec", instance, "containerpilot"], words].concat());
    }

    /// Stops a container as anybody would, and says what its exit code is.
    pub(crate) fn stop(&self, container: &str) -> i32 {
        docker(&["stop", container]);
        docker(&["inspect", "--format", "{{.State.ExitCode}}", container]).trim().parse().unwrap()
    }

    /// Ends an instance without a warning.
    pub(crate) fn kill(&self, instance: &str) {
        docker(&["kill", instance]);
    }

    pub(crate) fn runs(&self, instance: &str) -> bool {
        docker(&["inspect", "--format", "{{.State.Running}}", instance]).trim() == "true"
    }

    /// Restarts Consul, and waits until nginx's container has seen it go and come.
    pub(crate) fn restart_consul(&self) {
        let nginx = self.nginx();
        let come = || docker(&["logs", &nginx]).matches("can be used again").count();
        let before = come();
        docker(&["restart", "--time", "1", self.containers("consul").trim()]);
        until(
            || format!("nobody has noticed that Consul was restarted:\n{}", self.logs()),
            || come() > before,
        );
    }

    /// The container of nginx.
    pub(crate) fn nginx(&self) -> String {
        self.containers("nginx").trim().to_owned()
    }

    /// The list of instances that nginx has.
    pub(crate) fn list(&self) -> String {
        docker(&["exec", &self.nginx(), "cat", "/run/upstreams.conf"])
    }

    /// What everybody has said.
    pub(crate) fn logs(&self) -> String {
        let logs = self.command(&["logs", "--no-color"]).output().unwrap();
        String::from_utf8_lossy(&logs.stdout).into_owned()
    }

    /// The containers of a service, those that have ended too.
    fn containers(&self, service: &str) -> String {
        let project = format!("label=com.docker.compose.project={}", self.project);
        let service = format!("label=com.docker.compose.service={service}");
        docker(&["ps", "--all", "--quiet", "--filter", &project, "--filter", &service])
    }

    fn command(&self, words: &[&str]) -> Command {
        // The plug-in where there is no program of this name.
        let old = Command::new("docker-compose").arg("version").stdout(Stdio::null()).status();
        let mut command = match old {
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
        let (told, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "docker-compose {}:\n{told}\n{errors}", words.join(" "));
    }
}

impl Drop for Composition {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        // With the images, if the engine is one that goes on.
        let _ = self.command(&["down", "--timeout", "0", "--volumes", "--rmi", "all"]).output();
        let images = self.images.iter().map(|(_, image)| image);
        let _ = Command::new("docker").args(["rmi", "--force"]).args(images).output();
    }
}

fn docker(words: &[&str]) -> String {
    let output = Command::new("docker").args(words).stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    // A container writes its log to both.
    if words.first() == Some(&"logs") {
        return told + &errors;
    }
    assert!(output.status.success(), "docker {}: {errors}", words.join(" "));
    told
}
