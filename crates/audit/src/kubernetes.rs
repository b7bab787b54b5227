//! Manifests of Kubernetes: the containers of everything that has pods.

use std::time::Duration;

use containerpilot_config::diagnostics::Severity;

use crate::model::{Container, Lifetime, Mount, Platform, Probe, ProbeAction, Purpose, User};
use crate::tree::{At, Node};
use crate::values::{drops_setuid, path_of, quantity, sleep_time, whole};

/// The grace period of a pod that sets none.
const GRACE: Duration = Duration::from_secs(30);

/// The kinds whose containers are read.
pub(crate) const KINDS: &str =
    "Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job, CronJob and List";

/// Returns true if a document is an object of Kubernetes.
pub(crate) fn is_object(document: &Node) -> bool {
    document.get("kind").is_some() && document.get("apiVersion").is_some()
}

/// The containers of a document.
pub(crate) fn containers(document: &Node) -> Vec<Container> {
    let kind = document.get("kind").and_then(Node::text).unwrap_or_default();
    let (spec, default) = match kind {
        "List" => {
            let items = document.get("items").map(Node::items).unwrap_or_default();
            return items.iter().flat_map(containers).collect();
        }
        "Pod" => (document.get("spec"), Lifetime::Service),
        "Job" => (document.path(&["spec", "template", "spec"]), Lifetime::Task),
        "CronJob" => (document.path(&["spec", "jobTemplate", "spec", "template", "spec"]), Lifetime::Task),
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "ReplicationController" => {
            (document.path(&["spec", "template", "spec"]), Lifetime::Service)
        }
        _ => return Vec::new(),
    };
    let Some(spec) = spec else { return Vec::new() };
    let name = document.path(&["metadata", "name"]).and_then(Node::text).unwrap_or("without a name");
    let pod = Pod { spec, parent: format!("{kind}/{name}"), default };
    let list = |key: &str| spec.get(key).map(Node::items).unwrap_or_default();
    let main = list("containers").iter().map(|node| pod.container(node, false));
    main.chain(list("initContainers").iter().map(|node| pod.container(node, true))).collect()
}

struct Pod<'a> {
    spec: &'a Node,
    parent: String,
    default: Lifetime,
}

