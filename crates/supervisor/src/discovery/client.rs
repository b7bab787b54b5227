//! Requests to the Consul agent: its address, its token, and its responses.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use containerpilot_core::plan::{Consul, ConsulAddress, TokenSource};
use http_body_util::Full;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};

use crate::net::connect::{Address, Connector};
use crate::net::http_client::{HttpClient, NotSent, RequestError, Wanted};
use crate::net::tls::{TlsFileError, read_file};

/// Longest response. A service with ten thousand instances needs a few megabytes.
const RESPONSE_BYTES: usize = 8 * 1024 * 1024;
/// How much of an error response is logged, in characters.
const REASON_LENGTH: usize = 160;

/// A complete response with any status.
#[derive(Debug)]
pub(super) struct ConsulResponse {
    pub(super) status: u16,
    /// `X-Consul-Index`
    pub(super) index: Option<u64>,
    pub(super) body: Bytes,
}

/// A client of the agent.
#[derive(Debug)]
pub(super) struct ConsulClient {
    http: HttpClient,
    host: HeaderValue,
    path_prefix: String,
    token: Mutex<Option<HeaderValue>>,
    token_file: Option<PathBuf>,
    token_source: Option<TokenSource>,
    token_file_read: AtomicBool,
}

impl ConsulClient {
    pub(super) fn new(consul: &Consul) -> Self {
        let parts = consul.address.network_parts(consul.https);
        // A unix socket has no host name, but Consul requires the header.
        let host = parts.as_ref().and_then(|parts| HeaderValue::from_str(parts.authority).ok());
        let connector = Connector::new(address(consul), consul.https.then(|| consul.tls.clone()));
        Self {
            http: HttpClient::keeping_connections(connector),
            host: host.unwrap_or_else(|| HeaderValue::from_static("localhost")),
            path_prefix: parts.map(|parts| parts.prefix.trim_end_matches('/').to_owned()).unwrap_or_default(),
            token: Mutex::new(consul.token.as_deref().and_then(secret)),
            token_file: consul.token_file.as_ref().map(PathBuf::from),
            token_source: consul.token_source,
            token_file_read: AtomicBool::new(false),
        }
    }

    /// The source of the token that was sent, never the token itself (L5).
    pub(super) fn describe_token(&self) -> String {
        let is_empty = self.token.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        let Some(source) = self.token_source.map(TokenSource::name) else {
            return "no token was sent: set CONSUL_HTTP_TOKEN, or `token` or `tokenfile` under `consul`"
                .to_owned();
        };
        match (&self.token_file, is_empty) {
            (Some(file), false) => format!("with the token of the file {} from {source}", file.display()),
            (Some(file), true) => {
                format!("no token was sent: the file {} from {source} has none", file.display())
            }
            (None, false) => format!("with the token of {source}"),
            (None, true) => format!("no token was sent: that of {source} is empty or not a valid header"),
        }
    }

    /// Reads the token file again, if there is one.
    pub(super) fn reload_token(&self) -> Result<(), TlsFileError> {
        let Some(file) = &self.token_file else { return Ok(()) };
        let text = read_file(file)?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) =
            secret(String::from_utf8_lossy(&text).trim());
        Ok(())
    }

    /// Sends a request and reads the response.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<ConsulResponse, RequestError> {
        if !self.token_file_read.swap(true, Ordering::Relaxed) {
            // An unreadable file is reported when Consul refuses the request.
            let _ = self.reload_token();
        }
        let request = self.request(method, path, body)?;
        let whole = Wanted::Whole { most: RESPONSE_BYTES };
        let response = self.http.send(request, &|_| whole, within).await?;
        let index = response.headers.get("x-consul-index");
        Ok(ConsulResponse {
            status: response.status.as_u16(),
            index: index.and_then(|index| index.to_str().ok()?.parse().ok()),
            body: response.body,
        })
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, NotSent> {
        let target = format!("{}{path}", self.path_prefix);
        let is_path = target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic());
        let uri = target.parse::<Uri>().ok().filter(|_| is_path);
        let Some(uri) = uri else { return Err(NotSent::InvalidPath(target)) };
        let (length, is_get) = (body.len(), method == Method::GET);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(USER_AGENT, HeaderValue::from_static("containerpilot"));
        if length > 0 {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = &*self.token.lock().unwrap_or_else(PoisonError::into_inner) {
            headers.insert("x-consul-token", token.clone());
        }
        if !is_get {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        Ok(request)
    }

    /// An error response for the log: its status and its first line, shortened and without the token.
    pub(super) fn describe(&self, response: &ConsulResponse) -> String {
        let text = String::from_utf8_lossy(&response.body);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token =
            token.as_ref().and_then(|token| std::str::from_utf8(token.as_bytes()).ok()).unwrap_or_default();
        // Long enough that a token that starts in the shown part is not cut off before it is replaced.
        let enough = REASON_LENGTH.saturating_mul(token.len().saturating_add(1));
        let mut reason: String = line.chars().filter(|one| !one.is_control()).take(enough).collect();
        if !token.is_empty() {
            reason = reason.replace(token, "(hidden)");
        }
        reason = reason.chars().take(REASON_LENGTH).collect();
        if reason.is_empty() {
            format!("status {}", response.status)
        } else {
            format!("status {}: {reason}", response.status)
        }
    }
}

