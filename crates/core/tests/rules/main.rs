//! What is decided, rule by rule, in virtual time: no process, no clock, no waiting.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

mod commands;
mod coprocesses;
mod difference;
mod discovery;

mod events;
mod health;
mod processes;
mod reload;
mod sensors;
mod stage;
mod stopping;
mod when;
