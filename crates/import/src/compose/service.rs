//! One service of a Compose file as a job.

use std::time::Duration;

use super::keys::{self, plain};
use crate::depends_on::{Condition, Dependency, Planned, Start};
use crate::document::{Document, Field, Fields, Value};
use crate::error::ImportError;
use crate::files::SourceLine;
use crate::merge::{beside, names_of_list};
use crate::variables::{self, Piece};
use crate::yaml::{Kind, Map, YamlEntry, YamlNode};

pub(super) const CONTAINER: &str = "belongs to the container";
pub(super) const WRITE_THE_VALUE: &str = "a variable is not possible here: write the value";

/// A job; `None` if there is no program to run.
pub(super) fn convert(
    entry: &YamlEntry,
    service: &Map,
    services: &Map,
    document: &mut Document,
) -> Result<Option<Planned>, ImportError> {
    let mut fields = Vec::new();
    if !exec(service, &mut fields)? {
        let why = "the command of its image is not known: write `command`, or run it in another container and use a watch";
        document.inexact(&entry.place(), why);
        return Ok(None);
    }
    let mut job = Converter {
        name: &entry.key,
        services,
        document,
        fields,
        depends: Vec::new(),
        groups: Vec::new(),
        manual: None,
        stop: Duration::ZERO,
    };
    for entry in service {
        if !entry.value.is_null() || entry.key == "init" {
            job.key(entry, service)?;
        }
    }
    let Converter { mut fields, depends, groups, manual, stop, .. } = job;
    if let Some(from) = manual.as_ref().filter(|_| !groups.is_empty()) {
        fields.set("groups", Value::List(groups), Some(from));
    }
    let start = manual.map_or(Start::AtStartup, |from| Start::Manual(Some(from)));
    Ok(Some(Planned { original: entry.key.clone(), from: entry.place(), fields, depends, start, stop }))
}

/// `entrypoint` and `command`. Returns false if there is neither.
fn exec(service: &Map, fields: &mut Vec<Field>) -> Result<bool, ImportError> {
    let empty = |entry: &YamlEntry| {
        entry.value.text().is_some_and(|text| text.trim().is_empty())
            || entry.value.list().is_some_and(<[YamlNode]>::is_empty)
    };
    let given = |key| service.entry(key).filter(|entry| !entry.value.is_null() && !empty(entry));
    match (given("entrypoint"), given("command")) {
        (None, None) => return Ok(false),
        (Some(one), None) | (None, Some(one)) => {
            let command = match one.value.text() {
                Some(_) => variables::command(pieces(&one.value)?).map_err(|why| one.value.error(why))?,
                None => Value::List(words(one)?),
            };
            fields.set("exec", command, Some(&one.place()));
        }
        (Some(entrypoint), Some(command)) => {
            let mut all = words(entrypoint)?;
            all.extend(words(command)?);
            fields.set_from("exec", Value::List(all), &[entrypoint.place(), command.place()]);
        }
    }
    Ok(true)
}

fn words(entry: &YamlEntry) -> Result<Vec<Value>, ImportError> {
    match entry.value.list() {
        Some(items) => items.iter().map(text).collect(),
        None => variables::words(pieces(&entry.value)?).map_err(|why| entry.value.error(why)),
    }
}

pub(super) fn pieces(node: &YamlNode) -> Result<Vec<Piece>, ImportError> {
    let Some(text) = node.text() else {
        return Err(node.error(format!("expected a text, not {}", node.what())));
    };
    variables::pieces(text).map_err(|why| node.error(why))
}

/// A text with its variables.
pub(super) fn text(node: &YamlNode) -> Result<Value, ImportError> {
    pieces(node).map(variables::value)
}

/// A number, or a text with variables that becomes one.
pub(super) fn number(node: &YamlNode) -> Result<Value, ImportError> {
    node.integer().map_or_else(|| text(node), |number| Ok(Value::Number(number.to_string())))
}

/// A value of the environment: numbers as Compose prints them.
fn env_value(node: &YamlNode) -> Result<Value, ImportError> {
    match (node.kind(), node.integer()) {
        (Some(Kind::Integer), Some(number)) => Ok(number.to_string().into()),
        (Some(Kind::Float), _) => {
            let number = node.text().and_then(|text| text.parse::<f64>().ok());
            Ok(number
                .map_or_else(|| node.text().unwrap_or_default().to_owned(), |number| number.to_string())
                .into())
        }
        _ => text(node),
    }
}

/// A path, which is relative to the file that names it.
fn path(node: &YamlNode) -> Result<Value, ImportError> {
    match plain(node) {
        Some(path) => Ok(beside(&node.place().file, path).into()),
        None => text(node),
    }
}

pub(super) struct Converter<'a> {
    name: &'a str,
    services: &'a Map,
    pub(super) document: &'a mut Document,
    pub(super) fields: Vec<Field>,
    depends: Vec<Dependency>,
    groups: Vec<Value>,
    pub(super) manual: Option<SourceLine>,
    stop: Duration,
}

