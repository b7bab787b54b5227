//! The HTTP requests of health checks and watches (H10).
//!
//! [`HttpClient`] sends a request on the network thread, with TLS if the URL has https. A check by plain HTTP that
//! needs no body runs in the event loop instead (`runtime::probe`), without this thread; both send the headers of
//! [`headers`].

use std::borrow::Cow;
use std::fmt::Write;
use std::io;

use bytes::{Bytes, BytesMut};
use containerpilot_config::template::Pattern;
use containerpilot_core::input::CheckError;
use containerpilot_core::plan::{HttpProbe, HttpTarget, Tls};
use containerpilot_process::error_text::{describe, root_cause};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::connect::{Address, ConnectError, Connector};
use super::limits::{HEAD_BYTES, HEAD_FIELDS};

/// How much of a body must match.
pub(crate) const BODY_BYTES: usize = 64 * 1024;

/// Sends the request of a probe, and compares the response with the expected one. It keeps the certificates and TLS
/// sessions for the next request.
#[derive(Debug)]
pub(crate) struct HttpClient {
    probe: HttpProbe,
    connector: Connector,
    body: Option<Pattern>,
}

impl HttpClient {
    pub(crate) fn new(probe: &HttpProbe) -> Self {
        let HttpTarget { https, host, port, .. } = &probe.target;
        let tls = https.then(|| Tls {
            ca_file: probe.ca_file.clone(),
            ca_path: None,
            client_cert: None,
            client_key: None,
            server_name: None,
            verify: true,
        });
        Self {
            probe: probe.clone(),
            connector: Connector::new(Address::Network { host: host.clone(), port: *port }, tls),
            // The configuration has checked it.
            body: probe.body.as_deref().and_then(|pattern| Pattern::new(pattern).ok()),
        }
    }

    /// Sends the request. Fails if the response is not the expected one: the error says what was sent, and what is
    /// wrong. Returns the first bytes of the body, as many as the caller wants. If the body must match, its first 64
    /// KiB are read.
    pub(crate) async fn send(&self, wanted: usize, deadline: Instant) -> Result<Bytes, CheckError> {
        let limit = if self.body.is_some() { wanted.max(BODY_BYTES) } else { wanted };
        let body = match timeout_at(deadline, self.exchange(limit, deadline)).await {
            Ok(body) => body,
            Err(_) => Err("timed out".into()),
        };
        body.map_err(|error| error.map(|why| format!("{}: {why}", self.probe)))
    }

    async fn exchange(&self, limit: usize, deadline: Instant) -> Result<Bytes, CheckError> {
        let request = request(&self.probe)?;
        let stream = self.connector.connect(deadline).await.map_err(|error| {
            let is_own = error.is_own();
            let why = match error {
                // The URL has the address.
                ConnectError::Connect { source, .. } => describe(&source),
                other => other.to_string(),
            };
            if is_own { CheckError::NotRun(why) } else { CheckError::Failed(why) }
        })?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES).max_headers(HEAD_FIELDS).title_case_headers(true);
        let handshake = builder.handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| response_error(&error))?;
        // Its errors are reported to the sender. It ends with this function, also if that is cancelled.
        let mut task = JoinSet::new();
        task.spawn(async { drop(connection.await) });
        let response = sender.send_request(request).await.map_err(|error| response_error(&error))?;
        self.probe.check_status(response.status().as_u16())?;
        if limit == 0 {
            return Ok(Bytes::new());
        }
        let body = body_start(response.into_body(), limit).await?;
        match (&self.body, &self.probe.body) {
            (Some(pattern), Some(written)) if !pattern.is_match(body.get(..BODY_BYTES).unwrap_or(&body)) => {
                Err(format!("the body does not match \"{written}\"").into())
            }
            _ => Ok(body),
        }
    }
}

/// The first bytes of a body.
async fn body_start(mut incoming: Incoming, limit: usize) -> Result<Bytes, String> {
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(chunk) = frame.map_err(|error| response_error(&error))?.into_data() else { continue };
        body.extend_from_slice(&chunk);
        if body.len() >= limit {
            body.truncate(limit);
            break;
        }
    }
    Ok(body.freeze())
}

fn response_error(error: &hyper::Error) -> String {
    let cause = root_cause(error);
    let io = cause.downcast_ref::<io::Error>();
    let is_end = io.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    if error.is_parse_too_large() {
        "the headers of the response are too long".to_owned()
    } else if error.is_parse() {
        "the response is not HTTP".to_owned()
    } else if is_end || error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        "the connection was closed before the response was complete".to_owned()
    } else {
        io.map_or_else(|| cause.to_string(), describe)
    }
}

fn request(probe: &HttpProbe) -> Result<Request<Empty<Bytes>>, String> {
    let invalid = || "the request is not valid HTTP".to_owned();
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::from_bytes(probe.method.name().as_bytes()).map_err(|_| invalid())?;
    *request.uri_mut() = path(&probe.target).parse::<Uri>().map_err(|_| invalid())?;
    for (name, value) in headers(probe) {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| invalid())?;
        request.headers_mut().insert(name, value);
    }
    Ok(request)
}

/// All headers of a request. Those of the configuration replace the usual ones.
pub(crate) fn headers(probe: &HttpProbe) -> Vec<(&str, Cow<'_, str>)> {
    let mut usual: Vec<(&str, Cow<'_, str>)> = vec![
        ("Host", probe.target.authority().into()),
        ("User-Agent", concat!("containerpilot/", env!("CARGO_PKG_VERSION")).into()),
        ("Accept", "*/*".into()),
        ("Connection", "close".into()),
    ];
    if probe.method.needs_length() {
        usual.push(("Content-Length", "0".into()));
    }
    usual.retain(|(name, _)| !probe.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
    usual.extend(probe.headers.iter().map(|(name, value)| (name.as_str(), value.as_str().into())));
    usual
}

/// The path and query of a request. Bytes that cannot be part of a request are encoded.
pub(crate) fn path(target: &HttpTarget) -> String {
    let mut out = String::with_capacity(target.path.len());
    for byte in target.path.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            out.push(byte.into());
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
