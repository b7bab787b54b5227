//! A minimal Consul agent: it registers and deregisters services and supports blocking queries.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http_request::{self, Request};

#[derive(Default)]
struct Services {
    /// By id: the name of the service and whether its check passes.
    known: BTreeMap<String, (String, bool)>,
    index: u64,
}

#[derive(Default)]
struct Shared {
    services: Mutex<Services>,
    changed: Condvar,
}

pub(crate) struct FakeConsul {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

impl FakeConsul {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared::default());
        // Index 0 would mean that there is no index.
        shared.services.lock().unwrap().index = 1;
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&server);
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

    /// The number of registered services in any state.
    pub(crate) fn count(&self) -> usize {
        self.shared.services.lock().unwrap().known.len()
    }
}

/// Handles the requests of one connection.
fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(Request { path, body }) = http_request::next(&mut reader)? {
        let (status, index, body) = respond(shared, &path, &body);
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} Word\r\nX-Consul-Index: {index}\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
    }
    Ok(())
}

fn respond(shared: &Shared, path: &str, body: &[u8]) -> (u16, u64, String) {
    let mut services = shared.services.lock().unwrap();
    let changed = |services: &mut Services| {
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
        return changed(&mut services);
    }
    if let Some(id) = path.strip_prefix("/v1/agent/service/deregister/") {
        services.known.remove(id);
        return changed(&mut services);
    }
    if let Some(id) = path.strip_prefix("/v1/agent/check/update/service%3A") {
        let passes = String::from_utf8_lossy(body).contains("passing");
        let Some(known) = services.known.get_mut(id) else {
            return (500, services.index, "Unknown check".to_owned());
        };
        let is_change = std::mem::replace(&mut known.1, passes) != passes;
        return if is_change { changed(&mut services) } else { (200, services.index, String::new()) };
    }
    let Some(query) = path.strip_prefix("/v1/health/service/") else {
        return (200, services.index, "[]".to_owned());
    };
    let (name, query) = query.split_once('?').unwrap_or((query, ""));
    let parameter = |key: &str| query.split('&').find_map(|part| part.strip_prefix(key));
    let index = parameter("index=").and_then(|index| index.parse().ok());
    if index == Some(services.index) {
        let wait = parameter("wait=").and_then(|wait| wait.strip_suffix("ms")?.parse().ok());
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
