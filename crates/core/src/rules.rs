//! The rules: what follows from an input, an event or a timer.

mod action;
mod adjust;
mod advertise;
mod completion;
mod dispatch;
mod environment;
mod exit;
mod exit_code;
mod file;
mod generation;
mod health;
mod lock;
mod maintenance;
mod orphans;
mod periodic;
mod reachability;
mod readiness;
mod reload;
mod replicas;
mod request;
mod requires;
mod restart;
mod rolling_restart;
mod shutdown;
pub mod signals;
mod start;
mod start_limit;
mod step;
mod stop;
mod timeout;
mod trigger;
mod watch;

pub(crate) use file::watch_names;
