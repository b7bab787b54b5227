//! Consul's HTTP API: paths, request bodies and responses (D3, D7).

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

use bytes::Bytes;
use containerpilot_api::percent_encoded;
use containerpilot_core::catalog::ownership::{Holder, MARK_KEY};
use containerpilot_core::catalog::watch_queries::Query;
use containerpilot_core::input::{Answer, Instance, WatchResult};
use containerpilot_core::inserted;
use containerpilot_core::plan::{Service, Status, TaggedAddress, Watch, WatchKind};
use containerpilot_core::sort_by;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use thiserror::Error;

use super::key_values;

pub(super) const REGISTER: &str = "/v1/agent/service/register";

pub(super) fn deregister_path(service: &Service) -> String {
    format!("/v1/agent/service/deregister/{}", percent_encoded(&service.id))
}

pub(super) fn update_path(service: &Service) -> String {
    format!("/v1/agent/check/update/{}", percent_encoded(&check_id(service)))
}

fn check_id(service: &Service) -> String {
    let prefix = if service.legacy_check { "" } else { "service:" };
    format!("{prefix}{}", service.id)
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Registration<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    name: &'a str,
    tags: &'a [String],
    port: u16,
    address: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tagged_addresses: BTreeMap<&'a str, ServiceAddress<'a>>,
    meta: BTreeMap<&'a str, &'a str>,
    enable_tag_override: bool,
    check: TtlCheck<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceAddress<'a> {
    address: &'a str,
    port: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TtlCheck<'a> {
    #[serde(rename = "CheckID")]
    check_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a String>,
    #[serde(rename = "TTL")]
    ttl: String,
    status: &'static str,
    notes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deregister_critical_service_after: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CheckUpdate {
    status: &'static str,
    output: &'static str,
}

/// The most pairs in the metadata of a service.
const MAX_META: usize = 64;

/// The body of a registration (D3), with the mark of this supervisor (D10).
pub(super) fn registration(service: &Service, mark: &str, status: Status) -> Bytes {
    let mut meta: BTreeMap<&str, &str> =
        inserted(service.meta.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    // Consul would refuse one more.
    if meta.len() < MAX_META {
        meta.insert(MARK_KEY, mark);
    }
    json(&Registration {
        id: &service.id,
        name: &service.name,
        tags: &service.tags,
        port: service.port,
        address: service.address.to_string(),
        tagged_addresses: tagged_addresses(service),
        meta,
        enable_tag_override: service.enable_tag_override,
        check: TtlCheck {
            check_id: check_id(service),
            name: service.legacy_check.then_some(&service.id),
            ttl: go_duration(service.ttl),
            status: status.name(),
            notes: format!("TTL for {} set by containerpilot", service.name),
            deregister_critical_service_after: service.deregister_critical_after.map(go_duration),
        },
    })
}

fn tagged_addresses(service: &Service) -> BTreeMap<&str, ServiceAddress<'_>> {
    let mut addresses = BTreeMap::new();
    for (name, TaggedAddress { address, port }) in &service.tagged_addresses {
        addresses.insert(name.as_str(), ServiceAddress { address, port: port.unwrap_or(service.port) });
    }
    addresses
}

/// The path of the look-up of a service id.
pub(super) fn look_up_path(service: &Service) -> String {
    format!("/v1/agent/health/service/id/{}", percent_encoded(&service.id))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LookUp {
    service: Option<EntryService>,
    #[serde(default)]
    checks: Option<Vec<LookUpCheck>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LookUpCheck {
    #[serde(rename = "CheckID")]
    check_id: String,
    #[serde(default)]
    node: String,
    status: String,
    #[serde(default)]
    output: String,
}

/// What the agent has under the id of a service (D10); nothing if the response does not describe a service.
pub(super) fn holder(service: &Service, response: &[u8]) -> Option<Holder> {
    let found: LookUp = serde_json::from_slice(response).ok()?;
    let registered = found.service?;
    let own_check = check_id(service);
    let check = found.checks.unwrap_or_default().into_iter().find(|check| check.check_id == own_check);
    let node = check.as_ref().map_or_else(String::new, |check| check.node.clone());
    let is_critical = check.as_ref().is_some_and(|check| check.status == "critical");
    // Consul sets this text when a TTL expires. A living supervisor with an unhealthy job sends another one.
    let is_expired = check.is_none_or(|check| is_critical && check.output.starts_with("TTL expired"));
    Some(Holder {
        mark: registered.meta.unwrap_or_default().remove(MARK_KEY),
        address: registered.address,
        port: u16::try_from(registered.port).unwrap_or(0),
        is_expired,
        is_critical,
        node,
    })
}

/// The body of a check update. The output is constant, because Consul replicates every change of it to its servers.
pub(super) fn update(status: Status) -> Bytes {
    let output = match status {
        Status::Passing => "ok",
        Status::Warning => "unknown",
        Status::Critical => "unhealthy",
    };
    json(&CheckUpdate { status: status.name(), output })
}

fn json(body: &impl Serialize) -> Bytes {
    // Serializing these types to memory cannot fail: their keys are strings.
    serde_json::to_vec(body).unwrap_or_default().into()
}

/// Texts of Consul before 1.11 about a service or check that is not registered, in lower case.
const NOT_REGISTERED: [&str; 4] =
    ["unknown check", "unknown service", "does not have associated ttl", "does not exist"];

/// Whether an error response means that the service or check is not registered. Consul answers 404 since 1.11, and
/// before that 500 with one of several texts.
pub(super) fn is_not_registered(status: u16, body: &[u8]) -> bool {
    match status {
        404 => true,
        500 => {
            let text = String::from_utf8_lossy(body).to_ascii_lowercase();
            NOT_REGISTERED.iter().any(|known| text.contains(known))
        }
        _ => false,
    }
}

/// The query of a watch. Only those in the catalog are queried.
pub(super) fn query_path(watch: &Watch, query: Query) -> String {
    let (mut path, tag, dc) = match &watch.kind {
        WatchKind::Key { key, dc } => (format!("{}?raw=1", key_values::path(key)), &None, dc),
        WatchKind::Prefix { prefix, dc } => (format!("{}?recurse=1", key_values::path(prefix)), &None, dc),
        WatchKind::Service { tag, dc } => {
            (format!("/v1/health/service/{}?passing=1", percent_encoded(&watch.name)), tag, dc)
        }
        WatchKind::Tcp { .. } | WatchKind::Http(_) | WatchKind::Dns { .. } | WatchKind::File { .. } => {
            return String::new();
        }
    };
    // Writing to a string cannot fail.
    if let Some(index) = query.index {
        let _ = write!(path, "&index={index}&wait={}ms", query.wait.as_millis().max(1));
    }
    for (key, value) in [("tag", tag), ("dc", dc)] {
        if let Some(value) = value {
            let _ = write!(path, "&{key}={}", percent_encoded(value));
        }
    }
    if query.index_is_enough && matches!(watch.kind, WatchKind::Service { .. }) {
        // No instance matches: the response is empty, with the same index. An agent before Consul 1.5 sends them all.
        path.push_str("&filter=Node.Node==%22%22");
    }
    path
}

/// The answer of a watch in a response. A key that does not exist has the status 404.
pub(super) fn answer(watch: &Watch, status: u16, body: &[u8]) -> WatchResult {
    match &watch.kind {
        WatchKind::Key { .. } | WatchKind::Prefix { .. } if status == 404 => Ok(Answer::Absent),
        WatchKind::Key { .. } => key_values::value(body),
        WatchKind::Prefix { prefix, .. } => key_values::entries(body, prefix),
        _ => instances(body).map(Answer::Instances).map_err(|error| error.to_string()),
    }
}

/// Most instances of a service, and most bytes of all of them.
const MAX_INSTANCES: usize = 16 * 1024;
const MAX_INSTANCE_BYTES: usize = 2 * 1024 * 1024;

/// Why a response is not a list of instances. The message never shows the response's content.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum InstancesError {
    #[error("the response is not valid JSON: {0}")]
    Syntax(String),
    #[error("the response is not a list of service instances")]
    Form,
    #[error("the response has too many instances for one service")]
    TooMany,
}

/// An entry of `/v1/health/service/NAME`. Unknown fields are skipped without being stored.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    node: Option<Node>,
    service: EntryService,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    #[serde(default)]
    address: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EntryService {
    #[serde(rename = "ID")]
    id: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    port: i64,
    // Consul writes an empty list or map as null.
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    meta: Option<BTreeMap<String, String>>,
}

impl Entry {
    /// The instance; `None` if neither the service nor its node has an address.
    fn instance(self) -> Option<Instance> {
        let own = Some(self.service.address).filter(|address| !address.is_empty());
        Some(Instance {
            id: self.service.id,
            address: own.or_else(|| Some(self.node?.address)).filter(|address| !address.is_empty())?,
            // Consul accepts any number. One that is not a port cannot be connected to.
            port: u16::try_from(self.service.port).unwrap_or(0),
            tags: self.service.tags.unwrap_or_default(),
            meta: self.service.meta.unwrap_or_default(),
        })
    }
}

/// The instances in a response, sorted and without duplicates. They are parsed one by one, so that a hostile response
/// needs no more memory than its own length and the instances that are kept.
pub(super) fn instances(body: &[u8]) -> Result<Vec<Instance>, InstancesError> {
    let mut too_many = false;
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let parsed = deserializer.deserialize_seq(InstanceList { too_many: &mut too_many });
    let parsed = parsed.and_then(|instances| deserializer.end().map(|()| instances));
    let mut instances = parsed.map_err(|error| match error.classify() {
        _ if too_many => InstancesError::TooMany,
        // The text of a data error would repeat the content.
        Category::Data => InstancesError::Form,
        Category::Syntax | Category::Eof | Category::Io => InstancesError::Syntax(error.to_string()),
    })?;
    sort_by(&mut instances, Ord::cmp);
    instances.dedup();
    Ok(instances)
}

/// The bytes of an instance's texts. Each tag counts for more than its text, because an empty one needs memory, too.
fn size(instance: &Instance) -> usize {
    const TEXT: usize = 32;
    let tags = instance.tags.iter().map(|tag| tag.len() + TEXT);
    let meta = instance.meta.iter().map(|(key, value)| key.len() + value.len() + 2 * TEXT);
    instance.id.len() + instance.address.len() + tags.sum::<usize>() + meta.sum::<usize>()
}

struct InstanceList<'a> {
    too_many: &'a mut bool,
}

impl<'de> Visitor<'de> for InstanceList<'_> {
    type Value = Vec<Instance>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of instances")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Instance>, A::Error> {
        let mut instances = Vec::new();
        let mut bytes = 0_usize;
        while let Some(entry) = list.next_element::<Entry>()? {
            let instance = entry.instance().ok_or_else(|| A::Error::custom("no address"))?;
            bytes = bytes.saturating_add(size(&instance));
            if bytes > MAX_INSTANCE_BYTES || instances.len() >= MAX_INSTANCES {
                *self.too_many = true;
                return Err(A::Error::custom("too many"));
            }
            instances.push(instance);
        }
        Ok(instances)
    }
}

