//! The supervisor: the event loop, the log, the network, Consul, the control socket and telemetry.
//!
//! It makes no decisions about jobs: those are made in `containerpilot-core`.
#![forbid(unsafe_code)]

mod control;
mod discovery;
mod files;
#[doc(hidden)]
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod logs;
mod messages;
mod net;
mod recording;
mod redactor;
mod rotation;
mod runtime;
mod telemetry;
mod watches;

use containerpilot_config::template::Environment;
use containerpilot_core::Core;
use containerpilot_core::plan::Plan;
use containerpilot_load::config_source::ConfigSource;
use containerpilot_process::sys;

/// The version of the program, as the API and telemetry show it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns an error if a certificate and a key of the plan do not belong together, or cannot be used at all (D1). It is
/// text, because it is only shown.
pub fn check_credentials(plan: &Plan) -> Result<(), String> {
    net::connect::check_client_certificates(plan).map_err(|error| error.to_string())
}

/// Runs the supervisor with a plan until the container stops. The signals must be blocked already. Returns its exit
/// code, or why it could not start, which is only shown.
pub fn supervise(plan: Plan, environment: Environment, source: Option<ConfigSource>) -> Result<u8, String> {
    sys::limit_arenas();
    check_credentials(&plan)?;
    let mut runtime = runtime::Runtime::new(Core::new(plan), environment, source)
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.open().map_err(|error| error.to_string())?;
    Ok(runtime.run())
}
