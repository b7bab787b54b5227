//! Consul's HTTP API for locks: sessions, keys and transactions (D14).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use containerpilot_api::percent_encoded;
use containerpilot_core::catalog::lock_requests::{LockOutcome, LockRequest, LockValue, Seen, SeenKey};
use containerpilot_core::inserted;
use containerpilot_core::plan::{LONGEST_TTL, Lock};
use hyper::Method;
use serde::{Deserialize, Serialize};

use super::client::ConsulResponse;

/// The longest lock delay that Consul accepts.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The flags by which `consul lock` knows its own keys, of one slot and of several.
const FLAGS: [u64; 2] = [0x2ddc_cbc0_58a5_0c18, 0xe0f6_9a2b_aa41_4de0];

/// Most keys below that of a semaphore, and most characters of the name of a holder.
const MAX_KEYS: usize = 4096;
const MAX_NAME: usize = 256;

/// An HTTP request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Bytes,
}

/// The HTTP request for a request about a lock. `holder` is the name of this supervisor for people.
pub(super) fn http_request(lock: &Lock, request: &LockRequest, session: &str, holder: &str) -> HttpRequest {
    let flags = FLAGS[usize::from(lock.slots > 1)];
    let key = percent_encoded(&lock.key);
    let main = if lock.slots > 1 { format!("/v1/kv/{key}/.lock") } else { format!("/v1/kv/{key}") };
    let value = |value: Value| json(&Value { ttl: milliseconds(lock.ttl), ..value });
    let held = Value { holder: Some(holder.to_owned()), ..Value::default() };
    let put = |path: String, body: Bytes| HttpRequest { method: Method::PUT, path, body };
    match request {
        LockRequest::CreateSession => put("/v1/session/create".to_owned(), session_body(lock, holder)),
        LockRequest::Renew => put(format!("/v1/session/renew/{session}"), Bytes::new()),
        LockRequest::DestroySession => put(format!("/v1/session/destroy/{session}"), Bytes::new()),
        LockRequest::Look { index, wait } => {
            let mut path = match lock.slots > 1 {
                true => format!("/v1/kv/{key}/?recurse=1&consistent=1"),
                false => format!("{main}?consistent=1"),
            };
            if let Some(index) = index {
                // Writing to a string cannot fail.
                let _ = write!(path, "&index={index}&wait={}ms", wait.as_millis().max(1));
            }
            HttpRequest { method: Method::GET, path, body: Bytes::new() }
        }
        LockRequest::Create => {
            let empty = match lock.slots > 1 {
                true => Value { incomplete: true, ..Value::list(lock, &[]) },
                false => Value::default(),
            };
            put(format!("{main}?cas=0&flags={flags}"), value(empty))
        }
        LockRequest::Acquire { index } => {
            let body = value(held);
            let operations = [
                Operation {
                    kv: KvOperation {
                        verb: "check-index",
                        key: &lock.key,
                        index: Some(*index),
                        ..KvOperation::default()
                    },
                },
                Operation {
                    kv: KvOperation {
                        verb: "lock",
                        key: &lock.key,
                        value: Some(BASE64.encode(&body)),
                        flags: Some(flags),
                        session: Some(session),
                        ..KvOperation::default()
                    },
                },
            ];
            put("/v1/txn".to_owned(), json(&operations))
        }
        LockRequest::Contend => {
            put(format!("/v1/kv/{key}/{session}?acquire={session}&flags={flags}"), value(held))
        }
        LockRequest::SetHolders { index, holders, incomplete } => {
            let list = Value { incomplete: *incomplete, ..Value::list(lock, holders) };
            put(format!("{main}?cas={index}&flags={flags}"), value(list))
        }
        LockRequest::Release => {
            let released = Value { released: true, ..Value::default() };
            put(format!("{main}?release={session}&flags={flags}"), value(released))
        }
    }
}