impl Converter<'_> {
    pub(super) fn inexact(&mut self, entry: &YamlEntry, why: &str) {
        self.document.inexact(&entry.place(), why);
    }

    fn key(&mut self, entry: &YamlEntry, service: &Map) -> Result<(), ImportError> {
        let value = &entry.value;
        let from = Some(entry.place());
        let from = from.as_ref();
        match entry.key.as_str() {
            "command" | "entrypoint" | "extends" => {}
            "init" => self
                .document
                .not_needed(&entry.place(), "the supervisor reaps zombies and forwards stop signals"),
            "working_dir" => self.fields.set("cwd", text(value)?, from),
            "user" => self.user(entry)?,
            "stop_signal" => self.fields.set("stopSignal", text(value)?, from),
            "stop_grace_period" => match keys::duration(value) {
                Some(limit) => {
                    self.stop = limit;
                    self.fields.set("killAfter", limit.max(Duration::from_millis(1)), from);
                }
                None => self.inexact(entry, "write a duration such as `30s`"),
            },
            "environment" => self.environment(entry)?,
            "env_file" => self.env_file(entry)?,
            "restart" => self.restart(entry, service),
            "healthcheck" => self.health(entry)?,
            "depends_on" => self.depends_on(entry)?,
            "deploy" => self.deploy(entry, service)?,
            "scale" => self.replicas(entry)?,
            "profiles" => {
                let profiles = value.list().unwrap_or_default().iter().map(text);
                self.groups = profiles.collect::<Result<_, _>>()?;
                self.manual = (!self.groups.is_empty()).then(|| entry.place());
            }
            "ulimits" => self.limits(entry),
            "oom_score_adj" => self.fields.set("oomScoreAdj", number(value)?, from),
            "cap_drop" => self.capabilities(entry, service)?,
            "cap_add" if drops_all(service) => {}
            "security_opt" => {
                for option in value.list().unwrap_or_default() {
                    match option.text() {
                        Some("no-new-privileges" | "no-new-privileges:true" | "no-new-privileges=true") => {
                            self.fields.set("noNewPrivileges", true, Some(&option.place()));
                        }
                        _ => self.document.inexact(&option.place(), CONTAINER),
                    }
                }
            }
            "image" | "build" => {
                self.inexact(entry, "install its programs in the image of this container");
            }
            "tty" | "stdin_open" => match value.flag() {
                Some(false) => self.document.not_needed(&entry.place(), "this is the default"),
                _ => self.inexact(entry, "a job has no terminal, and `/dev/null` as stdin"),
            },
            "ports" | "expose" => self.inexact(entry, "belongs to the container: publish its ports"),
            "volumes" | "volumes_from" | "tmpfs" | "configs" | "secrets" => {
                self.inexact(entry, "belongs to the container: mount it there");
            }
            "logging" => self.inexact(entry, "belongs to the container: all jobs share its log"),
            "develop" => self.inexact(entry, "is for development only"),
            "post_start" => self.inexact(
                entry,
                &format!("write a job with `when: {{ source: \"{}\", once: \"healthy\" }}`", self.name),
            ),
            "pre_stop" => self.inexact(
                entry,
                &format!("write a job with `when: {{ source: \"{}\", once: \"stopping\" }}`", self.name),
            ),
            key if key.starts_with("x-") => {}
            key if OF_THE_CONTAINER.contains(&key) => self.inexact(entry, CONTAINER),
            _ => self.inexact(entry, "unknown key"),
        }
        Ok(())
    }

    fn user(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let from = entry.place();
        match plain(&entry.value).and_then(|text| text.split_once(':')) {
            Some((user, group)) => {
                self.fields.set("user", user, Some(&from));
                self.fields.set("group", group, Some(&from));
            }
            None => self.fields.set("user", text(&entry.value)?, Some(&from)),
        }
        Ok(())
    }

    fn environment(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let variables = names_of_list(&entry.value);
        let Some(map) = variables.map() else {
            return Err(entry.error("`environment` takes a mapping, or a list of `NAME=value`"));
        };
        let mut env = Vec::new();
        for variable in map {
            if variable.value.is_null() {
                self.document.not_needed(&variable.place(), "a job has all variables of the container");
            } else if !variable.key.is_empty() {
                env.set(&variable.key, env_value(&variable.value)?, Some(&variable.place()));
            }
        }
        if !env.is_empty() {
            self.fields.set("env", Value::Object(env), Some(&entry.place()));
        }
        Ok(())
    }

    fn env_file(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let mut files = Vec::new();
        for item in entry.value.list().unwrap_or(std::slice::from_ref(&entry.value)) {
            match item.map() {
                None => files.push(path(item)?),
                Some(map) => {
                    let Some(name) = map.get("path") else {
                        return Err(item.error("`env_file` needs `path`"));
                    };
                    let mut file = vec![Field::new("path", path(name)?)];
                    if map.get("required").and_then(YamlNode::flag) == Some(false) {
                        file.push(Field::new("optional", true));
                    }
                    for other in map.into_iter().filter(|e| !matches!(e.key.as_str(), "path" | "required")) {
                        self.inexact(other, "files of variables are in dotenv syntax");
                    }
                    files.push(match file.len() {
                        1 => path(name)?,
                        _ => Value::Object(file),
                    });
                }
            }
        }
        self.fields.set("envFile", Value::List(files), Some(&entry.place()));
        Ok(())
    }

    fn depends_on(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let names = names_of_list(&entry.value);
        let Some(map) = names.map() else {
            return Err(entry.error("`depends_on` takes a list or a mapping"));
        };
        for other in map {
            let condition = match other.value.get("condition").map(|node| node.text()) {
                None | Some(Some("service_started")) => Condition::Started,
                Some(Some("service_healthy")) => Condition::Healthy,
                Some(Some("service_completed_successfully")) => Condition::Succeeded,
                Some(_) => {
                    let message =
                        "a condition is service_started, service_healthy or service_completed_successfully";
                    return Err(other.error(message));
                }
            };
            let optional = !keys::is_required(other);
            if optional && self.services.get(&other.key).is_none() {
                self.document.not_needed(&other.place(), "there is no such service, and none is required");
                continue;
            }
            let bind = other.value.get("restart").and_then(YamlNode::flag) == Some(true);
            for key in other.value.map().into_iter().flatten() {
                if !matches!(key.key.as_str(), "condition" | "restart" | "required") {
                    self.inexact(key, "unknown key");
                }
            }
            self.depends.push(Dependency {
                on: other.key.clone(),
                condition,
                bind,
                optional,
                from: other.place(),
            });
        }
        Ok(())
    }

    fn limits(&mut self, entry: &YamlEntry) {
        const NAMES: [&str; 16] = [
            "as",
            "core",
            "cpu",
            "data",
            "fsize",
            "locks",
            "memlock",
            "msgqueue",
            "nice",
            "nofile",
            "nproc",
            "rss",
            "rtprio",
            "rttime",
            "sigpending",
            "stack",
        ];
        let number = |node: &YamlNode| match node.integer() {
            Some(-1) => Some(Value::from("unlimited")),
            Some(n) => u64::try_from(n).ok().map(Value::from),
            None => None,
        };
        let mut limits = Vec::new();
        for limit in entry.value.map().into_iter().flatten() {
            let both = (limit.value.get("soft").and_then(number), limit.value.get("hard").and_then(number));
            let value = match (number(&limit.value), both) {
                (Some(one), _) => Some(one),
                (None, (Some(soft), Some(hard))) => Some(Value::List(vec![soft, hard])),
                _ => None,
            };
            match value.filter(|_| NAMES.contains(&limit.key.as_str())) {
                Some(value) => limits.set(&limit.key, value, Some(&limit.place())),
                None => self.inexact(limit, "a limit is a number, or `soft` and `hard`"),
            }
        }
        if !limits.is_empty() {
            self.fields.set("limits", Value::Object(limits), Some(&entry.place()));
        }
    }

    fn capabilities(&mut self, entry: &YamlEntry, service: &Map) -> Result<(), ImportError> {
        if !drops_all(service) {
            self.inexact(entry, "belongs to the container; `capabilities` lists what a job keeps");
            return Ok(());
        }
        let added = service.entry("cap_add");
        let kept = added.and_then(|added| added.value.list()).unwrap_or_default();
        let kept = kept.iter().map(text).collect::<Result<_, _>>()?;
        let places: Vec<SourceLine> = std::iter::once(entry).chain(added).map(YamlEntry::place).collect();
        self.fields.set_from("capabilities", Value::List(kept), &places);
        Ok(())
    }
}

