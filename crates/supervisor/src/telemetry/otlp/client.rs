//! HTTP requests to a collector, over one connection that is kept open, with a deadline and bounds on everything.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use containerpilot_core::plan::{HttpTarget, Otlp};
use containerpilot_core::time::fmt_duration;
use containerpilot_otlp::{Answer, Kind, Outcome, read_answer, read_status_message};
use containerpilot_process::error_text::root_cause;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};

use crate::net::connect::{Address, Connector};
use crate::net::http_probe::path;
use crate::net::limits::{HEAD_BYTES, HEAD_FIELDS};

/// How much of an answer is read. A longer answer is not read to its end, and its connection is closed.
const ANSWER_BYTES: usize = 64 << 10;
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// The shortest value of a header that is hidden in messages of the collector.
const SHORTEST_SECRET: usize = 4;

type Connection = SendRequest<Full<Bytes>>;

/// A client for one kind of data.
#[derive(Debug)]
pub(super) struct Client {
    target: HttpTarget,
    connector: Connector,
    headers: HeaderMap,
    /// What a message of the collector must not show (L5): the values of headers.
    secrets: Vec<String>,
    timeout: Duration,
    kept: Option<Connection>,
}

/// An answer with any status.
struct Received {
    status: hyper::StatusCode,
    retry_after: Option<Duration>,
    is_protobuf: bool,
    body: Bytes,
}

impl Client {
    pub(super) fn new(otlp: &Otlp, kind: Kind) -> Self {
        let target = otlp.url(kind.name());
        let address = Address::Network { host: target.host.clone(), port: target.port };
        let mut headers = HeaderMap::new();
        for (name, value) in &otlp.headers {
            // The configuration has checked them.
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
            {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        headers.insert(CONTENT_TYPE, PROTOBUF);
        if let Ok(host) = HeaderValue::from_str(&target.authority()) {
            headers.insert(HOST, host);
        }
        let agent = HeaderValue::from_static(concat!("containerpilot/", env!("CARGO_PKG_VERSION")));
        headers.entry(USER_AGENT).or_insert(agent);
        // Also the part after `Bearer`.
        let parts = |value: &String| [value.clone(), value.rsplit(' ').next().unwrap_or_default().to_owned()];
        let secrets = otlp.headers.iter().flat_map(|(_, value)| parts(value));
        Self {
            connector: Connector::new(address, otlp.tls.clone()),
            target,
            headers,
            secrets: secrets.filter(|secret| secret.len() >= SHORTEST_SECRET).collect(),
            timeout: otlp.timeout,
            kept: None,
        }
    }

    /// The URL, for the log.
    pub(super) fn url(&self) -> String {
        self.target.to_string()
    }

    /// Sends a request, and tells what has become of it.
    pub(super) async fn send(&mut self, body: Bytes) -> Outcome {
        let deadline = Instant::now() + self.timeout;
        let retry = |why| Outcome::Retry { why, after: None };
        match timeout_at(deadline, self.exchange(body, deadline)).await {
            Ok(Ok(received)) => self.outcome(&received),
            Ok(Err(why)) => retry(why),
            Err(_) => retry(format!("no answer within {}", fmt_duration(self.timeout))),
        }
    }

    async fn exchange(&mut self, body: Bytes, deadline: Instant) -> Result<Received, String> {
        // If a kept connection fails, for example because the collector was restarted, a new one is opened.
        if let Some(kept) = self.kept.take().filter(|kept| !kept.is_closed())
            && let Ok(received) = self.exchange_on(kept, body.clone()).await
        {
            return Ok(received);
        }
        let connection = self.connect(deadline).await?;
        self.exchange_on(connection, body).await.inspect_err(|_| self.connector.reload_tls())
    }

    async fn connect(&self, deadline: Instant) -> Result<Connection, String> {
        let stream = self.connector.connect(deadline).await.map_err(|error| error.to_string())?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES).max_headers(HEAD_FIELDS);
        let (sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| error_text(&error))?;
        // It ends when the sender is dropped. Its errors are reported to the sender.
        tokio::spawn(async { drop(connection.await) });
        Ok(sender)
    }

    async fn exchange_on(&mut self, mut connection: Connection, body: Bytes) -> Result<Received, String> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        let uri = path(&self.target).parse::<Uri>();
        *request.uri_mut() = uri.map_err(|_| "the path of the endpoint is not valid".to_owned())?;
        request.headers_mut().clone_from(&self.headers);
        let response = connection.send_request(request).await.map_err(|error| error_text(&error))?;
        let (received, is_complete) = receive(response).await.map_err(|error| error_text(&error))?;
        if is_complete {
            self.kept = Some(connection);
        }
        Ok(received)
    }

    fn outcome(&self, received: &Received) -> Outcome {
        let Received { status, retry_after, is_protobuf, body } = received;
        if status.is_success() {
            let Answer { rejected, message } = read_answer(body);
            return Outcome::Accepted { rejected, message: self.without_secrets(message) };
        }
        let message = if *is_protobuf { read_status_message(body) } else { first_line(body) };
        let mut why = format!("status {status}");
        if !message.is_empty() {
            why.push_str(": ");
            why.push_str(&self.without_secrets(message));
        }
        match status.as_u16() {
            429 | 502..=504 => Outcome::Retry { why, after: *retry_after },
            _ => Outcome::Refused { why },
        }
    }

    fn without_secrets(&self, message: String) -> String {
        self.secrets.iter().fold(message, |message, secret| message.replace(secret, "***"))
    }
}

/// Reads an answer. Returns true if that was all of it.
async fn receive(response: Response<Incoming>) -> Result<(Received, bool), hyper::Error> {
    let headers = response.headers();
    let retry_after =
        headers.get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, SystemTime::now()));
    let is_protobuf = headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes() == PROTOBUF.as_bytes());
    let status = response.status();
    let mut incoming = response.into_body();
    let mut body = BytesMut::new();
    let mut is_complete = true;
    while let Some(frame) = incoming.frame().await {
        let Ok(chunk) = frame?.into_data() else { continue };
        body.extend_from_slice(chunk.get(..chunk.len().min(ANSWER_BYTES - body.len())).unwrap_or_default());
        if body.len() >= ANSWER_BYTES {
            is_complete = false;
            break;
        }
    }
    Ok((Received { status, retry_after, is_protobuf, body: body.freeze() }, is_complete))
}

/// The delay that `Retry-After` asks for, in seconds or as a date.
fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default()),
    }
}

/// The first line of a text, if it is one and not markup.
fn first_line(body: &[u8]) -> String {
    let line = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = std::str::from_utf8(line.get(..line.len().min(160)).unwrap_or_default()).unwrap_or_default();
    if text.starts_with('<') {
        return String::new();
    }
    text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn error_text(error: &hyper::Error) -> String {
    if error.is_parse() {
        "the answer is not HTTP".to_owned()
    } else if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        "the connection was closed before the answer was complete".to_owned()
    } else {
        root_cause(error).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::retry_after;

    #[test]
    fn t6_retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let after = |value| retry_after(value, now).map(|delay| delay.as_secs());
        assert_eq!(after(" 120 "), Some(120));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:40 GMT"), Some(3));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:00 GMT"), Some(0), "a date in the past");
        assert_eq!(after("soon"), None);
        assert_eq!(after("-1"), None);
    }
}
