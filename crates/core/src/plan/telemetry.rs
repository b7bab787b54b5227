//! The telemetry server and its metrics.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The telemetry server (T1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// The address it listens on.
    pub address: IpAddr,
    /// The port it listens on.
    pub port: u16,
    /// The tags it is advertised with.
    pub tags: Vec<String>,
    /// The metrics that jobs may report.
    pub metrics: Vec<Metric>,
    /// The page for people; `None` if it is switched off (T5).
    pub page: Option<Page>,
}

/// The live page of the telemetry server (T5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// True if it shows command lines and messages that quote them.
    pub arguments: bool,
    /// True if it shows the last lines of the output of jobs.
    pub logs: bool,
    /// The host names under which it may be requested, beside addresses and names that are not public.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub hosts: Vec<String>,
}

/// A metric that jobs may report (T2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The name on the metrics page: the non-empty parts joined by `_`.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub name: String,
    /// The name as 3.8 joins it, with empty parts. Values may be reported under this name too.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub legacy_key: String,
    /// The help text.
    pub help: String,
    /// The type of the metric.
    pub kind: MetricKind,
}

/// The type of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricKind {
    /// A sum of all values.
    Counter,
    /// The last value.
    Gauge,
    /// Counts in buckets.
    Histogram {
        /// The upper bounds, ascending.
        buckets: Vec<f64>,
    },
    /// Quantiles over a sliding window.
    Summary,
}
