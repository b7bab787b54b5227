//! A server that pretends to be a Consul agent and misbehaves in a chosen way.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::http_request::{self, Request};

/// How it handles a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Accepts the connection and never responds.
    Silent,
    /// Responds with a status and a body.
    Responds(u16, &'static str),
    /// Responds with bytes that are not HTTP.
    Garbage,
    /// Closes the connection in the middle of the body.
    HalfABody,
    /// Responds with status 200 and a body that is not JSON.
    NotJson,
    /// Behaves like an agent: keeps the set of registered services.
    Correct,
    /// Behaves like an agent, but cannot say what is registered under an id.
    NoLookUps(u16),
}

pub(crate) struct FakeAgent {
    pub(crate) address: String,
    requests: Arc<AtomicUsize>,
    behaviour: Arc<Mutex<Behaviour>>,
    services: Arc<Mutex<BTreeSet<String>>>,
}

impl FakeAgent {
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let agent = Self {
            address: listener.local_addr().unwrap().to_string(),
            requests: Arc::default(),
            behaviour: Arc::new(Mutex::new(behaviour)),
            services: Arc::default(),
        };
        let (behaviour, services, requests) =
            (Arc::clone(&agent.behaviour), Arc::clone(&agent.services), Arc::clone(&agent.requests));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let (behaviour, services, requests) =
                    (Arc::clone(&behaviour), Arc::clone(&services), Arc::clone(&requests));
                std::thread::spawn(move || drop(serve(stream, &behaviour, &services, &requests)));
            }
        });
        agent
    }

    pub(crate) fn change_to(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.services.lock().unwrap().contains(id)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Handles the requests of one connection.
fn serve(
    stream: TcpStream,
    behaviour: &Mutex<Behaviour>,
    services: &Mutex<BTreeSet<String>>,
    requests: &AtomicUsize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(Request { path, body }) = http_request::next(&mut reader)? {
        requests.fetch_add(1, Ordering::SeqCst);
        let behaviour = *behaviour.lock().unwrap();
        match behaviour {
            Behaviour::Silent => {
                // Returns when the client closes the connection.
                let _ = reader.read_line(&mut String::new());
                return Ok(());
            }
            Behaviour::Responds(status, words) => respond(&mut stream, status, words)?,
            Behaviour::Garbage => {
                stream.write_all(b"\x00\x01\xff GARBAGE \r\n\r\n\r\n")?;
                return Ok(());
            }
            Behaviour::HalfABody => {
                stream.write_all(
                    b"HTTP/1.1 200 OK\r\nX-Consul-Index: 9\r\nContent-Length: 1000\r\n\r\n[{\"Node\":",
                )?;
                return Ok(());
            }
            Behaviour::NotJson => respond(&mut stream, 200, "<html>Welcome!</html>")?,
            Behaviour::NoLookUps(status) if path.starts_with("/v1/agent/health/service/id/") => {
                respond(&mut stream, status, "no leader")?;
            }
            Behaviour::Correct | Behaviour::NoLookUps(_) => {
                respond_like_an_agent(&mut stream, &path, &body, services)?
            }
        }
    }
    Ok(())
}

fn respond_like_an_agent(
    stream: &mut TcpStream,
    path: &str,
    body: &[u8],
    services: &Mutex<BTreeSet<String>>,
) -> std::io::Result<()> {
    let mut services = services.lock().unwrap();
    if path == "/v1/agent/service/register" {
        let body: serde_json::Value = serde_json::from_slice(body)?;
        services.insert(body["ID"].as_str().unwrap_or_default().to_owned());
        respond(stream, 200, "")
    } else if let Some(id) = path.strip_prefix("/v1/agent/service/deregister/") {
        services.remove(id);
        respond(stream, 200, "")
    } else if let Some(id) = path.strip_prefix("/v1/agent/check/update/service%3A") {
        let known = services.contains(id);
        respond(stream, if known { 200 } else { 500 }, if known { "" } else { "Unknown check" })
    } else {
        // No blocking query and index 0: a watch must slow down by itself.
        respond(stream, 200, "[]")
    }
}

fn respond(stream: &mut TcpStream, status: u16, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} Word\r\nX-Consul-Index: 0\r\nContent-Length: {length}\r\n\r\n{body}")
}
