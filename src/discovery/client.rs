//! Asking the agent: HTTP/1.1 on few connections that are kept, with a deadline and a bound on everything.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use containerpilot_core::plan::Consul;
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::dial::Dialer;
use crate::net::begin;
use crate::net::body::Body;

/// The most that is read of an answer. A service with ten thousand instances is a few megabytes.
const MOST_ANSWER: usize = 8 * 1024 * 1024;
/// Up to this length an answer needs no leave; longer ones are read a few at a time, however many are asked for.
const SMALL_ANSWER: usize = 64 * 1024;
const LARGE_AT_ONCE: usize = 4;
/// How much of an answer that says no is worth being told.
const MOST_WORDS: usize = 160;
/// What a connection reads at once: little, because there may be many, and most of the time they wait.
const MOST_READ: usize = 8 * 1024;

/// An answer, whatever it says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// `X-Consul-Index`
    pub(super) index: Option<u64>,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing was asked.
    NotAsked(String),
    /// It was asked, and nobody knows what became of it.
    NoAnswer(String),
}

/// The agent.
#[derive(Debug)]
pub(super) struct Client {
    dialer: Dialer,
    host: HeaderValue,
    prefix: String,
    token: Mutex<Option<HeaderValue>>,
    token_file: Option<PathBuf>,
    /// Whether that was read.
    token_read: AtomicBool,
    /// Connections that nobody uses just now.
    idle: Mutex<Vec<SendRequest<Body>>>,
    /// Places for answers that are large.
    large: Semaphore,
}

impl Client {
    pub(super) fn new(consul: &Consul) -> Self {
        let parts = consul.address.network_parts(consul.https);
        Self {
            dialer: Dialer::new(consul),
            // A unix socket has no name; Consul wants some.
            host: parts
                .as_ref()
                .and_then(|parts| HeaderValue::from_str(parts.authority).ok())
                .unwrap_or(HeaderValue::from_static("localhost")),
            prefix: parts.map(|parts| parts.prefix.trim_end_matches('/').to_owned()).unwrap_or_default(),
            token: Mutex::new(consul.token.as_deref().and_then(secret)),
            token_file: consul.token_file.as_ref().map(PathBuf::from),
            token_read: AtomicBool::new(false),
            idle: Mutex::default(),
            large: Semaphore::new(LARGE_AT_ONCE),
        }
    }

    /// Reads the token's file again; whether there is another token now, or why it cannot be read.
    pub(super) fn renew_token(&self) -> Result<bool, String> {
        let Some(file) = &self.token_file else { return Ok(false) };
        let text = super::read(file).map_err(|why| format!("the token's file {why}"))?;
        let text = String::from_utf8_lossy(&text);
        let found = secret(text.trim());
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *token != found;
        *token = found;
        Ok(news)
    }

