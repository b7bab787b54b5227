//! A catalog that is as good as Consul for one service: it registers, forgets, and answers blocking queries.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http_request::{self, Request};

#[derive(Default)]
struct Services {
    /// Each with its name and whether it passes.
    known: BTreeMap<String, (String, bool)>,
    index: u64,
}

#[derive(Default)]
struct Shared {
    services: Mutex<Services>,
    changed: Condvar,
}

/// A catalog at an address of its own.
pub(crate) struct Catalog {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

impl Catalog {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared::default());
        // An index of 0 means that there is none.
        shared.services.lock().unwrap().index = 1;
        let ours = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&ours);
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { address, shared }
    }

    /// The names of the services that pass.
    pub(crate) fn passing(&self) -> Vec<String> {
        let services = self.shared.services.lock().unwrap();
        services.known.values().filter(|(_, passes)| *passes).map(|(name, _)| name.clone()).collect()
    }

    /// How many services there are, in whatever state.
    pub(crate) fn count(&self) -> usize {
        self.shared.services.lock().unwrap().known.len()
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(Request { path, body }) = http_request::next(&mut reader)? {
        let (status, index, body) = answer(shared, &path, &body);
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} Word\r\nX-Consul-Index: {index}\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
    }
    Ok(())
}

fn answer(shared: &Shared, path: &str, body: &[u8]) -> (u16, u64, String) {
    let mut services = shared.services.lock().unwrap();
    let done = |services: &mut Services| {
        services.index += 1;
        shared.changed.notify_all();
        (200, services.index, String::new())
    };
    if path == "/v1/agent/service/register" {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let passes = ["Check", "Checks"].iter().any(|key| {
            let check = &body[key];
            check["Status"] == "passing" || check[0]["Status"] == "passing"
        });
        services.known.insert(word(&body["ID"]), (word(&body["Name"]), passes));
        return done(&mut services);
    }
    if let Some(id) = path.strip_prefix("/v1/agent/service/deregister/") {
        services.known.remove(id);
        return done(&mut services);
    }
    if let Some(id) = path.strip_prefix("/v1/agent/check/update/service%3A") {
        let passes = String::from_utf8_lossy(body).contains("passing");
        let Some(known) = services.known.get_mut(id) else {
            return (500, services.index, "Unknown check".to_owned());
        };
        let changed = std::mem::replace(&mut known.1, passes) != passes;
        return if changed { done(&mut services) } else { (200, services.index, String::new()) };
    }
    let Some(query) = path.strip_prefix("/v1/health/service/") else {
        return (200, services.index, "[]".to_owned());
    };
    let (name, query) = query.split_once('?').unwrap_or((query, ""));
    let asked = |key: &str| query.split('&').find_map(|part| part.strip_prefix(key));
    let index = asked("index=").and_then(|index| index.parse().ok());
    if index == Some(services.index) {
        let wait = asked("wait=").and_then(|wait| wait.strip_suffix("ms")?.parse().ok());
        let wait = Duration::from_millis(wait.unwrap_or(1_000));
        let unchanged = |services: &mut Services| Some(services.index) == index;
        services = shared.changed.wait_timeout_while(services, wait, unchanged).unwrap().0;
    }
    let entries = services.known.iter().filter(|(_, (of, passes))| of == name && *passes);
    let entries: Vec<Value> = entries
        .map(|(id, _)| json!({ "Node": {}, "Service": { "ID": id, "Address": "127.0.0.1", "Port": 8080 } }))
        .collect();
    (200, services.index, Value::from(entries).to_string())
}
