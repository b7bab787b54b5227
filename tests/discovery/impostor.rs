//! Things that listen where an agent should, and are none.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::http_request::{self, Request};

/// What one does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It takes the connection and never says anything.
    Silent,
    /// It answers with a status and some words.
    Says(u16, &'static str),
    /// It answers something that is not HTTP.
    Garbage,
    /// It begins an answer and goes away.
    HalfABody,
    /// It answers 200, and what should be JSON is none.
    NoJson,
    /// It is as good as an agent: it knows which services were registered.
    Good,
}

/// A listener that behaves as it is told.
pub(crate) struct Impostor {
    pub(crate) address: String,
    pub(crate) asked: Arc<AtomicUsize>,
    manner: Arc<Mutex<Manner>>,
    services: Arc<Mutex<BTreeSet<String>>>,
}

impl Impostor {
    pub(crate) fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let impostor = Self {
            address: listener.local_addr().unwrap().to_string(),
            asked: Arc::default(),
            manner: Arc::new(Mutex::new(manner)),
            services: Arc::default(),
        };
        let (manner, services, asked) =
            (Arc::clone(&impostor.manner), Arc::clone(&impostor.services), Arc::clone(&impostor.asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let (manner, services, asked) =
                    (Arc::clone(&manner), Arc::clone(&services), Arc::clone(&asked));
                std::thread::spawn(move || drop(serve(stream, &manner, &services, &asked)));
            }
        });
        impostor
    }

    pub(crate) fn becomes(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.services.lock().unwrap().contains(id)
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Answers the requests of one connection.
fn serve(
    stream: TcpStream,
    manner: &Mutex<Manner>,
    services: &Mutex<BTreeSet<String>>,
    asked: &AtomicUsize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(Request { path, body }) = http_request::next(&mut reader)? {
        asked.fetch_add(1, Ordering::SeqCst);
        let manner = *manner.lock().unwrap();
        match manner {
            Manner::Silent => {
                // Until the other one gives up.
                let _ = reader.read_line(&mut String::new());
                return Ok(());
            }
            Manner::Says(status, words) => answer(&mut stream, status, words)?,
            Manner::Garbage => {
                stream.write_all(b"\x00\x01\xff GARBAGE \r\n\r\n\r\n")?;
                return Ok(());
            }
            Manner::HalfABody => {
                stream.write_all(
                    b"HTTP/1.1 200 OK\r\nX-Consul-Index: 9\r\nContent-Length: 1000\r\n\r\n[{\"Node\":",
                )?;
                return Ok(());
            }
            Manner::NoJson => answer(&mut stream, 200, "<html>Welcome!</html>")?,
            Manner::Good => good(&mut stream, &path, &body, services)?,
        }
    }
    Ok(())
}

fn good(
    stream: &mut TcpStream,
    path: &str,
    body: &[u8],
    services: &Mutex<BTreeSet<String>>,
) -> std::io::Result<()> {
    let mut services = services.lock().unwrap();
    if path == "/v1/agent/service/register" {
        let body: serde_json::Value = serde_json::from_slice(body)?;
        services.insert(body["ID"].as_str().unwrap_or_default().to_owned());
        answer(stream, 200, "")
    } else if let Some(id) = path.strip_prefix("/v1/agent/service/deregister/") {
        services.remove(id);
        answer(stream, 200, "")
    } else if let Some(id) = path.strip_prefix("/v1/agent/check/update/service%3A") {
        let known = services.contains(id);
        answer(stream, if known { 200 } else { 500 }, if known { "" } else { "Unknown check" })
    } else {
        // It never blocks, which is rude, and an index of 0 on top of that.
        answer(stream, 200, "[]")
    }
}

fn answer(stream: &mut TcpStream, status: u16, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} Word\r\nX-Consul-Index: 0\r\nContent-Length: {length}\r\n\r\n{body}")
}
