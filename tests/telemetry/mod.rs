//! The telemetry server of the real binary, read by an HTTP client and by a real Prometheus (T1–T3).

mod page;
mod pages;
mod prometheus;
mod sensors;
mod server;
mod usage;
