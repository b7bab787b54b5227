//! Services of a Compose file.

use std::time::Duration;

use crate::model::{Container, Lifetime, Mount, Platform, Probe, ProbeAction, Purpose, User};
use crate::tree::{At, Node, Value};
use crate::values::{bytes, drops_setuid, shell, split, time};

/// The time before SIGKILL if the file sets none.
const GRACE: Duration = Duration::from_secs(10);

/// The services of a file.
pub(crate) fn containers(document: &Node) -> Vec<Container> {
    let services = document.get("services").map(Node::entries).unwrap_or_default();
    services.iter().map(|(name, node)| container(name, node)).collect()
}

fn container(name: &str, node: &Node) -> Container {
    let mut container = Container::new(Platform::Compose, "services", name, node.line);
    container.image = node.get("image").and_then(Node::text).unwrap_or_default().to_owned();
    container.command = node.get("entrypoint").and_then(command);
    container.args = node.get("command").and_then(command);
    container.env = env(node);
    container.mounts = mounts(node);
    let grace = node.get("stop_grace_period");
    container.default_grace = grace.is_none();
    container.grace = match grace {
        Some(grace) => grace.known().and_then(time).map(|time| grace.at(time)),
        None => Some(At { line: node.line, value: GRACE }),
    };
    container.signal = node.get("stop_signal").and_then(|signal| Some(signal.at(signal.known()?.to_owned())));
    container.memory = node
        .get("mem_limit")
        .or_else(|| node.path(&["deploy", "resources", "limits", "memory"]))
        .and_then(|limit| Some(limit.at(bytes(limit.known()?)?)));
    container.read_only = node.get("read_only").filter(|flag| flag.is_on()).map(|flag| flag.line);
    container.user = node.get("user").and_then(|user| {
        let id = user.known()?.split(':').next()?.parse().ok()?;
        Some(user.at(User::Id(id)))
    });
    let list = |key: &str| node.get(key).map(Node::texts).unwrap_or_default();
    if drops_setuid(&list("cap_drop"), &list("cap_add")) {
        container.no_setuid = node.get("cap_drop").map(|drop| drop.line);
    }
    container.other_init = node.get("init").filter(|flag| flag.is_on()).map(|flag| flag.at("init: true"));
    container.other_pid_1 = node.get("pid").map(|pid| pid.at("pid"));
    container.lifetime = lifetime(node);
    container.probes = node.get("healthcheck").and_then(health_check).into_iter().collect();
    container
}

/// A list, or a line that Compose splits into words.
fn command(node: &Node) -> Option<At<Vec<String>>> {
    match (&node.value, node.text()) {
        (Value::List(_), _) => Some(node.at(node.texts())),
        (_, Some(line)) => Some(node.at(split(line))),
        _ => None,
    }
}

/// The variables whose values are in the file, as a mapping or as a list of `NAME=VALUE`.
fn env(node: &Node) -> Vec<(String, String)> {
    let Some(environment) = node.get("environment") else { return Vec::new() };
    let of_map = environment
        .entries()
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.known()?.to_owned())));
    let of_list = environment.items().iter().filter_map(|item| {
        let (name, value) = item.known()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    of_map.chain(of_list).collect()
}

fn mounts(node: &Node) -> Vec<Mount> {
    let mut mounts = Vec::new();
    if let Some(tmpfs) = node.get("tmpfs") {
        let paths = tmpfs.items().iter().chain([tmpfs]).filter_map(Node::text);
        mounts.extend(paths.map(|path| Mount {
            path: path.split(':').next().unwrap_or_default().to_owned(),
            writable: true,
        }));
    }
    for volume in node.get("volumes").map(Node::items).unwrap_or_default() {
        if let Some(target) = volume.get("target").and_then(Node::text) {
            let writable = !volume.get("read_only").is_some_and(Node::is_on);
            mounts.push(Mount { path: target.to_owned(), writable });
        } else if let Some(text) = volume.text() {
            let parts: Vec<&str> = text.split(':').collect();
            let (path, mode) = match parts.as_slice() {
                [path] => (*path, ""),
                [_, path] => (*path, ""),
                [.., path, mode] => (*path, *mode),
                [] => continue,
            };
            let writable = !mode.split(',').any(|option| option == "ro");
            mounts.push(Mount { path: path.to_owned(), writable });
        }
    }
    for key in ["configs", "secrets"] {
        let targets = node.get(key).map(Node::items).unwrap_or_default();
        let targets = targets.iter().filter_map(|one| one.get("target")?.text());
        mounts.extend(targets.map(|path| Mount { path: path.to_owned(), writable: false }));
    }
    mounts
}

fn lifetime(node: &Node) -> At<Lifetime> {
    let policy = node.path(&["deploy", "restart_policy", "condition"]).or_else(|| node.get("restart"));
    let value = match policy.and_then(Node::text) {
        Some("always" | "unless-stopped" | "any") => Lifetime::Service,
        _ => Lifetime::Unknown,
    };
    At { line: policy.map_or(node.line, |policy| policy.line), value }
}

fn health_check(node: &Node) -> Option<Probe> {
    let test = node.get("test").filter(|_| !node.get("disable").is_some_and(Node::is_on))?;
    let words = match (test.text(), test.texts().split_first()) {
        (Some(line), _) => shell(line),
        (None, Some((kind, rest))) if kind == "CMD" => rest.to_vec(),
        (None, Some((kind, rest))) if kind == "CMD-SHELL" => shell(&rest.join(" ")),
        _ => return None,
    };
    let action = ProbeAction::Exec(words);
    Some(Probe {
        name: "healthcheck".to_owned(),
        purpose: Purpose::Readiness,
        line: test.line,
        action,
        grace: None,
    })
}