/// A duration that Go can parse.
fn go_duration(time: Duration) -> String {
    if time.subsec_nanos() == 0 { format!("{}s", time.as_secs()) } else { format!("{}ns", time.as_nanos()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn service() -> Service {
        Service {
            name: "web".into(),
            id: "web-box 1".into(),
            address: [10, 0, 0, 7].into(),
            port: 8080,
            tagged_addresses: [
                ("lan".to_owned(), TaggedAddress { address: "10.0.0.7".into(), port: None }),
                ("wan".to_owned(), TaggedAddress { address: "web.example".into(), port: Some(80) }),
            ]
            .into(),
            tags: vec!["a".into()],
            meta: [("k".to_owned(), "v".to_owned())].into(),
            ttl: Duration::from_millis(1500),
            initial_status: None,
            legacy_check: false,
            enable_tag_override: true,
            deregister_critical_after: Some(Duration::from_secs(600)),
        }
    }

    #[test]
    fn d3_a_registration_carries_the_service_and_its_ttl_check() {
        let body: Value = serde_json::from_slice(&registration(&service(), "f00d", Status::Warning)).unwrap();
        let expected = json!({
            "ID": "web-box 1", "Name": "web", "Tags": ["a"], "Port": 8080, "Address": "10.0.0.7",
            "TaggedAddresses": {
                "lan": { "Address": "10.0.0.7", "Port": 8080 }, "wan": { "Address": "web.example", "Port": 80 },
            },
            "Meta": { "k": "v", "containerpilot-instance": "f00d" }, "EnableTagOverride": true,
            "Check": {
                "CheckID": "service:web-box 1", "TTL": "1500000000ns", "Status": "warning",
                "Notes": "TTL for web set by containerpilot", "DeregisterCriticalServiceAfter": "600s",
            },
        });
        assert_eq!(body, expected);
        assert_eq!(update_path(&service()), "/v1/agent/check/update/service%3Aweb-box%201");
        assert_eq!(deregister_path(&service()), "/v1/agent/service/deregister/web-box%201");
        let legacy = Service { legacy_check: true, ..service() };
        let body: Value = serde_json::from_slice(&registration(&legacy, "f00d", Status::Warning)).unwrap();
        assert_eq!((&body["Check"]["CheckID"], &body["Check"]["Name"]), (&body["ID"], &body["ID"]));
        assert_eq!(update_path(&legacy), "/v1/agent/check/update/web-box%201");
    }

    #[test]
    fn d10_a_look_up_tells_who_holds_an_id() {
        let response = |meta: &str, check: &str| {
            let text = format!(
                r#"{{"AggregatedStatus": "critical", "Service": {{"ID": "web-box 1", "Address": "10.0.0.8", "Port": 80,
                "Meta": {meta}}}, "Checks": [{{"CheckID": "serfHealth", "Status": "critical", "Output": "TTL expired"}}{check}]}}"#
            );
            holder(&service(), text.as_bytes())
        };
        let check = |status: &str, output: &str| {
            format!(
                r#", {{"Node": "box", "CheckID": "service:web-box 1", "Status": "{status}", "Output": "{output}"}}"#
            )
        };
        let held = |mark: Option<&str>, is_expired| {
            let (mark, address) = (mark.map(str::to_owned), "10.0.0.8".into());
            Some(Holder { mark, address, port: 80, is_expired, is_critical: false, node: "box".into() })
        };
        let critical = |holder: Option<Holder>| Some(Holder { is_critical: true, ..holder? });
        let marked = r#"{"containerpilot-instance": "f00d"}"#;
        assert_eq!(response(marked, &check("passing", "ok")), held(Some("f00d"), false));
        assert_eq!(response(marked, &check("critical", "unhealthy")), critical(held(Some("f00d"), false)));
        assert_eq!(response(marked, &check("critical", "TTL expired")), critical(held(Some("f00d"), true)));
        let unchecked = held(Some("f00d"), true).map(|holder| Holder { node: String::new(), ..holder });
        assert_eq!(response(marked, ""), unchecked);
        assert_eq!(response("null", &check("passing", "ok")), held(None, false));
        for nothing in ["", "{}", "[]", "Permission denied", r#"{"Service": null, "Checks": null}"#] {
            assert_eq!(holder(&service(), nothing.as_bytes()), None, "{nothing}");
        }
    }

    #[test]
    fn d5_responses_about_an_unregistered_service_are_recognized() {
        assert!(is_not_registered(500, br#"CheckID "service:web-box" does not have associated TTL"#));
        assert!(is_not_registered(500, b"Unknown check \"service:web-box\""));
        assert!(is_not_registered(404, br#"Unknown check ID "service:web-box"."#));
        assert!(!is_not_registered(500, b"No cluster leader"));
        assert!(!is_not_registered(403, b"Permission denied"));
    }

    #[test]
    fn d7_queries_are_encoded_and_responses_parsed() {
        let watch = Watch {
            name: "db".into(),
            interval: Duration::from_secs(1),
            kind: WatchKind::Service { tag: Some("a&b".into()), dc: Some("ams".into()) },
        };
        let query = Query { index: Some(7), wait: Duration::from_millis(900), index_is_enough: false };
        let path = "/v1/health/service/db?passing=1&index=7&wait=900ms&tag=a%26b&dc=ams";
        assert_eq!(query_path(&watch, query), path);
        let query = Query { index_is_enough: true, ..query };
        assert_eq!(query_path(&watch, query), format!("{path}&filter=Node.Node==%22%22"));
        let body = br#"[{"Node": {"Address": "10.0.0.2"}, "Service": {"ID": "db-2", "Address": "", "Port": 5432}},
            {"Node": {"Address": "10.0.0.1"}, "Service": {"ID": "db-1", "Address": "db.example", "Port": 1, "New": []}}]"#;
        let found = instances(body).unwrap();
        let parts: Vec<_> =
            found.iter().map(|one| (one.id.as_str(), one.address.as_str(), one.port)).collect();
        assert_eq!(parts, [("db-1", "db.example", 1), ("db-2", "10.0.0.2", 5432)]);
        for form in
            ["{}", "[1]", "[{\"Service\": {}}]", "null", "\"hunter2\"", r#"[{"Service": {"ID": "hunter2"}}]"#]
        {
            assert_eq!(instances(form.as_bytes()), Err(InstancesError::Form), "{form}");
        }
        for syntax in ["", "[", "[] hunter2"] {
            let error = instances(syntax.as_bytes()).unwrap_err();
            assert!(matches!(error, InstancesError::Syntax(_)), "{syntax}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn d7_responses_beyond_the_limits_are_refused() {
        let one = |id: &str| format!(r#"{{"Service": {{"ID": "{id}", "Address": "a"}}}}"#);
        let many = |count: usize| {
            let all: Vec<String> = (0..count).map(|nth| one(&nth.to_string())).collect();
            format!("[{}]", all.join(","))
        };
        assert_eq!(instances(many(MAX_INSTANCES).as_bytes()).unwrap().len(), MAX_INSTANCES);
        assert_eq!(instances(many(MAX_INSTANCES + 1).as_bytes()), Err(InstancesError::TooMany));
        let long = one(&"x".repeat(MAX_INSTANCE_BYTES / 4));
        let long = format!("[{long},{long},{long},{long},{long}]");
        assert_eq!(instances(long.as_bytes()), Err(InstancesError::TooMany));
        let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
        assert!(instances(deep.as_bytes()).is_err());
        let deep = format!("[{{\"Extra\": {}{}}}]", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(
            instances(deep.as_bytes()),
            Err(InstancesError::Form),
            "nothing is nested while it is skipped"
        );
    }
}
