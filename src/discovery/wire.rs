//! What is said to Consul and what it answers, word for word (D3, D7).

use std::fmt::{self, Write};
use std::time::Duration;

use bytes::Bytes;
use containerpilot_core::catalog::follow::Query;
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Service, Status, Watch};
use serde_core::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The path that registers a service.
pub(super) const REGISTER: &str = "/v1/agent/service/register";

/// The path that takes a service out.
pub(super) fn deregister_path(service: &Service) -> String {
    format!("/v1/agent/service/deregister/{}", escaped(&service.id))
}

/// The path that tells a status.
pub(super) fn update_path(service: &Service) -> String {
    format!("/v1/agent/check/update/{}", escaped(&check_id(service)))
}

fn check_id(service: &Service) -> String {
    format!("service:{}", service.id)
}

/// What is registered (D3).
pub(super) fn registration(service: &Service, status: Status) -> Bytes {
    let mut check = json!({
        "CheckID": check_id(service),
        "TTL": span(service.ttl),
        "Status": word(status),
        "Notes": format!("TTL for {} set by containerpilot", service.name),
    });
    if let (Some(after), Value::Object(check)) = (service.deregister_critical_after, &mut check) {
        check.insert("DeregisterCriticalServiceAfter".to_owned(), span(after).into());
    }
    let mut meta = Map::new();
    for (key, value) in &service.meta {
        meta.insert(key.clone(), value.clone().into());
    }
    let registration = json!({
        "ID": service.id,
        "Name": service.name,
        "Tags": service.tags,
        "Port": service.port,
        "Address": service.address.to_string(),
        "Meta": meta,
        "EnableTagOverride": service.enable_tag_override,
        "Check": check,
    });
    registration.to_string().into()
}

/// What is told of a status. The words never change, because Consul passes every change of them on to its servers.
pub(super) fn update(status: Status) -> Bytes {
    let output = match status {
        Status::Passing => "ok",
        Status::Warning => "not known yet",
        Status::Critical => "not healthy",
    };
    json!({ "Status": word(status), "Output": output }).to_string().into()
}

const fn word(status: Status) -> &'static str {
    match status {
        Status::Passing => "passing",
        Status::Warning => "warning",
        Status::Critical => "critical",
    }
}

/// Whether an answer means that there is no such service or check. Consul says it in several ways: 404 since 1.11, and
/// before that 500 and some words.
pub(super) fn is_forgotten(status: u16, body: &[u8]) -> bool {
    let words = String::from_utf8_lossy(body).to_ascii_lowercase();
    let known = ["unknown check", "unknown service", "does not have associated ttl", "does not exist"];
    status == 404 || (status == 500 && known.iter().any(|text| words.contains(text)))
}

/// The question for a watch's instances.
pub(super) fn query_path(watch: &Watch, query: Query) -> String {
    let mut path = format!("/v1/health/service/{}?passing=1", escaped(&watch.name));
    // Writing to a string cannot fail.
    if let Some(index) = query.index {
        let _ = write!(path, "&index={index}&wait={}ms", query.wait.as_millis().max(1));
    }
    for (key, value) in [("tag", &watch.tag), ("dc", &watch.dc)] {
        if let Some(value) = value {
            let _ = write!(path, "&{key}={}", escaped(value));
        }
    }
    path
}

/// The most instances that one service may have, the most that may be said of one of them, and the most that is kept of
/// all. An agent's own answers are cut off earlier by their length, for it says half a kilobyte at least of each.
const MOST_INSTANCES: usize = 16 * 1024;
const MOST_SAID: usize = 1024 * 1024;
const MOST_KEPT: usize = 2 * 1024 * 1024;

/// The instances in an answer, in order; why not, if it is not one of Consul's. They are read one by one, so that an answer
/// takes no more memory than its length and what is kept of it.
pub(super) fn instances(body: &[u8]) -> Result<Vec<Instance>, String> {
    let mut why = "its answer is no list of instances";
    let mut from = serde_json::Deserializer::from_slice(body);
    let read = from.deserialize_seq(Instances { why: &mut why });
    let read = read.and_then(|instances| from.end().map(|()| instances));
    let mut instances = read.map_err(|error| match error.classify() {
        // The parser's own words would repeat what stands there, however long it is.
        Category::Data => why.to_owned(),
        Category::Syntax | Category::Eof | Category::Io => format!("its answer is no JSON: {error}"),
    })?;
    instances.sort();
    instances.dedup();
    Ok(instances)
}

/// Reads a list of instances. What is wrong with one of them is told beside the error, which cannot carry it.
struct Instances<'a> {
    why: &'a mut &'static str,
}

impl<'de> Visitor<'de> for Instances<'_> {
    type Value = Vec<Instance>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of instances")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Instance>, A::Error> {
        let mut instances = Vec::new();
        let mut kept = 0_usize;
        *self.why = "its answer holds something that is no instance";
        while let Some(entry) = list.next_element::<&RawValue>()? {
            let said = entry.get();
            let value = (said.len() <= MOST_SAID).then(|| serde_json::from_str::<Value>(said));
            let found = value.and_then(Result::ok).as_ref().and_then(instance);
            let found = found.ok_or_else(|| A::Error::custom("no instance"))?;
            kept = kept.saturating_add(found.id.len()).saturating_add(found.address.len());
            if kept > MOST_KEPT || instances.len() >= MOST_INSTANCES {
                *self.why = "its answer has more instances than a service may have";
                return Err(A::Error::custom("too many"));
            }
            instances.push(found);
        }
        Ok(instances)
    }
}

