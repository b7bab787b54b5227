//! In real containers. `make test-docker` runs these; `scripts/docker` gives them an engine.
//!
//! No image is pulled: there is one of nothing but the binary, and one that has a static busybox too.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it does not expect")]

mod codes;
mod engine;
mod health;
mod images;
mod limits;
mod names;
mod orders;
#[path = "../supervisor/patience.rs"]
mod patience;
mod reaping;
mod rights;
