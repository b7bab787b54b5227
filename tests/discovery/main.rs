//! Discovery with real Consul agents, and with servers that pretend to be one (D, E6, H6, S2, S6).
//!
//! A failing Consul must not affect jobs: every test ends with [`pilot::Pilot::assert_unharmed`], or says why not.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

#[path = "../support/certificates.rs"]
mod certificates;
mod cluster;
mod connection;
#[path = "../support/consul.rs"]
mod consul;
mod example;
mod fake_agent;
mod faults;
mod files;
#[path = "../support/http_request.rs"]
mod http_request;
mod lock_cluster;
mod locks;
mod network;
mod ownership;
mod pilot;
mod reload;
mod reported;
mod services;
#[expect(dead_code, reason = "tests/supervisor uses more of it")]
#[path = "../support/supervisor.rs"]
mod supervisor;
mod watches;
