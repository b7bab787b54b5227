//! The version of both programs.

/// The version without the build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version in the format of 3.8, and the build date. `build.rs` finds the hash; `scripts/dist` and
/// `Dockerfile.build` set the date.
pub fn version() -> String {
    let hash = option_env!("CONTAINERPILOT_GIT_HASH").unwrap_or("unknown");
    let date = option_env!("CONTAINERPILOT_BUILD_DATE").unwrap_or("unknown");
    format!("Version: {}\nGitHash: {hash}\nBuildDate: {date}\n", VERSION)
}
