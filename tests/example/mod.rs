//! The examples with a `docker-compose.yml` in real containers, under load, while containers start, stop and die. They
//! need a Docker engine: `make test-docker`.

mod behind_nginx;
mod clients;
mod compose;
mod redis_clients;
mod replicated_db;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The test fails if a single wait takes longer.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The root of the repository.
const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// A script of the repository, with the download directory that all tests share.
fn script(name: &str) -> Command {
    let mut command = Command::new(Path::new(HOME).join("scripts").join(name));
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."));
    command
}

/// The static binary: an image FROM scratch has no dynamic loader. `scripts/test-docker` builds it.
fn static_binary() -> std::ffi::OsString {
    std::env::var_os("STATIC_BINARY").expect("STATIC_BINARY is not set; run `make test-docker`")
}

/// Waits until something holds, and says what it was that did not.
fn wait_until(what: impl Fn() -> String, holds: impl FnMut() -> bool) {
    crate::support::deadline::wait_until_within(TIMEOUT, what, holds);
}
