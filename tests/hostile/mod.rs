//! Hostile jobs: no matter what a job does, the supervisor answers `ping` within a second and obeys SIGTERM within the
//! time that its stop timeout allows.
//!
//! Each test runs the real binary in a PID namespace of its own, as PID 1 or as a child of a small init, so that
//! nothing survives the test. The hostile programs are in `hostile.c`. Only root can start jobs as another user, so the
//! tests are skipped for other users.

mod before_exec;
mod cgroups;
mod configuration;
mod escapes;
mod fixture;
mod loading;
mod notices;
mod output;
mod paths;
mod resources;
mod servers;
mod shutdown_time;
mod signals;
mod terminal;
