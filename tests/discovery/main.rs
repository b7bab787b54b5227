//! Discovery with real Consul agents, and with things that only look like one (D, E6, H6, S2, S6).
//!
//! Whatever happens to Consul, jobs go on: every test ends with [`pilot::Pilot::unharmed`], or says why not.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

mod agent;
mod cluster;
mod example;
mod faults;
mod impostor;
mod pilot;
mod reload;
mod request;
mod security;
mod services;
#[expect(dead_code, reason = "it is shared with the tests of the supervisor, which need more of it")]
#[path = "../supervisor/support.rs"]
mod support;
mod watches;
