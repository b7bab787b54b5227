//! HTTP requests of checks (H5, H10).

use std::marker::PhantomData;

use containerpilot_core::plan::{DnsRecord, HttpMethod, HttpTarget, StatusRange};

use super::address::host_and_port;
use super::keyword::Keyword;
use super::list::items;
use crate::decode::{DecodeContext, Section, Shape, ValueType, found, weak_text};
use crate::json5::{Node, Value};
use crate::limits::{HEADER_BYTES, HEADERS};

/// A URL.
pub struct HttpUrl;

impl ValueType for HttpUrl {
    type Value = HttpTarget;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<HttpTarget> {
        url(cx, key, node, "for example: \"http://127.0.0.1:8000/health\"")
    }
}

/// The URL of an OpenTelemetry collector (T6).
pub struct CollectorUrl;

impl ValueType for CollectorUrl {
    type Value = HttpTarget;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<HttpTarget> {
        let target = url(cx, key, node, "for example: \"http://localhost:4318\"")?;
        match collector(target) {
            Ok(target) => Some(target),
            Err((message, help)) => {
                cx.error(node.span, format!("`{key}` {message}"), help);
                None
            }
        }
    }
}

/// The address of a collector: its path has no slash at its end. The error is what is wrong, and help.
pub(crate) fn collector(target: HttpTarget) -> Result<HttpTarget, (&'static str, &'static str)> {
    if target.path.contains('?') {
        return Err(("cannot have a query", "put what the collector needs into `headers`"));
    }
    if target.port == 0 {
        return Err(("must name a port", "the usual port is 4318"));
    }
    let path = target.path.trim_end_matches('/');
    if ["/v1/logs", "/v1/traces", "/v1/metrics"].iter().any(|end| path.ends_with(end)) {
        return Err((
            "must not name one kind of data",
            "remove the path: /v1/logs and so on are added to it",
        ));
    }
    Ok(HttpTarget { path: path.to_owned(), ..target })
}

/// Reads a URL.
fn url(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node, help: &str) -> Option<HttpTarget> {
    let text = cx.text(key, node)?;
    match parse_url(&text) {
        Ok(target) => return Some(target),
        Err(UrlError::Scheme) => {
            let what = found(node);
            let message = format!("`{key}` must be a URL that starts with http:// or https://, not {what}");
            cx.error(node.span, message, help);
        }
        Err(UrlError::Invalid) => {
            cx.error(node.span, format!("`{key}` is not a valid URL: {}", found(node)), help);
        }
    }
    None
}

/// Why a text is not a URL.
pub(crate) enum UrlError {
    /// It does not start with http:// or https://.
    Scheme,
    /// The rest is wrong.
    Invalid,
}

/// The parts of a URL.
pub(crate) fn parse_url(text: &str) -> Result<HttpTarget, UrlError> {
    let (https, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        (None, None) => return Err(UrlError::Scheme),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let address = host_and_port(authority, Some(if https { 443 } else { 80 }));
    let clean = !path.chars().any(|c| c.is_ascii_control() || c == ' ');
    match address {
        Some((host, port)) if clean => Ok(HttpTarget { https, host, port, path }),
        _ => Err(UrlError::Invalid),
    }
}

/// A URL, or a section for a whole request.
pub struct UrlOrObject<S>(PhantomData<S>);

/// The value of a key that accepts a URL or a section.
#[derive(Clone, Debug)]
pub enum UrlOr<S> {
    /// A URL.
    Url(HttpTarget),
    /// A section.
    Object(S),
}

impl<S: Section> ValueType for UrlOrObject<S> {
    type Value = UrlOr<S>;
    const SHAPE: Shape = Shape::ObjectOrText(&S::INFO);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<UrlOr<S>> {
        match &node.value {
            Value::Object(members) => Some(UrlOr::Object(S::from_members(cx, node.span, members))),
            _ => HttpUrl::read(cx, key, node).map(UrlOr::Url),
        }
    }
}

impl Keyword for DnsRecord {
    const NAMES: &'static [&'static str] = &["A", "AAAA", "SRV"];
    const VALUES: &'static [Self] = &[Self::A, Self::Aaaa, Self::Srv];
    const ANY_CASE: bool = true;
}

impl Keyword for HttpMethod {
    const NAMES: &'static [&'static str] = &["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
    const VALUES: &'static [Self] =
        &[Self::Get, Self::Head, Self::Options, Self::Post, Self::Put, Self::Patch, Self::Delete];
    const ANY_CASE: bool = true;
}

/// The headers of a request.
pub struct Headers;

impl ValueType for Headers {
    type Value = Vec<(String, String)>;
    const SHAPE: Shape = Shape::Map;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Self::Value> {
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut bytes = 0;
        for member in cx.members(key, node, "{ Accept: \"application/json\" }")? {
            let name = member.key.as_str();
            let is_token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
            // The supervisor sets them, because they say where the request ends.
            let reserved = ["connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"];
            let wrong = if name.is_empty() || !name.bytes().all(is_token) {
                Some("is not a valid name of a header")
            } else if reserved.contains(&name.to_ascii_lowercase().as_str()) {
                Some("cannot be set: the supervisor itself says where the request ends")
            } else if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                Some("is written twice; the case of a name does not matter")
            } else {
                None
            };
            if let Some(wrong) = wrong {
                cx.error(member.key_span, format!("`{name}` in `{key}` {wrong}"), "");
                return None;
            }
            let value = cx.text(name, &member.value)?;
            // The value may be a secret, and is not shown.
            if value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
                let message = format!("the header `{name}` contains a newline or another control character");
                cx.error(member.value.span, message, "a header is one line; remove it");
                return None;
            }
            bytes += name.len() + value.len();
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        if headers.len() > HEADERS || bytes > HEADER_BYTES {
            let message = format!("`{key}` has more than {HEADERS} headers or {} KiB", HEADER_BYTES / 1024);
            cx.error(node.span, message, "remove some of them");
            return None;
        }
        Some(headers)
    }
}

/// The statuses of a response that are a success.
pub struct HttpStatuses;

impl ValueType for HttpStatuses {
    type Value = Vec<StatusRange>;
    const SHAPE: Shape = Shape::Words;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Vec<StatusRange>> {
        let items = items(cx, key, node)?;
        if items.is_empty() {
            let message = format!("`{key}` is empty, so that no response could be a success");
            cx.error(node.span, message, "remove it, or add statuses: [200, \"3xx\"]");
            return None;
        }
        let mut statuses = Vec::new();
        for item in items {
            let text = weak_text(&item.value).unwrap_or_default();
            let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
            let status = match class {
                Some(class) => {
                    class.parse().ok().filter(|class| (1..=5).contains(class)).map(StatusRange::Class)
                }
                None => text.parse().ok().filter(|code| (100..=599).contains(code)).map(StatusRange::Code),
            };
            let Some(status) = status else {
                let message = format!(
                    "`{key}` must contain codes from 100 to 599 or classes such as \"2xx\", not {}",
                    found(item)
                );
                cx.error(item.span, message, "for example: [200, \"3xx\"]");
                return None;
            };
            if !statuses.contains(&status) {
                statuses.push(status);
            }
        }
        Some(statuses)
    }
}
