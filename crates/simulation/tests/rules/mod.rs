//! Scenarios in virtual time, rule by rule.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod actions;
mod defaults;
mod expectations;
mod explore;
mod fields;
mod files;
mod readiness;
mod recorded;
mod replicas;
mod requires;
mod stop_and_restart;
mod support;
mod watches;