fn drops_all(service: &Map) -> bool {
    let dropped = service.get("cap_drop").and_then(YamlNode::list).unwrap_or_default();
    dropped.iter().any(|name| name.text().is_some_and(|name| name.eq_ignore_ascii_case("all")))
}

const OF_THE_CONTAINER: [&str; 59] = [
    "annotations",
    "attach",
    "blkio_config",
    "cap_add",
    "cgroup",
    "cgroup_parent",
    "container_name",
    "cpu_count",
    "cpu_percent",
    "cpu_period",
    "cpu_quota",
    "cpu_rt_period",
    "cpu_rt_runtime",
    "cpu_shares",
    "cpus",
    "cpuset",
    "credential_spec",
    "device_cgroup_rules",
    "devices",
    "dns",
    "dns_opt",
    "dns_search",
    "domainname",
    "external_links",
    "extra_hosts",
    "gpus",
    "group_add",
    "hostname",
    "ipc",
    "isolation",
    "label_file",
    "labels",
    "links",
    "mac_address",
    "mem_limit",
    "mem_reservation",
    "mem_swappiness",
    "memswap_limit",
    "models",
    "network_mode",
    "networks",
    "oom_kill_disable",
    "pid",
    "pids_limit",
    "platform",
    "privileged",
    "provider",
    "pull_policy",
    "pull_refresh_after",
    "read_only",
    "runtime",
    "shm_size",
    "stop_timeout",
    "storage_opt",
    "sysctls",
    "use_api_socket",
    "userns_mode",
    "uts",
    "volume_driver",
];