/// What a response means; `None` if it is an error, or not valid.
pub(super) fn outcome(lock: &Lock, request: &LockRequest, response: &ConsulResponse) -> Option<LockOutcome> {
    let text = || String::from_utf8_lossy(&response.body);
    match (request, response.status) {
        (LockRequest::CreateSession, 200) => {
            let created: Created = serde_json::from_slice(&response.body).ok()?;
            // It becomes a part of paths.
            let is_id = !created.id.is_empty()
                && created.id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
            is_id.then_some(LockOutcome::Created(created.id))
        }
        (LockRequest::Look { .. }, 200) => seen(lock, response.index?, &response.body).map(LockOutcome::Seen),
        (LockRequest::Look { .. }, 404) => {
            Some(LockOutcome::Seen(Seen { index: response.index?, ..Seen::default() }))
        }
        (LockRequest::Renew, 200) => Some(LockOutcome::Done(true)),
        (LockRequest::Renew, 404) => Some(LockOutcome::NoSession),
        (LockRequest::Acquire { .. }, 200) => Some(LockOutcome::Done(true)),
        (_, 200) => match text().trim() {
            "true" => Some(LockOutcome::Done(true)),
            "false" => Some(LockOutcome::Done(false)),
            _ => None,
        },
        (LockRequest::Acquire { .. } | LockRequest::Contend, 409 | 500)
            if text().to_ascii_lowercase().contains("invalid session") =>
        {
            Some(LockOutcome::NoSession)
        }
        // The key was changed, another session has locked it, or the lock delay has not passed.
        (LockRequest::Acquire { .. }, 409) => Some(LockOutcome::Done(false)),
        _ => None,
    }
}

fn session_body(lock: &Lock, holder: &str) -> Bytes {
    json(&Session {
        name: format!("containerpilot lock {} of {holder}", lock.name),
        ttl: format!("{}ms", milliseconds(lock.ttl)),
        // A contender key is useless without its session. A key that stays shows when it was unlocked.
        behavior: if lock.slots > 1 { "delete" } else { "release" },
        lock_delay: format!("{}ms", milliseconds(lock.ttl.min(LONGEST_DELAY))),
    })
}

