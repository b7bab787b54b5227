//! How the release binary is put together by the linker: identical functions once, and functions and constants that are
//! used together side by side. What is used at every start, and what is used while services run, lies within a few dozen
//! pages instead of all over the file: fewer page faults until the first program runs and until a signal is passed on, and
//! less memory while nothing happens.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=link-order.txt");
    println!("cargo::rerun-if-changed=link-order.ld");
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|found| found == value);
    // These are words of lld, which is what Rust links with on this platform. A linker of one's own may not know them.
    let usual = is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_ENV", "gnu");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if !is("PROFILE", "release") || !usual || flags.contains("linker") || flags.contains("fuse-ld") {
        return;
    }
    let (Ok(here), Ok(out)) = (std::env::var("CARGO_MANIFEST_DIR"), std::env::var("OUT_DIR")) else { return };
    let mut arguments = vec!["--icf=all".to_owned()];
    // Names that are not there (any more) do no harm: the rest is where the linker would have put it anyway.
    arguments.push(format!("--symbol-ordering-file={here}/link-order.txt"));
    arguments.push("--no-warn-symbol-ordering".to_owned());
    // Constants have sections, but most have no symbols; their order is a script that is put into the linker's own.
    arguments.push(format!("--script={here}/link-order.ld"));
    // OUT_DIR is `release/build/containerpilot-HASH/out`. `make order` reads the map.
    if let Some(release) = Path::new(&out).ancestors().nth(3) {
        arguments.push("--no-demangle".to_owned());
        arguments.push(format!("-Map={}", release.join("containerpilot.map").display()));
    }
    for argument in arguments {
        // Not `-Wl,`: a folder may have a comma in its name.
        println!("cargo::rustc-link-arg-bins=-Xlinker");
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
