//! The real binary in real containers. `make test-docker` runs these tests; `scripts/docker` starts an engine for them.
//!
//! No image is pulled. One image contains only the binary, the other also a static busybox.

mod compose_files;
pub(crate) mod docker_compose;
mod engine;
mod exit_codes;
mod failed_tests;
mod health;
mod images;
mod limits;
mod name_resolution;
mod reaping;
mod signals;
mod users;
