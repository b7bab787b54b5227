//! Probes against what the configuration serves: the telemetry server, ports of jobs, and the commands of containerpilot.

use std::net::IpAddr;

use containerpilot_config::suggest;
use containerpilot_core::plan::{Job, Probe as Check, Role, Telemetry};

use super::Audit;
use crate::Invocation;
use crate::model::{Platform, Probe, ProbeAction, Purpose};
use crate::values::path_of;
use crate::values::{base_name, commands, containerpilot_calls};

/// The paths of the telemetry server (T1); those of its page are `/` and below `/page/`.
const PATHS: [&str; 4] = ["/livez", "/readyz", "/metrics", "/status"];

impl Audit<'_> {
    pub(super) fn probes(&mut self) {
        for probe in &self.container.probes {
            match &probe.action {
                ProbeAction::NoSuchPort(name) => self.no_such_port(probe, name),
                ProbeAction::Http { port, path, tls } => self.request(probe, *port, path, *tls, false),
                ProbeAction::Tcp(port) => self.connection(probe, *port),
                ProbeAction::Grpc(port) => self.grpc(probe, *port),
                ProbeAction::Exec(words) => {
                    for call in containerpilot_calls(words) {
                        self.call(probe.line, &probe.name, Some(probe.purpose), &call);
                    }
                    for (port, path, tls) in commands(words).iter().flat_map(|words| local_urls(words)) {
                        self.request(probe, Some(port), &path, tls, true);
                    }
                }
            }
        }
        for hook in &self.container.hooks {
            for call in containerpilot_calls(&hook.value) {
                self.call(hook.line, "the hook", None, &call);
            }
        }
    }

    fn no_such_port(&mut self, probe: &Probe, name: &str) {
        let (who, help) = match self.container.platform {
            Platform::Nomad => (
                "the group's `network`",
                "correct the label, or add the port to the `network` block of the group".to_owned(),
            ),
            Platform::Kubernetes | Platform::Compose | Platform::Image => (
                "the container",
                format!("add `name: {name}` to its `containerPort`, or write the number of the port"),
            ),
        };
        let message = format!(
            "{} uses the port `{name}`, but no port of {who} has that name: the probe always fails",
            probe.name
        );
        self.fault(probe.line, message, help, &[]);
    }

    /// An HTTP request, from inside the container or from outside.
    fn request(&mut self, probe: &Probe, port: Option<u16>, path: &str, tls: bool, inside: bool) {
        let (line, name) = (probe.line, &probe.name);
        let Some(port) = port else { return };
        let telemetry = self.configuration.plan.telemetry.as_ref();
        let Some(telemetry) = telemetry.filter(|server| server.port == port) else {
            return self.other_server(probe, port, path, telemetry);
        };
        if tls {
            let message =
                format!("{name} uses HTTPS, but the telemetry server at port {port} serves HTTP only");
            return self.fault(line, message, "remove `scheme: HTTPS`", &["telemetry"]);
        }
        let better = if probe.purpose == Purpose::Liveness { "/livez" } else { "/readyz" };
        if !is_telemetry_path(telemetry, path) {
            let message = format!(
                "{name} gets 404: the telemetry server at port {port} has no {path}, so the probe always fails"
            );
            return self.fault(line, message, format!("use {better}"), &["telemetry"]);
        }
        if !self.listens(telemetry, probe, inside) {
            return;
        }
        if probe.purpose == Purpose::Liveness && path == "/readyz" {
            let message = format!(
                "{name} requests /readyz, which fails in maintenance mode and while any job is unhealthy: then {} is restarted, not only \
                 the job",
                self.unit()
            );
            self.fault(
                line,
                message,
                "use /livez here, and `onUnhealthy: \"restart\"` to restart the job; /readyz is for readiness and startup probes",
                &["telemetry"],
            );
        }
    }

    /// Returns false, with a finding, if the telemetry server cannot be reached.
    fn listens(&mut self, telemetry: &Telemetry, probe: &Probe, inside: bool) -> bool {
        let (address, port) = (telemetry.address, telemetry.port);
        let all = address.is_unspecified();
        let name = &probe.name;
        if inside && !address.is_loopback() && !all {
            let message = format!(
                "{name} connects to localhost, but the telemetry server listens on the address of its network interface only: the probe \
                 always fails"
            );
            let help = "use `containerpilot health` or `containerpilot ping` in place of a request";
            self.fault(probe.line, message, help, &["telemetry", "interfaces"]);
            return false;
        }
        if !inside && address.is_loopback() {
            let message = format!(
                "{name} comes from outside the container, but the telemetry server listens on {address}:{port} only: the probe \
                 always fails"
            );
            let help = "remove `interfaces` of `telemetry`, or use a command such as [\"containerpilot\", \"health\"]";
            self.fault(probe.line, message, help, &["telemetry", "interfaces"]);
            return false;
        }
        true
    }

    fn other_server(&mut self, probe: &Probe, port: u16, path: &str, telemetry: Option<&Telemetry>) {
        let (line, name) = (probe.line, &probe.name);
        if self.is_declared(port) {
            return;
        }
        match telemetry {
            _ if !matches!(path, "/livez" | "/readyz") => self.undeclared(probe, port),
            Some(telemetry) if telemetry.port != 0 => {
                let right = telemetry.port;
                let message = format!(
                    "{name} requests {path} at port {port}, but the telemetry server listens on {right}"
                );
                self.fault(line, message, format!("set the port to {right}"), &["telemetry", "port"]);
            }
            Some(_) => {}
            None => {
                let message = format!(
                    "{name} requests {path} at port {port}, but the configuration has no `telemetry` that serves it"
                );
                self.fault(
                    line,
                    message,
                    format!("add `telemetry: {{ port: {port} }}` to the configuration"),
                    &[],
                );
            }
        }
    }

    fn connection(&mut self, probe: &Probe, port: Option<u16>) {
        let Some(port) = port else { return };
        match self.configuration.plan.telemetry.as_ref().filter(|server| server.port == port) {
            Some(telemetry) => drop(self.listens(telemetry, probe, false)),
            None => self.undeclared(probe, port),
        }
    }

    fn grpc(&mut self, probe: &Probe, port: Option<u16>) {
        let Some(port) = port else { return };
        if self.configuration.plan.telemetry.as_ref().is_none_or(|server| server.port != port) {
            return self.undeclared(probe, port);
        }
        let message = format!(
            "{} uses gRPC, but the telemetry server at port {port} serves HTTP: the probe always fails",
            probe.name
        );
        self.fault(probe.line, message, "use httpGet with /livez or /readyz", &["telemetry", "port"]);
    }

    /// A warning about a port, if every job that could listen on it has another one.
    fn undeclared(&mut self, probe: &Probe, port: u16) {
        let plan = self.configuration.plan;
        let mut servers = plan.jobs.iter().filter(|job| {
            let can_listen = matches!(job.role, Role::User | Role::Main | Role::Coprocess);
            can_listen && job.exec.program().is_some() && !job.when.is_periodic() && !job.is_stop_hook()
        });
        if self.is_declared(port) || servers.any(|job| ports_of(job).is_empty()) {
            return;
        }
        let mut known: Vec<u16> = plan.jobs.iter().flat_map(ports_of).collect();
        known.extend(plan.telemetry.as_ref().map(|server| server.port));
        known.sort_unstable();
        known.dedup();
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        let message = format!(
            "{} connects to port {port}, but no job of the configuration has this port; the ports are {}",
            probe.name,
            known.join(", ")
        );
        self.warn(probe.line, message, "correct the port of the probe, or `port` of the job", &["jobs"]);
    }

    /// Returns true if a job has this port, is checked there, or has it in its command or variables.
    fn is_declared(&self, port: u16) -> bool {
        let jobs = &self.configuration.plan.jobs;
        let number = port.to_string();
        let mentions = |text: &str| text.split(|c: char| !c.is_ascii_digit()).any(|word| word == number);
        jobs.iter().any(|job| {
            ports_of(job).contains(&port)
                || job.exec.program().is_some_and(|command| mentions(&command.line()))
                || job
                    .process
                    .env
                    .values()
                    .chain(job.process.shared_env.values())
                    .any(|value| mentions(value))
        })
    }

    /// A command line of containerpilot that is executed in the container.
    fn call(&mut self, line: usize, who: &str, purpose: Option<Purpose>, call: &[String]) {
        let shown = format!("containerpilot {}", call.join(" "));
        let shown = shown.trim_end();
        let always = if purpose.is_some() { ": the probe always fails" } else { "" };
        let invocation = match (self.configuration.command_line)(call) {
            Ok(invocation) => invocation,
            Err(why) => {
                let message = format!("{who} runs `{shown}`, which is not valid{always}: {why}");
                return self.fault(line, message, "see `containerpilot help`", &[]);
            }
        };
        let Invocation { command, arguments, socket } = &invocation;
        if command == "run" {
            let message = format!("{who} runs `{shown}`, which starts a second supervisor in the container");
            return self.fault(line, message, "use `containerpilot health` or `containerpilot ping`", &[]);
        }
        let real = &self.configuration.plan.control.socket;
        if let Some(socket) = socket.as_ref().filter(|socket| *socket != real) {
            let message = format!(
                "{who} runs `{shown}`, but the control socket of the configuration is {real}, not {socket}{always}"
            );
            let help = "remove -socket, or use the path of the configuration";
            return self.fault(line, message, help, &["control", "socket"]);
        }
        if let Some(name) = self.unknown_job(command, arguments) {
            let names = self.configuration.plan.jobs.iter().map(|job| job.name.as_str());
            let help = match suggest::nearest(&name, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the jobs are {}", names.collect::<Vec<_>>().join(", ")),
            };
            let message = format!("{who} runs `{shown}`, but the configuration has no job `{name}`{always}");
            return self.fault(line, message, help, &["jobs"]);
        }
        if purpose == Some(Purpose::Liveness) && command == "health" {
            let what = match arguments.first() {
                Some(job) => format!("the job {job} is"),
                None => "any job is".to_owned(),
            };
            let message = format!(
                "{who} runs `{shown}`, which fails while {what} unhealthy: {} is restarted then, although only the job should be",
                self.unit()
            );
            let help = "use `containerpilot ping` for liveness, `health` for readiness, and `onUnhealthy: \"restart\"` for the job";
            self.warn(line, message, help, &["jobs"]);
        }
    }

    /// The name of a job on a command line that the configuration does not have.
    fn unknown_job(&self, command: &str, arguments: &[String]) -> Option<String> {
        let names = match command {
            "health" | "status" | "explain" => arguments.get(..1)?,
            "wait" => arguments.split_last()?.1,
            "start" | "stop" | "restart" | "logs" => arguments,
            _ => return None,
        };
        let jobs = &self.configuration.plan.jobs;
        let is_known = |name: &str| {
            let first = name.split(':').next().unwrap_or(name);
            let is_job = |job: &Job| job.name == name || job.name == first || job.is_replica_of(first);
            let group = name.strip_prefix('@');
            let is_source =
                ["watch.", "service.", "file.", "lock."].iter().any(|prefix| name.starts_with(prefix));
            is_source
                || jobs.iter().any(|job| {
                    is_job(job) || group.is_some_and(|group| job.groups.iter().any(|own| own == group))
                })
        };
        names.iter().find(|name| !is_known(name)).cloned()
    }
}

