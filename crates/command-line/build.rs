//! The git hash for `containerpilot version`. `CONTAINERPILOT_GIT_HASH` overrides it (`make static`, Docker); outside
//! of a clone there is none.

use std::path::Path;
use std::process::Command;

const VARIABLE: &str = "CONTAINERPILOT_GIT_HASH";

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim_end().to_owned())
}

fn main() {
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    // `logs/HEAD` changes with every commit. For a file that does not exist Cargo would run this at every build.
    for file in ["HEAD", "logs/HEAD"].iter().filter_map(|name| git(&["rev-parse", "--git-path", name])) {
        if Path::new(&file).exists() {
            println!("cargo:rerun-if-changed={file}");
        }
    }
    // With another prefix, these sources are a folder of another repository.
    let is_clone =
        git(&["rev-parse", "--show-prefix"]).is_some_and(|prefix| prefix == "crates/command-line/");
    if is_clone
        && std::env::var_os(VARIABLE).is_none()
        && let Some(hash) = git(&["rev-parse", "--short", "HEAD"])
    {
        println!("cargo:rustc-env={VARIABLE}={hash}");
    }
}
