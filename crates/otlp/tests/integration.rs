//! Spans, metrics and logs of a supervisor, and how they are written.

mod official;
mod tracer;