impl Pod<'_> {
    fn container(&self, node: &Node, init: bool) -> Container {
        let name = node.get("name").and_then(Node::text).unwrap_or("without a name");
        let mut container = Container::new(Platform::Kubernetes, &self.parent, name, node.line);
        container.image = node.get("image").and_then(Node::text).unwrap_or_default().to_owned();
        container.command = node.get("command").map(|list| list.at(list.texts()));
        container.args = node.get("args").map(|list| list.at(list.texts()));
        container.env = env(node);
        container.mounts = self.mounts(node);
        self.stop(node, &mut container);
        container.lifetime = self.lifetime(node, init);
        container.memory = memory(node, &mut container);
        self.security(node, &mut container);
        let shared = ["shareProcessNamespace", "hostPID"].into_iter();
        container.other_pid_1 = shared
            .filter_map(|key| self.spec.get(key).filter(|flag| flag.is_on()).map(|flag| flag.at(key)))
            .next();
        container.message_path =
            node.get("terminationMessagePath").and_then(|path| Some(path.at(path.text()?.to_owned())));
        let ports = node.get("ports").map(Node::items).unwrap_or_default();
        let probes = [
            ("startupProbe", Purpose::Startup),
            ("livenessProbe", Purpose::Liveness),
            ("readinessProbe", Purpose::Readiness),
        ];
        for (name, purpose) in probes {
            let Some(probe) = node.get(name) else { continue };
            let grace = probe.get("terminationGracePeriodSeconds");
            let grace = grace.and_then(|grace| seconds(grace, 1, &mut container));
            if let Some(action) = action(probe, ports) {
                container.probes.push(Probe {
                    name: name.to_owned(),
                    purpose,
                    line: probe.line,
                    action,
                    grace,
                });
            }
        }
        container
    }

    fn stop(&self, node: &Node, container: &mut Container) {
        let grace = self.spec.get("terminationGracePeriodSeconds");
        container.default_grace = grace.is_none();
        container.grace = match grace {
            Some(grace) => pod_grace(grace, container),
            None => Some(At { line: container.line, value: GRACE }),
        };
        for hook in ["postStart", "preStop"] {
            let command = node.path(&["lifecycle", hook, "exec", "command"]);
            container.hooks.extend(command.map(|command| command.at(command.texts())));
        }
        container.pre_stop = node.path(&["lifecycle", "preStop"]).map(|hook| {
            let sleep = hook.path(&["sleep", "seconds"]).and_then(|time| seconds(time, 0, container));
            let sleep = sleep.map(|time| time.value);
            let command = hook.path(&["exec", "command"]).map(Node::texts);
            let time = sleep.or_else(|| sleep_time(&command?)).unwrap_or_default();
            hook.at(time)
        });
        container.signal = node
            .path(&["lifecycle", "stopSignal"])
            .and_then(|signal| Some(signal.at(signal.known()?.to_owned())));
    }

    fn lifetime(&self, node: &Node, init: bool) -> At<Lifetime> {
        if init {
            // A container that is restarted is a sidecar.
            let policy = node.get("restartPolicy");
            let sidecar = policy.is_some_and(|policy| policy.text() == Some("Always"));
            return node.at(if sidecar { Lifetime::Service } else { Lifetime::Task });
        }
        let policy = self.spec.get("restartPolicy");
        let line = policy.map_or(node.line, |policy| policy.line);
        let value = match policy.and_then(Node::text) {
            _ if self.default == Lifetime::Task => Lifetime::Task,
            Some("Never" | "OnFailure") => Lifetime::Unknown,
            _ => Lifetime::Service,
        };
        At { line, value }
    }

    /// The mounted paths. Files of a ConfigMap or Secret cannot be written.
    fn mounts(&self, node: &Node) -> Vec<Mount> {
        let volumes = self.spec.get("volumes").map(Node::items).unwrap_or_default();
        let read_only = |name: &str| {
            let volume = volumes.iter().find(|volume| volume.get("name").and_then(Node::text) == Some(name));
            let kinds = ["configMap", "secret", "downwardAPI", "projected", "image"];
            volume.is_some_and(|volume| kinds.iter().any(|kind| volume.get(kind).is_some()))
        };
        let mounts = node.get("volumeMounts").map(Node::items).unwrap_or_default();
        let mounts = mounts.iter().filter_map(|mount| {
            let path = mount.get("mountPath")?.text()?.to_owned();
            let name = mount.get("name").and_then(Node::text).unwrap_or_default();
            let writable = !mount.get("readOnly").is_some_and(Node::is_on) && !read_only(name);
            Some(Mount { path, writable })
        });
        mounts.collect()
    }

    fn security(&self, node: &Node, container: &mut Container) {
        let of_pod = self.spec.get("securityContext");
        let own = node.get("securityContext");
        let setting = |key: &str| own.and_then(|own| own.get(key)).or_else(|| of_pod?.get(key));
        let id = setting("runAsUser").and_then(|id| Some(id.at(User::Id(u32::try_from(id.number()?).ok()?))));
        let not_root = || Some(setting("runAsNonRoot").filter(|flag| flag.is_on())?.at(User::NotRoot));
        container.user = id.or_else(not_root);
        container.read_only = own
            .and_then(|own| own.get("readOnlyRootFilesystem"))
            .filter(|flag| flag.is_on())
            .map(|flag| flag.line);
        let capabilities = own.and_then(|own| own.get("capabilities"));
        let list = |key: &str| capabilities.and_then(|all| all.get(key)).map(Node::texts).unwrap_or_default();
        if drops_setuid(&list("drop"), &list("add")) {
            container.no_setuid = capabilities.and_then(|all| all.get("drop")).map(|drop| drop.line);
        }
    }
}

