//! The control plane from outside: the real binary, a plain client and curl (X1, X2, D8, L5, E4, S6).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

mod badluck;
mod client;
mod curl;
mod described;
mod jobs;
mod routes;
mod socket;
mod streams;
#[expect(dead_code, reason = "shared with the supervisor's own tests, which need more of it")]
#[path = "../supervisor/support.rs"]
mod support;
