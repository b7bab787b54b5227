//! Jobs of Nomad: a job file in HCL, or the JSON of its API, which has the same keys in other words.

use std::time::Duration;

use containerpilot_config::diagnostics::Severity;

use crate::model::{Container, Lifetime, Mount, Platform, Probe, ProbeAction, Purpose, User};
use crate::tree::{At, Node, Value};
use crate::values::{drops_setuid, path_of, time};

/// `kill_timeout` if the file sets none.
const GRACE: Duration = Duration::from_secs(5);

/// Fewer nanoseconds are probably meant to be seconds.
const SHORTEST: u64 = 1_000_000;

/// Returns true if a JSON document is a job of Nomad's API.
pub(crate) fn is_job(document: &Node) -> bool {
    job_of(document).get("TaskGroups").is_some()
}

fn job_of(document: &Node) -> &Node {
    document.get("Job").unwrap_or(document)
}

/// The tasks of a job file in HCL.
pub(crate) fn from_hcl(file: &Node) -> Vec<Container> {
    let jobs = file.all("job");
    jobs.flat_map(|job| {
        let name = label(job);
        job.all("group")
            .flat_map(move |group| Group { job, name: name.clone(), group, is_json: false }.tasks())
    })
    .collect()
}

/// The tasks of a job in JSON.
pub(crate) fn from_json(document: &Node) -> Vec<Container> {
    let job = job_of(document);
    let name = word(job, "id").or_else(|| word(job, "name")).unwrap_or_default().to_owned();
    let groups = job.get("TaskGroups").map(Node::items).unwrap_or_default();
    let is_json = true;
    groups.iter().flat_map(|group| Group { job, name: name.clone(), group, is_json }.tasks()).collect()
}

/// The label of a block; the name of an object in JSON.
fn label(node: &Node) -> String {
    let name = node.labels.first().map(String::as_str).or_else(|| word(node, "name"));
    name.unwrap_or("without a name").to_owned()
}

/// A value by the key of HCL, or by that of the API: `kill_timeout`, `KillTimeout`.
fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    node.get(key).or_else(|| {
        let same = |known: &str| known.replace('_', "").eq_ignore_ascii_case(&key.replace('_', ""));
        node.entries().iter().find(|(known, _)| same(known)).map(|(_, value)| value)
    })
}

fn word<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    get(node, key)?.known()
}

/// Blocks with a name; in the API, the list under the plural.
fn blocks<'a>(node: &'a Node, key: &'a str) -> Vec<&'a Node> {
    let plural = format!("{key}s");
    let list = node.entries().iter().filter(|(known, _)| known.eq_ignore_ascii_case(&plural));
    let items = list.flat_map(|(_, value)| value.items());
    node.all(key).chain(items).collect()
}

struct Group<'a> {
    job: &'a Node,
    name: String,
    group: &'a Node,
    is_json: bool,
}