/// The variables of a container whose values are in the manifest.
fn env(node: &Node) -> Vec<(String, String)> {
    let list = node.get("env").map(Node::items).unwrap_or_default();
    let known = list.iter().filter_map(|one| {
        let value = one.get("value")?.text().filter(|value| !value.contains("$("))?;
        Some((one.get("name")?.text()?.to_owned(), value.to_owned()))
    });
    known.collect()
}

/// A text in which nothing is left for a template.
fn rendered(node: &Node) -> Option<&str> {
    node.known().filter(|text| !text.contains("{{"))
}

/// A number of seconds, not less than `least`. What the API server refuses is added to the mistakes.
fn seconds(node: &Node, least: i64, container: &mut Container) -> Option<At<Duration>> {
    let text = rendered(node)?;
    let why = match whole(text, node.is_number()) {
        Ok(Some(number)) if number >= least => {
            return Some(node.at(Duration::from_secs(number.unsigned_abs())));
        }
        Ok(Some(_)) => format!("must be {least} or more"),
        Ok(None) => return None,
        Err(why) => why.to_owned(),
    };
    let message = format!("`{text}` {why}: the API server refuses the manifest");
    let help = "write a whole number of seconds without quotes, such as 60".to_owned();
    container.mistake(Severity::Fault, node.line, message, help);
    None
}

/// `terminationGracePeriodSeconds` of a pod: a negative number is accepted, and counts as 1.
fn pod_grace(node: &Node, container: &mut Container) -> Option<At<Duration>> {
    let time = seconds(node, i64::MIN, container)?;
    if node.text().is_some_and(|text| text.starts_with('-')) {
        let message = "a negative grace period counts as 1 second".to_owned();
        let help = "write the number of seconds that a stop may take".to_owned();
        container.mistake(Severity::Warning, node.line, message, help);
        return Some(node.at(Duration::from_secs(1)));
    }
    Some(time)
}

/// The memory limit.
fn memory(node: &Node, container: &mut Container) -> Option<At<u64>> {
    let limit = node.path(&["resources", "limits", "memory"])?;
    let text = rendered(limit)?;
    let size = quantity(text);
    if size.is_none() {
        let message = format!("`{text}` is not a quantity of memory: the API server refuses the manifest");
        let help = "write a number with a unit, such as 256Mi".to_owned();
        container.mistake(Severity::Fault, limit.line, message, help);
    }
    size.map(|size| limit.at(size))
}

/// What a probe does; `None` if it concerns another host or is not understood.
fn action(probe: &Node, ports: &[Node]) -> Option<ProbeAction> {
    if let Some(command) = probe.path(&["exec", "command"]) {
        return Some(ProbeAction::Exec(command.texts()));
    }
    let (kind, node) =
        ["httpGet", "tcpSocket", "grpc"].into_iter().find_map(|kind| Some((kind, probe.get(kind)?)))?;
    if node.get("host").is_some() {
        return None;
    }
    let written = node.get("port")?.known()?;
    let port = match written.parse::<u16>() {
        Ok(port) => port,
        Err(_) => {
            let named = ports.iter().find(|port| port.get("name").and_then(Node::text) == Some(written));
            let number = named.map(|port| port.get("containerPort").and_then(Node::number));
            match number {
                None => return Some(ProbeAction::NoSuchPort(written.to_owned())),
                Some(number) => u16::try_from(number?).ok()?,
            }
        }
    };
    Some(match kind {
        "httpGet" => ProbeAction::Http {
            port: Some(port),
            path: path_of(node.get("path").and_then(Node::text).unwrap_or("/")),
            tls: node
                .get("scheme")
                .and_then(Node::text)
                .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
        },
        "tcpSocket" => ProbeAction::Tcp(Some(port)),
        _ => ProbeAction::Grpc(Some(port)),
    })
}
