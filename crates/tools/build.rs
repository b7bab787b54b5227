//! Packs the pages of the manual for `help`.

use std::io::Error;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packed = containerpilot_manual::manual::pack(|path| {
        println!("cargo:rerun-if-changed={}", root.join(path).display());
        std::fs::read_to_string(root.join(path))
            .map_err(|error| Error::new(error.kind(), format!("{path}: {error}")))
    })?;
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    std::fs::write(Path::new(&folder).join("manual.lzma"), packed)
}
