//! What is exported to an OpenTelemetry collector.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{HttpTarget, Tls};

/// An OpenTelemetry collector, and what it gets (T6).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Otlp {
    /// Its address. The path is empty, or begins with a slash and ends without.
    pub endpoint: HttpTarget,
    /// Whether it gets log entries.
    pub logs: bool,
    /// Whether it gets spans.
    pub traces: bool,
    /// Whether it gets metrics.
    pub metrics: bool,
    /// The headers of every request, besides the usual ones.
    #[serde(serialize_with = "crate::recorded::names_as_is")]
    pub headers: Vec<(String, String)>,
    /// TLS settings, for https.
    pub tls: Option<Tls>,
    /// How long one request may take.
    pub timeout: Duration,
    /// How often metrics are sent.
    pub interval: Duration,
    /// The attributes that tell who sends.
    pub resource: BTreeMap<String, String>,
}

impl Otlp {
    /// The URL for one kind of data: `logs`, `metrics` or `traces`.
    #[must_use]
    pub fn url(&self, kind: &str) -> HttpTarget {
        HttpTarget { path: format!("{}/v1/{kind}", self.endpoint.path), ..self.endpoint.clone() }
    }
}

impl fmt::Debug for Otlp {
    /// Hides the values of headers: they may be secrets (L5).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        out.debug_struct("Otlp")
            .field("endpoint", &self.endpoint)
            .field("exports", &(self.logs, self.traces, self.metrics))
            .field("headers", &headers)
            .field("tls", &self.tls)
            .field("timeout", &self.timeout)
            .field("interval", &self.interval)
            .field("resource", &self.resource)
            .finish()
    }
}
