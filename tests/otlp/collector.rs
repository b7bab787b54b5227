//! A collector: a small HTTP server that records requests and answers as the test says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::support::config::Config;
use crate::support::supervisor::wait_until;

/// How requests are answered.
#[derive(Clone, Debug)]
pub(crate) enum Behaviour {
    /// With 200 and this body.
    Accept(Vec<u8>),
    /// With this status line, these headers and this body.
    Refuse(&'static str, &'static str, Vec<u8>),
    /// After this time.
    Slow(Duration),
    /// Not at all.
    Hang,
    /// With 200, and a body without end.
    Huge,
    /// The connection is closed.
    Close,
}

#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Whether it was answered with 200.
    pub(crate) accepted: bool,
}

#[derive(Clone)]
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<(Behaviour, Vec<Recorded>)>>,
}

impl Collector {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), behaviour)
    }

    /// A configuration that sends to it, with more keys of `otlp`.
    pub(crate) fn config(&self, keys: &str) -> Config {
        Config::new().keys(format!("otlp: {{ endpoint: 'http://{}', {keys} }}", self.address))
    }

    pub(crate) fn accepting() -> Self {
        Self::start(Behaviour::Accept(Vec::new()))
    }

    pub(crate) fn on(listener: TcpListener, behaviour: Behaviour) -> Self {
        let collector = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::new(Mutex::new((behaviour, Vec::new()))),
        };
        let server = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = server.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        collector
    }

    pub(crate) fn behave(&self, behaviour: Behaviour) {
        self.state.lock().unwrap().0 = behaviour;
    }

    pub(crate) fn behaviour(&self) -> Behaviour {
        self.state.lock().unwrap().0.clone()
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut writer = stream;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
            let path = line.split(' ').nth(1)?.to_owned();
            assert!(line.starts_with("POST "), "{line}");
            let mut headers = BTreeMap::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).ok()?;
                let Some((name, value)) = line.trim().split_once(": ") else { break };
                headers.insert(name.to_ascii_lowercase(), value.to_owned());
            }
            let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            if headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(&*body).read_to_end(&mut plain).unwrap();
                body = plain;
            }
            let behaviour = self.state.lock().unwrap().0.clone();
            let accepted = matches!(behaviour, Behaviour::Accept(_) | Behaviour::Slow(_) | Behaviour::Huge);
            if let Behaviour::Slow(time) = behaviour {
                std::thread::park_timeout(time);
            }
            self.state.lock().unwrap().1.push(Recorded { path, headers, body, accepted });
            let answer = |status: &str, headers: &str, body: &[u8]| {
                let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
                [head.as_bytes(), body].concat()
            };
            let protobuf = "Content-Type: application/x-protobuf\r\n";
            let answer = match behaviour {
                Behaviour::Accept(body) => answer("200 OK", protobuf, &body),
                Behaviour::Slow(_) => answer("200 OK", protobuf, &[]),
                Behaviour::Refuse(status, headers, body) => answer(status, headers, &body),
                Behaviour::Hang => loop {
                    std::thread::park();
                },
                Behaviour::Huge => {
                    writer.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").ok()?;
                    loop {
                        writer.write_all(b"1000\r\n").ok()?;
                        writer.write_all(&[b'x'; 0x1000]).ok()?;
                        writer.write_all(b"\r\n").ok()?;
                    }
                }
                Behaviour::Close => return None,
            };
            writer.write_all(&answer).ok()?;
        }
    }

    pub(crate) fn recorded(&self, path: &str) -> Vec<Recorded> {
        let all = self.state.lock().unwrap().1.clone();
        all.into_iter().filter(|recorded| recorded.path == path).collect()
    }

    fn accepted(&self, path: &str) -> Vec<Vec<u8>> {
        let accepted = self.recorded(path).into_iter().filter(|recorded| recorded.accepted);
        accepted.map(|recorded| recorded.body).collect()
    }

    /// All spans that were accepted, with their resource.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.spans_at("/v1/traces")
    }

    pub(crate) fn spans_at(&self, path: &str) -> Vec<Span> {
        let requests = self.accepted(path);
        let requests = requests.iter().map(|body| ExportTraceServiceRequest::decode(&**body).unwrap());
        let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|all| all.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    /// All log records that were accepted.
    pub(crate) fn records(&self) -> Vec<LogRecord> {
        let requests = self.accepted("/v1/logs");
        let requests = requests.iter().map(|body| ExportLogsServiceRequest::decode(&**body).unwrap());
        let scopes = requests.flat_map(|request| request.resource_logs).flat_map(|all| all.scope_logs);
        scopes.flat_map(|scope| scope.log_records).collect()
    }

    /// The metrics of each accepted request, and the resource.
    pub(crate) fn metrics(&self) -> Vec<(Resource, Vec<Metric>)> {
        let requests = self.accepted("/v1/metrics");
        let requests = requests.iter().map(|body| ExportMetricsServiceRequest::decode(&**body).unwrap());
        let resources = requests.flat_map(|request| request.resource_metrics);
        resources
            .map(|all| {
                let metrics = all.scope_metrics.into_iter().flat_map(|scope| scope.metrics).collect();
                (all.resource.unwrap(), metrics)
            })
            .collect()
    }

    /// Waits until a span of this name was accepted.
    pub(crate) fn wait_for_span(&self, name: &str) -> Span {
        wait_until(&format!("the span `{name}` arrives"), || {
            self.spans().iter().any(|span| span.name == name)
        });
        self.spans().into_iter().find(|span| span.name == name).unwrap()
    }
}

/// The text of an attribute, also of a number.
pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let pair = attributes.iter().find(|pair| pair.key == key)?;
    Some(match pair.value.clone()?.value? {
        any_value::Value::StringValue(text) => text,
        any_value::Value::IntValue(number) => number.to_string(),
        any_value::Value::BoolValue(flag) => flag.to_string(),
        other => panic!("{other:?}"),
    })
}

/// The text of a record.
pub(crate) fn text(record: &LogRecord) -> String {
    match record.body.clone().unwrap().value.unwrap() {
        any_value::Value::StringValue(text) => text,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
