//! The git hash for `containerpilot version`. `CONTAINERPILOT_GIT_HASH` overrides it (`make static`, Docker); outside of a clone there is none.
//! And the pages of the manual, compressed, for `containerpilot help`.

use std::io::Error;
use std::path::Path;
use std::process::Command;

const VARIABLE: &str = "CONTAINERPILOT_GIT_HASH";

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim_end().to_owned())
}

/// Writes the pages to `OUT_DIR/manual.lzma`.
fn pack_manual() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packed = containerpilot_manual::manual::pack(|path| {
        println!("cargo:rerun-if-changed={}", root.join(path).display());
        std::fs::read_to_string(root.join(path))
            .map_err(|error| Error::new(error.kind(), format!("{path}: {error}")))
    })?;
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    std::fs::write(Path::new(&folder).join("manual.lzma"), packed)
}

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    // `logs/HEAD` changes with every commit. For a file that does not exist Cargo would run this at every build.
    for file in ["HEAD", "logs/HEAD"].iter().filter_map(|name| git(&["rev-parse", "--git-path", name])) {
        if Path::new(&file).exists() {
            println!("cargo:rerun-if-changed={file}");
        }
    }
    // With a prefix, these sources are a folder of another repository.
    let is_clone = git(&["rev-parse", "--show-prefix"]).is_some_and(|prefix| prefix.is_empty());
    if is_clone
        && std::env::var_os(VARIABLE).is_none()
        && let Some(hash) = git(&["rev-parse", "--short", "HEAD"])
    {
        println!("cargo:rustc-env={VARIABLE}={hash}");
    }
    pack_manual()
}
