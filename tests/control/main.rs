//! The control socket of the real binary, used by a minimal HTTP client and by curl (X1, X2, D8, L5, E4, S6).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod bad_clients;
mod curl;
#[path = "../support/http_client.rs"]
mod http_client;
mod jobs;
mod openapi;
mod routes;
mod socket;
mod streams;
#[expect(dead_code, reason = "tests/supervisor uses more of it")]
#[path = "../support/supervisor.rs"]
mod supervisor;