fn instance(entry: &Value) -> Option<Instance> {
    let service = entry.get("Service")?;
    let own = service.get("Address").and_then(Value::as_str).filter(|address| !address.is_empty());
    let node = || entry.get("Node")?.get("Address")?.as_str();
    Some(Instance {
        id: service.get("ID")?.as_str()?.to_owned(),
        address: own.or_else(node)?.to_owned(),
        // Consul takes any number; what is no port is nothing that could be reached.
        port: service
            .get("Port")
            .and_then(Value::as_u64)
            .and_then(|port| u16::try_from(port).ok())
            .unwrap_or(0),
    })
}

/// A time as Go reads it.
fn span(time: Duration) -> String {
    if time.subsec_nanos() == 0 { format!("{}s", time.as_secs()) } else { format!("{}ns", time.as_nanos()) }
}

/// A text as part of a path or a query.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service {
            name: "web".into(),
            id: "web-box 1".into(),
            address: [10, 0, 0, 7].into(),
            port: 8080,
            tags: vec!["a".into()],
            meta: [("k".to_owned(), "v".to_owned())].into(),
            ttl: Duration::from_millis(1500),
            initial_status: None,
            enable_tag_override: true,
            deregister_critical_after: Some(Duration::from_secs(600)),
        }
    }

    #[test]
    fn d3_what_is_registered() {
        let body: Value = serde_json::from_slice(&registration(&service(), Status::Warning)).unwrap();
        let expected = json!({
            "ID": "web-box 1", "Name": "web", "Tags": ["a"], "Port": 8080, "Address": "10.0.0.7",
            "Meta": { "k": "v" }, "EnableTagOverride": true,
            "Check": {
                "CheckID": "service:web-box 1", "TTL": "1500000000ns", "Status": "warning",
                "Notes": "TTL for web set by containerpilot", "DeregisterCriticalServiceAfter": "600s",
            },
        });
        assert_eq!(body, expected);
        assert_eq!(update_path(&service()), "/v1/agent/check/update/service%3Aweb-box%201");
        assert_eq!(deregister_path(&service()), "/v1/agent/service/deregister/web-box%201");
    }

    #[test]
    fn d5_how_consul_says_that_it_has_forgotten() {
        assert!(is_forgotten(500, br#"CheckID "service:web-box" does not have associated TTL"#));
        assert!(is_forgotten(500, b"Unknown check \"service:web-box\""));
        assert!(is_forgotten(404, br#"Unknown check ID "service:web-box"."#));
        assert!(!is_forgotten(500, b"No cluster leader"));
        assert!(!is_forgotten(403, b"Permission denied"));
    }

    #[test]
    fn d7_what_is_asked_and_what_is_understood() {
        let watch = Watch {
            name: "db".into(),
            interval: Duration::from_secs(1),
            tag: Some("a&b".into()),
            dc: Some("ams".into()),
        };
        let query = Query { index: Some(7), wait: Duration::from_millis(900) };
        assert_eq!(
            query_path(&watch, query),
            "/v1/health/service/db?passing=1&index=7&wait=900ms&tag=a%26b&dc=ams"
        );
        let body = br#"[{"Node": {"Address": "10.0.0.2"}, "Service": {"ID": "db-2", "Address": "", "Port": 5432}},
            {"Node": {"Address": "10.0.0.1"}, "Service": {"ID": "db-1", "Address": "db.example", "Port": 1, "New": []}}]"#;
        let found = instances(body).unwrap();
        let parts: Vec<_> =
            found.iter().map(|one| (one.id.as_str(), one.address.as_str(), one.port)).collect();
        assert_eq!(parts, [("db-1", "db.example", 1), ("db-2", "10.0.0.2", 5432)]);
        for bad in ["", "{}", "[1]", "[{\"Service\": {}}]", "[", "null"] {
            assert!(instances(bad.as_bytes()).is_err(), "{bad}");
        }
        let words = |body: &[u8]| instances(body).unwrap_err();
        assert_eq!(
            words(br#"[{"Service": {"ID": "hunter2"}}]"#),
            "its answer holds something that is no instance"
        );
        assert_eq!(words(br#""hunter2""#), "its answer is no list of instances");
        assert!(words(b"[] hunter2").starts_with("its answer is no JSON: trailing characters"));
    }

    #[test]
    fn d7_what_no_agent_says_is_refused_whatever_its_size() {
        let one = |id: &str| format!(r#"{{"Service": {{"ID": "{id}", "Address": "a"}}}}"#);
        let many = |count: usize| {
            let all: Vec<String> = (0..count).map(|nth| one(&nth.to_string())).collect();
            format!("[{}]", all.join(","))
        };
        assert_eq!(instances(many(MOST_INSTANCES).as_bytes()).unwrap().len(), MOST_INSTANCES);
        let too_many = "its answer has more instances than a service may have";
        assert_eq!(instances(many(MOST_INSTANCES + 1).as_bytes()).unwrap_err(), too_many);
        let long = one(&"x".repeat(MOST_SAID / 2));
        let long = format!("[{long},{long},{long},{long},{long}]");
        assert_eq!(instances(long.as_bytes()).unwrap_err(), too_many);
        let no_instance = "its answer holds something that is no instance";
        assert_eq!(
            instances(format!("[{}]", one(&"x".repeat(MOST_SAID))).as_bytes()).unwrap_err(),
            no_instance
        );
        let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(instances(deep.as_bytes()).unwrap_err(), no_instance);
    }
}