/// Returns true if the telemetry server has a page at this path.
fn is_telemetry_path(telemetry: &Telemetry, path: &str) -> bool {
    PATHS.contains(&path) || telemetry.page.is_some() && (path == "/" || path.starts_with("/page/"))
}

/// The ports of a job: that of its service, and those at which it is checked inside the container.
fn ports_of(job: &Job) -> Vec<u16> {
    let is_local = |host: &str| {
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
    };
    let checks = job.health.iter().flat_map(|health| &health.checks);
    let checked = checks.filter_map(|check| match &check.probe {
        Check::Http(http) if is_local(&http.target.host) => Some(http.target.port),
        Check::Tcp { host, port } if is_local(host) => Some(*port),
        _ => None,
    });
    let service = job.service.as_ref().map(|service| service.port);
    let replica = job.replica.as_ref().and_then(|replica| replica.port);
    let is_user = job.role != Role::Telemetry;
    checked.chain(service.filter(|_| is_user)).chain(replica).collect()
}

/// The URLs at this container that a command of curl or wget requests: port, path, and whether it is https.
fn local_urls(words: &[String]) -> Vec<(u16, String, bool)> {
    let is_client = words.first().is_some_and(|program| matches!(base_name(program), "curl" | "wget"));
    let urls = words.iter().skip(1).filter(|_| is_client).filter_map(|word| {
        let (tls, rest) = match word.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return None,
            None => (false, word.as_str()),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, if tls { 443 } else { 80 }),
        };
        let local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        local.then(|| (port, path_of(path), tls))
    });
    urls.collect()
}

impl Audit<'_> {
    /// Returns true if a probe runs a command that needs the control socket.
    pub(super) fn probes_need_socket(&self) -> bool {
        let is_call = |probe: &Probe| matches!(&probe.action, ProbeAction::Exec(words) if !containerpilot_calls(words).is_empty());
        self.container.probes.iter().any(is_call)
    }
}