impl Group<'_> {
    fn tasks(&self) -> Vec<Container> {
        blocks(self.group, "task").into_iter().map(|task| self.task(task)).collect()
    }

    fn task(&self, task: &Node) -> Container {
        let parent = format!("job {}, group {}", self.name, label(self.group));
        let name = label(task);
        let mut container = Container::new(Platform::Nomad, &parent, &name, task.line);
        let driver = word(task, "driver").unwrap_or_default();
        let config = get(task, "config");
        let setting = |key: &str| config.and_then(|config| get(config, key));
        container.image = setting("image").and_then(Node::text).unwrap_or_default().to_owned();
        let args = setting("args").map(|list| list.at(list.texts()));
        if let Some(entrypoint) = setting("entrypoint") {
            container.command = Some(entrypoint.at(entrypoint.texts()));
        }
        // With the Docker driver, `command` is the first argument for the entry point of the image.
        match setting("command").and_then(|command| Some(command.at(command.text()?.to_owned()))) {
            Some(command) => {
                let mut words = vec![command.value];
                words.extend(args.map(|args| args.value).unwrap_or_default());
                let words = At { line: command.line, value: words };
                match driver {
                    "docker" | "podman" => container.args = Some(words),
                    _ => container.command = Some(words),
                }
            }
            None => container.args = args,
        }
        let env = get(task, "env").map(Node::entries).unwrap_or_default();
        container.env =
            env.iter().filter_map(|(name, value)| Some((name.clone(), value.known()?.to_owned()))).collect();
        container.is_nomad_json = self.is_json;
        let grace = get(task, "kill_timeout").filter(|grace| grace.value != Value::Null);
        container.default_grace = grace.is_none();
        container.grace = match grace {
            Some(grace) => kill_timeout(grace, &mut container),
            None => Some(At { line: task.line, value: GRACE }),
        };
        let signal =
            get(task, "kill_signal").filter(|signal| signal.known().is_some_and(|text| !text.is_empty()));
        container.signal = signal.and_then(|signal| Some(signal.at(signal.known()?.to_owned())));
        container.default_signal = if driver == "docker" { "SIGTERM" } else { "SIGINT" };
        container.memory = memory(task);
        container.read_only = setting("readonly_rootfs").filter(|flag| flag.is_on()).map(|flag| flag.line);
        container.user = get(task, "user").and_then(|user| {
            let id = user.known()?.split(':').next()?.parse().ok()?;
            Some(user.at(User::Id(id)))
        });
        let list = |key: &str| setting(key).map(Node::texts).unwrap_or_default();
        if drops_setuid(&list("cap_drop"), &list("cap_add")) {
            container.no_setuid = setting("cap_drop").map(|drop| drop.line);
        }
        container.other_init = setting("init").filter(|flag| flag.is_on()).map(|flag| flag.at("init = true"));
        container.other_pid_1 = setting("pid_mode").map(|mode| mode.at("pid_mode"));
        container.mounts = mounts(task, config);
        container.lifetime = self.lifetime(task);
        container.probes = self.probes(task, &name);
        container
    }

    fn lifetime(&self, task: &Node) -> At<Lifetime> {
        // A task that prepares something or cleans up, and is no sidecar, must end.
        if let Some(lifecycle) = get(task, "lifecycle").filter(|block| !block.entries().is_empty()) {
            let sidecar = get(lifecycle, "sidecar").is_some_and(Node::is_on);
            return lifecycle.at(if sidecar { Lifetime::Service } else { Lifetime::Task });
        }
        let kind = get(self.job, "type");
        let value = match kind.and_then(Node::text) {
            Some("batch" | "sysbatch") => Lifetime::Task,
            _ => Lifetime::Service,
        };
        At { line: kind.map_or(task.line, |kind| kind.line), value }
    }

    /// The checks of the task's services, and those of the group that are made in this task.
    fn probes(&self, task: &Node, name: &str) -> Vec<Probe> {
        let alone = blocks(self.group, "task").len() == 1;
        let services = |node| blocks(node, "service");
        let own = services(task).into_iter().map(|service| (service, true));
        let of_group = services(self.group).into_iter().map(|service| (service, alone));
        let mut probes = Vec::new();
        for (service, is_here) in own.chain(of_group) {
            for check in blocks(service, "check") {
                let here = match word(check, "task")
                    .or_else(|| word(service, "task"))
                    .filter(|task| !task.is_empty())
                {
                    Some(task) => task == name,
                    None => is_here,
                };
                // A limit of 0, which is the default, restarts nothing.
                let restart = |node| get(node, "check_restart").and_then(|block| get(block, "limit"));
                let limit = restart(check).or_else(|| restart(service));
                let restarts = limit.is_some_and(|limit| limit.number() != Some(0));
                let purpose = if restarts { Purpose::Liveness } else { Purpose::Readiness };
                if let Some(action) = self.action(task, service, check).filter(|_| here) {
                    probes.push(Probe {
                        name: "check".to_owned(),
                        purpose,
                        line: check.line,
                        action,
                        grace: None,
                    });
                }
            }
        }
        probes
    }

    fn action(&self, task: &Node, service: &Node, check: &Node) -> Option<ProbeAction> {
        let port_of = |node| get(node, "port").or_else(|| get(node, "port_label"));
        let is_set = |port: &&Node| port.text().is_none_or(|label| !label.is_empty());
        let label = port_of(check).filter(is_set).or_else(|| port_of(service)).and_then(Node::known);
        let kind = word(check, "type")?;
        if let Some(label) = label.filter(|label| kind != "script" && self.lacks_port(task, label))
            && !get(check, "expose").is_some_and(Node::is_on)
        {
            return Some(ProbeAction::NoSuchPort(label.to_owned()));
        }
        let port = || label.and_then(|label| self.port(task, label));
        match kind {
            "http" => Some(ProbeAction::Http {
                port: port(),
                path: path_of(get(check, "path").and_then(Node::text).unwrap_or("/")),
                tls: word(check, "protocol") == Some("https"),
            }),
            "tcp" => Some(ProbeAction::Tcp(port())),
            "grpc" => Some(ProbeAction::Grpc(port())),
            "script" => {
                let mut words = vec![word(check, "command")?.to_owned()];
                words.extend(get(check, "args").map(Node::texts).unwrap_or_default());
                Some(ProbeAction::Exec(words))
            }
            _ => None,
        }
    }

    /// The networks of the group, and those of the task in old files.
    fn networks<'b>(&'b self, task: &'b Node) -> Vec<&'b Node> {
        let of_task = get(task, "resources").map(|resources| blocks(resources, "network"));
        blocks(self.group, "network").into_iter().chain(of_task.unwrap_or_default()).collect()
    }

    /// The port with a label.
    fn labelled<'b>(&'b self, task: &'b Node, label: &str) -> Option<&'b Node> {
        let ports = self.networks(task).into_iter().flat_map(|network| {
            let api = ["DynamicPorts", "ReservedPorts"].into_iter();
            let api = api.flat_map(|key| network.get(key).map(Node::items).unwrap_or_default());
            network.all("port").chain(api)
        });
        let is_named = |port: &&Node| {
            port.labels.first().map(String::as_str).or_else(|| word(port, "label")) == Some(label)
        };
        ports.into_iter().find(is_named)
    }

    /// Returns true if a label is certainly not that of a port: no block may add it.
    fn lacks_port(&self, task: &Node, label: &str) -> bool {
        let is_dynamic = |node: &Node| node.get("dynamic").is_some();
        label.parse::<u16>().is_err()
            && self.labelled(task, label).is_none()
            && !is_dynamic(self.group)
            && !self.networks(task).into_iter().any(is_dynamic)
    }

    /// The port in the container with a label; `None` if Nomad chooses it.
    fn port(&self, task: &Node, label: &str) -> Option<u16> {
        if let Ok(port) = label.parse() {
            return Some(port);
        }
        let number = |node: &Node, key: &str| get(node, key)?.number().filter(|port| *port > 0);
        let port = self.labelled(task, label)?;
        let inside = number(port, "to").or_else(|| number(port, "static")).or_else(|| number(port, "value"));
        u16::try_from(inside?).ok()
    }
}

