//! The HTTP requests of health checks and watches (H10).
//!
//! [`ProbeClient`] sends a request on the network thread, with TLS if the URL has https. A check by plain HTTP that
//! needs no body runs in the event loop instead (`runtime::probe`), without this thread; both send the headers of
//! [`headers`].

use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use containerpilot_config::template::Pattern;
use containerpilot_core::input::CheckError;
use containerpilot_core::plan::{HttpProbe, HttpTarget, Tls};
use containerpilot_process::error_text::describe;
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};

use super::connect::{Address, ConnectError, Connector};
use super::http_client::{HttpClient, NotSent, RequestError, Wanted};

/// How much of a body must match.
pub(crate) const BODY_BYTES: usize = 64 * 1024;

/// Sends the request of a probe, and compares the response with the expected one. It keeps the certificates and TLS
/// sessions for the next request, but no connection.
#[derive(Debug)]
pub(crate) struct ProbeClient {
    probe: HttpProbe,
    http: HttpClient,
    body: Option<Pattern>,
}

impl ProbeClient {
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
        let address = Address::Network { host: host.clone(), port: *port };
        Self {
            probe: probe.clone(),
            http: HttpClient::new(Connector::new(address, tls)),
            // The configuration has checked it.
            body: probe.body.as_deref().and_then(|pattern| Pattern::new(pattern).ok()),
        }
    }

    /// Sends the request. Fails if the response is not the expected one: the error says what was sent, and what is
    /// wrong. Returns the first bytes of the body, as many as the caller wants. If the body must match, its first 64
    /// KiB are read.
    pub(crate) async fn send(&self, wanted: usize, within: Duration) -> Result<Bytes, CheckError> {
        let limit = if self.body.is_some() { wanted.max(BODY_BYTES) } else { wanted };
        let body = self.exchange(limit, within).await;
        body.map_err(|error| error.map(|why| format!("{}: {why}", self.probe)))
    }

    async fn exchange(&self, limit: usize, within: Duration) -> Result<Bytes, CheckError> {
        let request = request(&self.probe)?;
        // A wrong status is enough to know: its body may never end.
        let is_expected = |status: StatusCode| self.probe.check_status(status.as_u16()).is_ok();
        let wanted = |status| Wanted::Start(if is_expected(status) { limit } else { 0 });
        let response = self.http.send(request, &wanted, within).await.map_err(check_error)?;
        self.probe.check_status(response.status.as_u16())?;
        match (&self.body, &self.probe.body) {
            (Some(pattern), Some(written))
                if !pattern.is_match(response.body.get(..BODY_BYTES).unwrap_or(&response.body)) =>
            {
                Err(format!("the body does not match \"{written}\"").into())
            }
            _ => Ok(response.body),
        }
    }
}

fn check_error(error: RequestError) -> CheckError {
    match error {
        RequestError::NotSent(NotSent::Connect(error)) => {
            let is_own = error.is_own();
            let why = match error {
                // The URL has the address.
                ConnectError::Connect { source, .. } => describe(&source),
                other => other.to_string(),
            };
            if is_own { CheckError::NotRun(why) } else { CheckError::Failed(why) }
        }
        other => CheckError::Failed(other.to_string()),
    }
}

fn request(probe: &HttpProbe) -> Result<Request<Full<Bytes>>, String> {
    let invalid = || "the request is not valid HTTP".to_owned();
    let mut request = Request::new(Full::default());
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