fn seen(lock: &Lock, index: u64, body: &[u8]) -> Option<Seen> {
    let entries: Vec<Entry> = serde_json::from_slice(body).ok()?;
    if entries.len() > MAX_KEYS {
        return None;
    }
    let main = if lock.slots > 1 { format!("{}/.lock", lock.key) } else { lock.key.clone() };
    let contender = |entry: &Entry| {
        let session = entry.session.as_ref()?;
        let name = entry.key.strip_prefix(&lock.key)?.strip_prefix('/')?;
        (name == session).then(|| session.clone())
    };
    let contenders = entries.iter().filter_map(contender).collect();
    let key = entries.into_iter().find(|entry| entry.key == main).map(Entry::seen);
    Some(Seen { index, key, contenders })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn json(body: &impl Serialize) -> Bytes {
    // Serializing these types to memory cannot fail: their keys are strings.
    serde_json::to_vec(body).unwrap_or_default().into()
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Session {
    name: String,
    #[serde(rename = "TTL")]
    ttl: String,
    behavior: &'static str,
    lock_delay: String,
}

#[derive(Deserialize)]
struct Created {
    #[serde(rename = "ID")]
    id: String,
}

#[derive(Serialize)]
struct Operation<'a> {
    #[serde(rename = "KV")]
    kv: KvOperation<'a>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct KvOperation<'a> {
    verb: &'static str,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

/// A key as Consul shows it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    key: String,
    create_index: u64,
    modify_index: u64,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    value: Option<String>,
}

impl Entry {
    fn seen(self) -> SeenKey {
        let value = self.value.as_deref().and_then(|value| BASE64.decode(value).ok());
        let value: Option<Value> = value.and_then(|value| serde_json::from_slice(&value).ok());
        SeenKey {
            created: self.create_index,
            modified: self.modify_index,
            session: self.session.filter(|session| !session.is_empty()),
            value: value.map(LockValue::from).unwrap_or_default(),
        }
    }
}

/// The value of a key. `Limit` and `Holders` are those of `consul lock`.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase", default)]
struct Value {
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    /// In milliseconds.
    #[serde(rename = "TTL")]
    ttl: u64,
    #[serde(skip_serializing_if = "is_false")]
    released: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holders: Option<BTreeMap<String, bool>>,
    #[serde(skip_serializing_if = "is_false")]
    incomplete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Value {
    fn list(lock: &Lock, holders: &[String]) -> Self {
        let holders = inserted(holders.iter().map(|holder| (holder.clone(), true)));
        Self { limit: Some(lock.slots), holders: Some(holders), ..Self::default() }
    }
}

impl From<Value> for LockValue {
    fn from(value: Value) -> Self {
        let ttl = Duration::from_millis(value.ttl).min(LONGEST_TTL);
        Self {
            holder: value.holder.map(|name| name.chars().take(MAX_NAME).collect()),
            ttl: (!ttl.is_zero()).then_some(ttl),
            released: value.released,
            holders: value.holders.unwrap_or_default().into_keys().collect(),
            incomplete: value.incomplete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(slots: u32) -> Lock {
        Lock { name: "primary".into(), key: "a b/c".into(), ttl: Duration::from_secs(90), slots }
    }

    fn response(status: u16, body: &str) -> ConsulResponse {
        ConsulResponse { status, index: Some(7), body: body.to_owned().into() }
    }

    #[test]
    fn d14_requests_are_those_of_consuls_guides() {
        let leader = |request| {
            let http = http_request(&lock(1), &request, "s-1", "web-1");
            format!("{} {} {}", http.method, http.path, String::from_utf8_lossy(&http.body))
        };
        assert_eq!(
            leader(LockRequest::CreateSession),
            r#"PUT /v1/session/create {"Name":"containerpilot lock primary of web-1","TTL":"90000ms","Behavior":"release","LockDelay":"60000ms"}"#
        );
        assert_eq!(
            leader(LockRequest::Look { index: Some(3), wait: Duration::from_secs(2) }),
            "GET /v1/kv/a%20b%2Fc?consistent=1&index=3&wait=2000ms "
        );
        assert_eq!(
            leader(LockRequest::Release),
            r#"PUT /v1/kv/a%20b%2Fc?release=s-1&flags=3304740253564472344 {"TTL":90000,"Released":true}"#
        );
        let acquire = leader(LockRequest::Acquire { index: 5 });
        let check = r#"PUT /v1/txn [{"KV":{"Verb":"check-index","Key":"a b/c","Index":5}},{"KV":{"Verb":"lock","Key":"a b/c","Value":""#;
        assert!(acquire.starts_with(check), "{acquire}");
        let semaphore = http_request(
            &lock(2),
            &LockRequest::SetHolders { index: 4, holders: vec!["s-1".into()], incomplete: true },
            "s-1",
            "web-1",
        );
        assert_eq!(semaphore.path, "/v1/kv/a%20b%2Fc/.lock?cas=4&flags=16210313421097356768");
        assert_eq!(&*semaphore.body, br#"{"TTL":90000,"Limit":2,"Holders":{"s-1":true},"Incomplete":true}"#);
    }

    #[test]
    fn d14_responses_are_parsed() {
        let of =
            |request: LockRequest, status, body: &str| outcome(&lock(1), &request, &response(status, body));
        let acquire = || LockRequest::Acquire { index: 1 };
        let look = || LockRequest::Look { index: None, wait: Duration::ZERO };
        assert_eq!(
            of(LockRequest::CreateSession, 200, r#"{"ID":"ab-1"}"#),
            Some(LockOutcome::Created("ab-1".into()))
        );
        assert_eq!(of(LockRequest::CreateSession, 200, r#"{"ID":"../x"}"#), None);
        assert_eq!(of(LockRequest::Renew, 404, ""), Some(LockOutcome::NoSession));
        assert_eq!(of(LockRequest::Renew, 500, "No cluster leader"), None);
        assert_eq!(of(acquire(), 200, "{}"), Some(LockOutcome::Done(true)));
        assert_eq!(
            of(acquire(), 409, r#"{"Errors":[{"What":"current modify index"}]}"#),
            Some(LockOutcome::Done(false))
        );
        assert_eq!(
            of(acquire(), 409, r#"{"Errors":[{"What":"invalid session \"x\""}]}"#),
            Some(LockOutcome::NoSession)
        );
        assert_eq!(of(LockRequest::Release, 200, "false\n"), Some(LockOutcome::Done(false)));
        assert_eq!(of(LockRequest::Release, 200, "hello"), None);
        assert_eq!(of(look(), 404, ""), Some(LockOutcome::Seen(Seen { index: 7, ..Seen::default() })));
        assert_eq!(of(look(), 200, "{}"), None);
        let value = BASE64.encode(br#"{"Holder":"web-1","TTL":15000,"Released":false,"Other":1}"#);
        let body = format!(
            r#"[{{"Key":"a b/c","CreateIndex":2,"ModifyIndex":5,"Session":"s-1","Value":"{value}","LockIndex":1}}]"#
        );
        let Some(LockOutcome::Seen(seen)) = of(look(), 200, &body) else { panic!("{body}") };
        let key = seen.key.unwrap();
        assert_eq!((key.created, key.modified, key.session.as_deref()), (2, 5, Some("s-1")));
        assert_eq!(
            (key.value.holder.as_deref(), key.value.ttl),
            (Some("web-1"), Some(Duration::from_secs(15)))
        );
        // The value of another program is ignored.
        let body = r#"[{"Key":"a b/c","CreateIndex":2,"ModifyIndex":5,"Value":"aGVsbG8="}]"#;
        let Some(LockOutcome::Seen(seen)) = of(look(), 200, body) else { panic!("{body}") };
        assert_eq!(seen.key.unwrap().value, LockValue::default());
    }
}