/// The time before SIGKILL. A number counts nanoseconds, in a job file and in the API; a text needs a unit.
fn kill_timeout(node: &Node, container: &mut Container) -> Option<At<Duration>> {
    let text = node.known()?;
    let number = node.number().filter(|_| node.is_number());
    let time = match number {
        Some(number) => Some(Duration::from_nanos(number)),
        None => time(text).filter(|_| text.parse::<f64>().is_err()),
    };
    let is_short = number.is_some_and(|number| (1..SHORTEST).contains(&number));
    let message = match time {
        Some(_) if is_short => {
            format!("`{text}` is {text} nanoseconds: Nomad reads a number without a unit so")
        }
        Some(time) => return Some(node.at(time)),
        None => format!("`{text}` is not a time: Nomad refuses the job"),
    };
    let help = match (container.is_nomad_json, is_short) {
        (true, _) => "write nanoseconds: `30000000000` for 30 seconds".to_owned(),
        (false, true) => format!("write `\"{text}s\"` for seconds"),
        (false, false) => "write a text with a unit, such as `\"30s\"`".to_owned(),
    };
    container.mistake(Severity::Fault, node.line, message, help);
    None
}

/// `memory_max`, or else `memory`, in MiB.
fn memory(task: &Node) -> Option<At<u64>> {
    let resources = get(task, "resources")?;
    let limit = |keys: [&str; 2]| {
        let node = keys.into_iter().find_map(|key| get(resources, key))?;
        let size = node.number().filter(|size| *size > 0)?;
        Some(node.at(size.saturating_mul(1 << 20)))
    };
    limit(["memory_max", "MemoryMaxMB"]).or_else(|| limit(["memory", "MemoryMB"]))
}

fn mounts(task: &Node, config: Option<&Node>) -> Vec<Mount> {
    // Directories of every task.
    let own = ["/local", "/secrets", "/alloc"].map(|path| Mount { path: path.to_owned(), writable: true });
    let mut mounts = own.to_vec();
    let mut add = |nodes: Vec<&Node>, key: &str, read_only: &str| {
        mounts.extend(nodes.into_iter().filter_map(|node| {
            let path = get(node, key)?.text()?.to_owned();
            Some(Mount { path, writable: !get(node, read_only).is_some_and(Node::is_on) })
        }));
    };
    add(blocks(task, "volume_mount"), "destination", "read_only");
    if let Some(config) = config {
        add(blocks(config, "mount"), "target", "readonly");
        let volumes = get(config, "volumes").map(Node::texts).unwrap_or_default();
        mounts.extend(volumes.iter().filter_map(|volume| {
            let mut parts = volume.split(':').skip(1);
            let path = parts.next()?.to_owned();
            Some(Mount { path, writable: parts.next() != Some("ro") })
        }));
        let tmpfs = get(config, "tmpfs").map(Node::texts).unwrap_or_default();
        mounts.extend(tmpfs.into_iter().map(|path| Mount { path, writable: true }));
    }
    mounts
}
