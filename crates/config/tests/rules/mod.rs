//! The rules of a configuration. Each test is named after its rule.
#![cfg(test)]

mod actions;
mod catalog;
mod coprocesses;
mod cron;
mod environment;
mod files;
mod keys;
mod legacy;
mod limits;
mod locks;
mod otlp;
mod plan;
mod ready;
mod rendered_files;
mod replicas;
mod requires;
mod stop_and_restart;
mod support;
mod unanswered;
mod validate;
