//! The real binary with real jobs, both as an ordinary process and as PID 1.

mod actions;
mod coprocesses;
mod environment;
mod events;
mod failures;
mod files;
mod health;
mod jobs;
mod log_files;
mod logging;
mod panics;
mod process_groups;
mod processes;
mod quickstart;
mod requires;
mod start_storms;
mod stop_signals;
mod stopping;
mod version2;
