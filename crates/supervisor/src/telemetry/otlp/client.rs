//! Requests to a collector: its headers, and what a response means.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use containerpilot_core::plan::{HttpTarget, Otlp};
use containerpilot_otlp::{CollectorAnswer, DeliveryOutcome, ExportKind, read_answer, read_status_message};
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Uri};

use crate::net::connect::{Address, Connector};
use crate::net::http_client::{HttpClient, NotSent, Response, Wanted};
use crate::net::http_probe::path;

/// How much of an answer is read. A longer answer is not read to its end, and its connection is closed.
const ANSWER_BYTES: usize = 64 << 10;
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// The shortest value of a header that is hidden in messages of the collector.
const SHORTEST_SECRET: usize = 4;

/// A client for one kind of data.
#[derive(Debug)]
pub(super) struct CollectorClient {
    target: HttpTarget,
    http: HttpClient,
    headers: HeaderMap,
    /// What a message of the collector must not show (L5): the values of headers.
    secrets: Vec<String>,
    timeout: Duration,
}

impl CollectorClient {
    pub(super) fn new(otlp: &Otlp, kind: ExportKind) -> Self {
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
            http: HttpClient::keeping_connections(Connector::new(address, otlp.tls.clone())),
            target,
            headers,
            secrets: secrets.filter(|secret| secret.len() >= SHORTEST_SECRET).collect(),
            timeout: otlp.timeout,
        }
    }

    /// The URL, for the log.
    pub(super) fn url(&self) -> String {
        self.target.to_string()
    }

    /// Sends a request, and returns its outcome.
    pub(super) async fn send(&self, body: Bytes) -> DeliveryOutcome {
        let sent = match self.request(body) {
            Ok(request) => self.http.send(request, &|_| Wanted::Start(ANSWER_BYTES), self.timeout).await,
            Err(error) => Err(error.into()),
        };
        match sent {
            Ok(response) => self.outcome(&response),
            Err(error) => DeliveryOutcome::Retry { why: error.to_string(), after: None },
        }
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, NotSent> {
        let path = path(&self.target);
        let Ok(uri) = path.parse::<Uri>() else { return Err(NotSent::InvalidPath(path)) };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&self.headers);
        Ok(request)
    }

    fn outcome(&self, response: &Response) -> DeliveryOutcome {
        let Response { status, headers, body } = response;
        if status.is_success() {
            let CollectorAnswer { rejected, message } = read_answer(body);
            return DeliveryOutcome::Accepted { rejected, message: self.without_secrets(message) };
        }
        let is_protobuf =
            headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == PROTOBUF.as_bytes());
        let message = if is_protobuf { read_status_message(body) } else { first_line(body) };
        let mut why = format!("status {status}");
        if !message.is_empty() {
            why.push_str(": ");
            why.push_str(&self.without_secrets(message));
        }
        let after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = after.and_then(|value| retry_after(value, SystemTime::now()));
        DeliveryOutcome::of_status(status.as_u16(), why, after)
    }

    fn without_secrets(&self, message: String) -> String {
        self.secrets.iter().fold(message, |message, secret| message.replace(secret, "***"))
    }
}

/// The delay in `Retry-After`, in seconds or as a date.
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
