//! The export of the real binary to a collector, which reads requests with the messages that are generated from
//! OpenTelemetry's official definitions, and to a real one, which passes everything on to that (T6).

mod collector;
mod logs;
mod metrics;
mod outages;
mod real_collector;
mod traces;
