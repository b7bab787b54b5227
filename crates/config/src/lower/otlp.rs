//! The OpenTelemetry collector: T6.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::plan::{HttpTarget, Otlp, Tls};

use super::{Lower, NeededFile, defaults};
use crate::decode::{Section, Spanned};
use crate::diagnostics::{Place, Problem, Severity};
use crate::fields::{OtlpFields, TlsFields};
use crate::values::{collector, parse_url, value_of};

/// The port on which collectors expect gRPC.
const GRPC_PORT: u16 = 4317;
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// The headers that every request has.
const OWN_HEADERS: [&str; 3] = ["content-type", "content-encoding", "host"];

const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const RESOURCE_VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";

impl Lower<'_> {
    pub(super) fn otlp(&mut self, given: &Spanned<OtlpFields>) -> Option<Otlp> {
        let fields = &given.value;
        let endpoint = self.endpoint(fields, given.key);
        let headers = self.export_headers(fields, given.key);
        let tls = self.export_tls(fields, endpoint.as_ref());
        let positive = |this: &mut Self, field: &Option<Spanned<i64>>, key| {
            this.positive(&OtlpFields::INFO, fields.place, given.key, field.as_ref(), key)
        };
        let timeout = positive(self, &fields.timeout, "timeout");
        let interval = positive(self, &fields.interval, "interval");
        let too_short = interval.is_some_and(|interval| interval < SHORTEST_INTERVAL);
        if let Some(written) = fields.interval.as_ref().filter(|_| too_short) {
            self.error(written.place, "`interval` must be at least 1s", "a minute is usual");
            return None;
        }
        let [logs, traces, metrics] = [&fields.logs, &fields.traces, &fields.metrics].map(value_of);
        let (logs, traces, metrics) = (logs?, traces?, metrics?);
        if !(logs || traces || metrics) {
            let help = "set one of `logs`, `traces` and `metrics` to true, or remove `otlp`";
            self.report(Severity::Fault, given.key, "`otlp` exports nothing", help);
        }
        let resource = self.resource(fields);
        let reported = ["headers", "resource"].iter().any(|key| self.is_reported(fields.place, key));
        (!reported).then_some(())?;
        Some(Otlp {
            endpoint: endpoint?,
            logs,
            traces,
            metrics,
            headers: headers?,
            tls: tls?,
            timeout: timeout?,
            interval: interval?,
            resource,
        })
    }

    fn endpoint(&mut self, fields: &OtlpFields, section: Place) -> Option<HttpTarget> {
        let target = match &fields.endpoint {
            Some(written) => {
                if written.value.port == GRPC_PORT {
                    let message = format!("port {GRPC_PORT} is usually that of OTLP over gRPC");
                    let help = "OTLP over HTTP, which is used here, usually has the port 4318";
                    self.report(Severity::Warning, written.place, message, help);
                }
                return Some(written.value.clone());
            }
            // What is written there is wrong.
            None if self.is_reported(fields.place, "endpoint") => return None,
            None => self.host.variable(ENDPOINT_VARIABLE),
        };
        let Some(text) = target else {
            let (host, port) = defaults::COLLECTOR;
            return Some(HttpTarget { https: false, host: host.to_owned(), port, path: String::new() });
        };
        // The value may have a password, and is not shown.
        let wrong = match parse_url(&text) {
            Ok(target) => match collector(target) {
                Ok(target) => return Some(target),
                Err((message, _)) => message,
            },
            Err(_) => "is not a URL such as http://localhost:4318",
        };
        let message = format!("{ENDPOINT_VARIABLE} {wrong}");
        self.error(section, message, "correct it, or set `endpoint` under `otlp`");
        None
    }

    fn export_headers(&mut self, fields: &OtlpFields, section: Place) -> Option<Vec<(String, String)>> {
        let Some(written) = &fields.headers else {
            let Some(text) = self.host.variable(HEADERS_VARIABLE) else { return Some(Vec::new()) };
            let pairs = pairs(&text).filter(|pairs| pairs.iter().all(|(name, value)| is_header(name, value)));
            if pairs.is_none() {
                // The value may be a secret, and is not shown.
                let message = format!("{HEADERS_VARIABLE} is not a list of headers");
                self.error(section, message, "write name=value,name=value, or set `headers` under `otlp`");
            }
            return pairs;
        };
        let is_own = |name: &str| OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str());
        if let Some((name, _)) = written.value.iter().find(|(name, _)| is_own(name)) {
            let message = format!("`{name}` in `headers` cannot be set: the supervisor sets it");
            self.error(written.place, message, "remove it");
            return None;
        }
        Some(written.value.clone())
    }

    /// TLS settings if the endpoint has https.
    fn export_tls(&mut self, fields: &OtlpFields, endpoint: Option<&HttpTarget>) -> Option<Option<Tls>> {
        let https = endpoint?.https;
        if let Some(tls) = fields.tls.as_ref().filter(|_| !https) {
            let help = "remove it, or change `endpoint`";
            self.error(tls.key, "`tls` needs an endpoint with https://", help);
            return None;
        }
        let section = fields.tls.as_ref().map(|tls| &tls.value);
        let text =
            |field: fn(&TlsFields) -> &Option<Spanned<String>>| section.and_then(|tls| field(tls).as_ref());
        let files = [
            text(|tls| &tls.cafile),
            text(|tls| &tls.capath),
            text(|tls| &tls.clientcert),
            text(|tls| &tls.clientkey),
        ];
        let needed = |file: &Spanned<String>| NeededFile { path: file.value.clone(), named: Ok(file.place) };
        self.files.extend(files.into_iter().flatten().map(needed));
        let [ca_file, ca_path, client_cert, client_key] = files;
        if let (Some(alone), None) | (None, Some(alone)) = (client_cert, client_key) {
            let message = "a client certificate needs a key, and a key needs a certificate";
            self.error(alone.place, message, "set both `clientcert` and `clientkey`, or neither");
            return None;
        }
        let value = |given: Option<&Spanned<String>>| given.map(|given| given.value.clone());
        let tls = https.then(|| Tls {
            ca_file: value(ca_file),
            ca_path: value(ca_path),
            client_cert: value(client_cert),
            client_key: value(client_key),
            server_name: value(text(|tls| &tls.servername)),
            verify: section.and_then(|tls| value_of(&tls.verify)).unwrap_or(true),
        });
        Some(tls)
    }

    /// The attributes of the configuration, of the variables, and the usual ones, in this order of precedence.
    fn resource(&mut self, fields: &OtlpFields) -> BTreeMap<String, String> {
        let mut resource = BTreeMap::from([
            ("service.name".to_owned(), "containerpilot".to_owned()),
            ("host.name".to_owned(), self.host.hostname().to_owned()),
        ]);
        if let Some(text) = self.host.variable(RESOURCE_VARIABLE) {
            match pairs(&text) {
                Some(pairs) => resource.extend(pairs),
                None => {
                    let message = format!("{RESOURCE_VARIABLE} is not a list of attributes, and is ignored");
                    let problem = Problem::unlocated(Severity::Warning, message);
                    self.problems.push(problem.help("write name=value,name=value"));
                }
            }
        }
        let name = self.host.variable("OTEL_SERVICE_NAME");
        resource.extend(name.map(|name| ("service.name".to_owned(), name)));
        resource.extend(value_of(&fields.resource).unwrap_or_default());
        resource
    }
}

/// The pairs of `name=value,name=value`, in which values may have percent escapes (as in W3C Baggage).
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            let name = name.trim();
            (!name.is_empty()).then_some(())?;
            Some((name.to_owned(), percent_decoded(value.trim())?))
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn is_header(name: &str, value: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    name.bytes().all(is_token)
        && !OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str())
        && !value.chars().any(char::is_control)
}