fn address(consul: &Consul) -> Address {
    match &consul.address {
        ConsulAddress::Unix(path) => Address::Unix(path.into()),
        ConsulAddress::Network(text) => match consul.address.network_parts(consul.https) {
            Some(parts) => Address::Network { host: parts.host.to_owned(), port: parts.port },
            None => Address::Invalid(text.clone()),
        },
    }
}

/// A token as a header that is never shown, not even by `{:?}`.
fn secret(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(token).ok().filter(|value| !value.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use containerpilot_core::plan::Tls;

    use super::*;
    use crate::net::http_client::NoResponse;

    fn client(address: &str, token: Option<&str>) -> ConsulClient {
        ConsulClient::new(&Consul {
            address: ConsulAddress::Network(address.to_owned()),
            https: false,
            token: token.map(str::to_owned),
            token_file: None,
            token_source: None,
            tls: Tls {
                ca_file: None,
                ca_path: None,
                client_cert: None,
                client_key: None,
                server_name: None,
                verify: true,
            },
        })
    }

    #[test]
    fn d5_the_time_limit_in_an_error_is_rounded() {
        let third = NoResponse::Timeout(Duration::from_secs(5) / 3);
        assert_eq!(third.to_string(), "no response within 1.666s");
        assert_eq!(NoResponse::Timeout(Duration::from_secs(5)).to_string(), "no response within 5s");
    }

    /// A server that sends these responses, one connection after the other. Returns what it received on each.
    fn server(connections: Vec<Vec<&'static str>>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = std::thread::spawn(move || {
            let serve = |responses: Vec<&str>| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut received = Vec::new();
                for response in responses {
                    let start = received.len();
                    while !received[start..].ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        received.extend_from_slice(&byte);
                    }
                    stream.write_all(response.as_bytes()).unwrap();
                }
                String::from_utf8(received).unwrap()
            };
            connections.into_iter().map(serve).collect()
        });
        (address, serving)
    }

    #[test]
    fn d5_the_error_names_every_address_that_was_tried() {
        // A port that is free on both addresses of localhost: the listener is bound but dropped.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let client = client(&format!("localhost:{port}"), None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let request = client.send(Method::GET, "/v1/x", Bytes::new(), Duration::from_secs(30));
        let error = runtime.block_on(request).unwrap_err().to_string();
        for address in [format!("127.0.0.1:{port}: "), format!("[::1]:{port}: ")] {
            assert!(error.contains(&address), "{error}");
        }
    }

    #[test]
    fn d1_connections_are_reused_and_replaced_when_they_fail() {
        let (address, serving) = server(vec![
            vec![
                "HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\nContent-Length: 3\r\n\r\none",
                "HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nt\r\n2\r\nwo\r\n0\r\n\r\n",
                // It closes the connection in the middle of the third response.
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthr",
            ],
            vec!["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nthree"],
            vec!["HTTP/1.0 404 No\r\n\r\nto the end"],
            vec!["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"],
        ]);
        let client = client(&address, Some("t0ken"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let send =
            || runtime.block_on(client.send(Method::GET, "/v1/x", Bytes::new(), Duration::from_secs(30)));
        let good = || send().map(|response| (response.status, response.index, response.body)).unwrap();
        assert_eq!(good(), (200, Some(7), "one".into()));
        assert_eq!(good(), (200, None, "two".into()));
        assert_eq!(good(), (200, None, "three".into()), "on a second connection");
        assert_eq!(good(), (404, None, "to the end".into()), "on a third one");
        let error = send().unwrap_err();
        assert!(matches!(error, RequestError::NoResponse(NoResponse::NotHttp)), "{error}");
        let received = serving.join().unwrap();
        let counts: Vec<usize> =
            received.iter().map(|all| all.matches("GET /v1/x HTTP/1.1\r\n").count()).collect();
        assert_eq!(counts, [3, 1, 1, 1]);
        let fields =
            format!("Host: {address}\r\nUser-Agent: containerpilot\r\nX-Consul-Token: t0ken\r\n\r\n");
        assert!(received.iter().all(|all| all.ends_with(&fields)), "{received:?}");
    }

    #[test]
    fn d1_a_path_that_is_not_valid_is_not_sent() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = client("127.0.0.1:1", None);
        for path in ["/a b", "/a\r\nx: y", "/\u{e4}", ""] {
            let sent =
                runtime.block_on(client.send(Method::GET, path, Bytes::new(), Duration::from_secs(30)));
            assert!(matches!(sent, Err(RequestError::NotSent(NotSent::InvalidPath(_)))), "{path:?}");
        }
        assert!(secret("a\r\nb").is_none() && secret("").is_none());
        assert!(!format!("{:?}", secret("t0ken")).contains("t0ken"));
    }

    #[test]
    fn l5_a_token_that_a_response_repeats_is_hidden() {
        let token = "11111111-2222-3333-4444-555555555555";
        let client = client("127.0.0.1:8500", Some(token));
        for padding in 0..2 * REASON_LENGTH {
            let body = format!("{}{token} is not known, {token}", "x".repeat(padding));
            let text = client.describe(&ConsulResponse { status: 403, index: None, body: body.into() });
            assert!(!text.contains("11111111") && !text.contains("1111-2222"), "{text}");
            assert!(text.chars().count() <= REASON_LENGTH + "status 403: ".len());
        }
        // Control characters do not hide the token.
        let body = "1111\u{1}1111-2222-3333-4444-555555555555";
        let text = client.describe(&ConsulResponse { status: 500, index: None, body: body.into() });
        assert_eq!(text, "status 500: (hidden)");
    }
}
