//! The rules, one by one, in virtual time: no process, no clock, no waiting.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

mod action_rings;
mod actions;
mod adjust;
mod coprocesses;
mod dependencies;
mod discovery;
mod drain;
mod events;
mod files;
mod harness;
mod health;
mod locks;
mod logging;
mod outcomes;
mod plan_diff;
mod process_groups;
mod processes;
mod readiness;
mod redaction;
mod reload;
mod replicas;
mod reports;
mod requests;
mod requires;
mod restart_policy;
mod schedules;
mod sensors;
mod shutdown;
mod start_storms;
mod stop_signals;
mod stop_time;
mod stopping;
mod watch_queries;
mod watches;
mod when;
