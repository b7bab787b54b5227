//! Services of a Compose file.

use containerpilot_import::compose::keys::{self, HealthTest, RestartPolicy, plain};
use containerpilot_import::yaml::{Map, YamlEntry, YamlNode};

use crate::model::{Container, Lifetime, Mount, Platform, Probe, ProbeAction, Purpose, User};
use crate::tree::At;
use crate::values::{bytes, drops_setuid, shell, split};

/// The services of a file.
pub(crate) fn containers(document: &YamlNode) -> Vec<Container> {
    let services = document.map().and_then(keys::services);
    services.into_iter().flatten().map(container).collect()
}

fn container(entry: &YamlEntry) -> Container {
    let mut container = Container::new(Platform::Compose, "services", &entry.key, entry.line());
    let empty = Map::default();
    let service = entry.value.map().unwrap_or(&empty);
    container.image = service.get("image").and_then(YamlNode::text).unwrap_or_default().to_owned();
    container.command = service.entry("entrypoint").and_then(command);
    container.args = service.entry("command").and_then(command);
    container.env = service.get("environment").map(env).unwrap_or_default();
    container.mounts = mounts(service);
    let grace = service.entry("stop_grace_period");
    container.default_grace = grace.is_none();
    container.grace = match grace {
        Some(grace) => keys::duration(&grace.value).map(|time| at(grace, time)),
        None => Some(at(entry, keys::GRACE)),
    };
    container.signal =
        service.entry("stop_signal").and_then(|signal| Some(at(signal, plain(&signal.value)?.to_owned())));
    container.memory = memory(service).and_then(|limit| Some(at(limit, bytes(plain(&limit.value)?)?)));
    let flag = |key| service.entry(key).filter(|flag| flag.value.flag() == Some(true));
    container.read_only = flag("read_only").map(YamlEntry::line);
    container.user = service.entry("user").and_then(|user| {
        let id = plain(&user.value)?.split(':').next()?.parse().ok()?;
        Some(at(user, User::Id(id)))
    });
    let list = |key: &str| service.get(key).map(texts).unwrap_or_default();
    if drops_setuid(&list("cap_drop"), &list("cap_add")) {
        container.no_setuid = service.entry("cap_drop").map(YamlEntry::line);
    }
    container.other_init = flag("init").map(|flag| at(flag, "init: true"));
    container.other_pid_1 = service.entry("pid").map(|pid| at(pid, "pid"));
    container.lifetime = match keys::restart_policy(service) {
        Some((policy, RestartPolicy::Always, _)) => at(policy, Lifetime::Service),
        Some((policy, ..)) => at(policy, Lifetime::Unknown),
        None => at(entry, Lifetime::Unknown),
    };
    container.probes =
        service.get("healthcheck").and_then(YamlNode::map).and_then(health_check).into_iter().collect();
    container
}

fn at<T>(entry: &YamlEntry, value: T) -> At<T> {
    At { line: entry.line(), value }
}

fn texts(list: &YamlNode) -> Vec<String> {
    list.list().into_iter().flatten().filter_map(YamlNode::text).map(str::to_owned).collect()
}

/// A list, or a line that Compose splits into words.
fn command(entry: &YamlEntry) -> Option<At<Vec<String>>> {
    let words = match entry.value.text() {
        Some(line) => split(line),
        None => entry.value.list().map(|_| texts(&entry.value))?,
    };
    Some(at(entry, words))
}

/// The variables whose values are in the file.
fn env(environment: &YamlNode) -> Vec<(String, String)> {
    let variables = keys::variables(environment);
    let known = variables.map().into_iter().flatten();
    known.filter_map(|entry| Some((entry.key.clone(), plain(&entry.value)?.to_owned()))).collect()
}

fn memory(service: &Map) -> Option<&YamlEntry> {
    service.entry("mem_limit").or_else(|| {
        service.get("deploy")?.get("resources")?.get("limits").and_then(YamlNode::map)?.entry("memory")
    })
}

fn mounts(service: &Map) -> Vec<Mount> {
    let mut mounts = Vec::new();
    let items = |key: &str| service.get(key).and_then(YamlNode::list).unwrap_or_default();
    let tmpfs = items("tmpfs").iter().chain(service.get("tmpfs")).filter_map(YamlNode::text);
    mounts.extend(
        tmpfs.map(|path| Mount {
            path: path.split(':').next().unwrap_or_default().to_owned(),
            writable: true,
        }),
    );
    for volume in items("volumes") {
        if let Some(target) = volume.get("target").and_then(YamlNode::text) {
            let writable = volume.get("read_only").and_then(YamlNode::flag) != Some(true);
            mounts.push(Mount { path: target.to_owned(), writable });
        } else if let Some(text) = volume.text() {
            let parts: Vec<&str> = text.split(':').collect();
            let (path, mode) = match parts.as_slice() {
                [path] | [_, path] => (*path, ""),
                [.., path, mode] => (*path, *mode),
                [] => continue,
            };
            let writable = !mode.split(',').any(|option| option == "ro");
            mounts.push(Mount { path: path.to_owned(), writable });
        }
    }
    for key in ["configs", "secrets"] {
        let targets = items(key).iter().filter_map(|one| one.get("target")?.text());
        mounts.extend(targets.map(|path| Mount { path: path.to_owned(), writable: false }));
    }
    mounts
}

fn health_check(check: &Map) -> Option<Probe> {
    let (test, words) = match keys::health_test(check) {
        HealthTest::Words(test, words) => {
            (test, words.iter().filter_map(YamlNode::text).map(str::to_owned).collect())
        }
        HealthTest::Line(test, line) => (test, shell(line.text()?)),
        HealthTest::OfImage | HealthTest::Disabled(_) | HealthTest::Invalid(_) => return None,
    };
    Some(Probe {
        name: "healthcheck".to_owned(),
        purpose: Purpose::Readiness,
        line: test.line(),
        action: ProbeAction::Exec(words),
        grace: None,
    })
}