    /// Asks. A connection that was kept may be dead without anybody knowing; then a new one is tried.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<Answer, Trouble> {
        let deadline = Instant::now() + within;
        if !self.token_read.swap(true, Ordering::Relaxed) {
            // Why it cannot be read is told when Consul says that it is missing.
            let _ = self.renew_token();
        }
        let request = || {
            self.request(method.clone(), path, body.clone())
                .map_err(|error| Trouble::NotAsked(format!("the question cannot be put: {error}")))
        };
        if let Some(mut kept) = self.kept() {
            match timeout_at(deadline, self.answer(&mut kept, request()?)).await {
                Ok(Ok(answer)) => {
                    self.keep(kept);
                    return Ok(answer);
                }
                Ok(Err(_)) => {}
                Err(_) => return Err(Trouble::NoAnswer(late(within))),
            }
        }
        // In a box, because all that dialling and encryption need would else be kept for as long as a query waits.
        let connected = Box::pin(self.connect(deadline)).await;
        let mut fresh = connected.map_err(Trouble::NotAsked)?;
        match timeout_at(deadline, self.answer(&mut fresh, request()?)).await {
            Ok(Ok(answer)) => {
                self.keep(fresh);
                Ok(answer)
            }
            Ok(Err(why)) => {
                // With TLS 1.3, a server that wants another certificate says so only now.
                self.dialer.renew();
                Err(Trouble::NoAnswer(why))
            }
            Err(_) => Err(Trouble::NoAnswer(late(within))),
        }
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Body>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.prefix))
            .header(HOST, self.host.clone())
            .header(USER_AGENT, "containerpilot");
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &*self.token.lock().unwrap_or_else(PoisonError::into_inner) {
            request = request.header("x-consul-token", token.clone());
        }
        request.body(body.into())
    }

    async fn connect(&self, deadline: Instant) -> Result<SendRequest<Body>, String> {
        let stream = self.dialer.connect(deadline).await?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MOST_READ)
            .handshake(stream)
            .await
            .map_err(|error| spoken(&error))?;
        // What goes wrong there is told to whoever asks.
        begin(async move { drop(connection.await) });
        Ok(sender)
    }

    async fn answer(
        &self,
        connection: &mut SendRequest<Body>,
        request: Request<Body>,
    ) -> Result<Answer, String> {
        connection.ready().await.map_err(|error| spoken(&error))?;
        let response = connection.send_request(request).await.map_err(|error| spoken(&error))?;
        let status = response.status().as_u16();
        let index = index(&response);
        let body = self.body(response.into_body()).await?;
        Ok(Answer { status, index, body })
    }

    /// All of a body, if it is not too long.
    async fn body(&self, mut incoming: Incoming) -> Result<Bytes, String> {
        let mut bytes = Vec::new();
        let mut place = None;
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| spoken(&error))?;
            let Some(data) = frame.data_ref() else { continue };
            let length = bytes.len().saturating_add(data.len());
            if length > MOST_ANSWER {
                return Err("its answer is too long".to_owned());
            }
            if length > SMALL_ANSWER && place.is_none() {
                // Whoever has a place needs no second one, so that nobody waits for ever.
                place = self.large.acquire().await.ok();
            }
            bytes.extend_from_slice(data);
        }
        drop(place);
        Ok(bytes.into())
    }

    fn kept(&self) -> Option<SendRequest<Body>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.is_closed());
        idle.pop()
    }

    fn keep(&self, connection: SendRequest<Body>) {
        if !connection.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    /// What an answer says, for people: its first words, without the token, should it be among them.
    pub(super) fn words(&self, answer: &Answer) -> String {
        let text = String::from_utf8_lossy(&answer.body);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = token.as_ref().and_then(|token| token.to_str().ok()).unwrap_or_default();
        // Every token that begins within the first words must be whole to be found, however many there are before it.
        let enough = MOST_WORDS.saturating_mul(token.len().saturating_add(1));
        let mut words: String = line.chars().filter(|one| !one.is_control()).take(enough).collect();
        if !token.is_empty() {
            words = words.replace(token, "(hidden)");
        }
        words = words.chars().take(MOST_WORDS).collect();
        if words.is_empty() {
            format!("status {}", answer.status)
        } else {
            format!("status {}: {words}", answer.status)
        }
    }
}

/// A header's value that is never shown.
fn secret(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(token).ok().filter(|value| !value.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

fn index<B>(response: &Response<B>) -> Option<u64> {
    response.headers().get("x-consul-index")?.to_str().ok()?.trim().parse().ok()
}

fn late(within: Duration) -> String {
    format!("no answer within {within:?}")
}

/// An error of the HTTP library with its cause, which holds the interesting part.
fn spoken(error: &hyper::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use containerpilot_core::plan::{ConsulAddress, Tls};

    use super::*;

    #[test]
    fn l5_no_part_of_a_token_that_an_answer_repeats_is_told() {
        let token = "11111111-2222-3333-4444-555555555555";
        let client = Client::new(&Consul {
            address: ConsulAddress::Network("127.0.0.1:8500".to_owned()),
            https: false,
            token: Some(token.to_owned()),
            token_file: None,
            tls: Tls {
                ca_file: None,
                ca_path: None,
                client_cert: None,
                client_key: None,
                server_name: None,
                verify: true,
            },
        });
        for blanks in 0..2 * MOST_WORDS {
            let body = format!("{}{token} is not known, {token}", "x".repeat(blanks));
            let words = client.words(&Answer { status: 403, index: None, body: body.into() });
            assert!(!words.contains("11111111") && !words.contains("1111-2222"), "{words}");
            assert!(words.chars().count() <= MOST_WORDS + "status 403: ".len());
        }
        // With what cannot be seen in between, it is the token all the same for whoever reads the log.
        let body = "1111\u{1}1111-2222-3333-4444-555555555555";
        let words = client.words(&Answer { status: 500, index: None, body: body.into() });
        assert_eq!(words, "status 500: (hidden)");
    }
}
