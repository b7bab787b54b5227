//! Discovery with real Consul agents, and with servers that pretend to be one (D, E6, H6, S2, S6).
//!
//! A failing Consul must not affect jobs: every test ends with [`pilot::Pilot::assert_unharmed`], or says why not.

mod cluster;
mod connection;
mod example;
mod fake_agent;
mod faults;
mod files;
mod fleet;
mod lock_cluster;
mod locks;
mod network;
mod ownership;
mod pilot;
mod reload;
mod reported;
mod services;
mod watches;
