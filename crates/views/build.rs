//! Packs the page: for a supervisor one document, compressed with gzip, and the policy that names its style and its
//! script by their hashes; for a recording one document with its policy in it.

use std::io::{Error, Result, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};

#[path = "build/sha256.rs"]
mod sha256;

const FOLDER: &str = "page";
/// One script in several files, in this order.
const SCRIPT: [&str; 8] = [
    "script/base.js",
    "script/nodes.js",
    "script/graph.js",
    "script/overview.js",
    "script/timeline.js",
    "script/panel.js",
    "script/state.js",
    "script/input.js",
];
/// Its last file: where the states come from.
const LIVE: &str = "script/live.js";
const RECORDED: &str = "script/recorded.js";

fn read(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER).join(name);
    println!("cargo:rerun-if-changed={}", path.display());
    std::fs::read_to_string(&path).map_err(|error| Error::new(error.kind(), format!("{name}: {error}")))
}

/// A script or a style without indentation and without lines that are a comment. A template literal must end on its
/// line, because spaces in it count.
fn without_comments(name: &str) -> Result<String> {
    let mut text = String::new();
    for line in read(name)?.lines().map(str::trim_start) {
        if line.matches('`').count() % 2 == 1 && !line.starts_with("//") {
            return Err(Error::other(format!("{name}: a template literal is longer than its line: {line}")));
        }
        let is_comment = line.starts_with("//") || line.starts_with("/*") && line.ends_with("*/");
        if !is_comment && !line.is_empty() {
            text += line;
            text.push('\n');
        }
    }
    Ok(text)
}

/// A document: its style and script, and what it has besides.
fn document(style: &str, script: &str, policy: &str, controls: &str) -> Result<String> {
    let document = read("page.html")?.replace("{{policy}}", policy).replace("{{controls}}", controls);
    Ok(document.replace("{{style}}", style).replace("{{script}}", script))
}

/// Names the style and the script by their hashes.
fn policy(style: &str, script: &str, more: &str) -> String {
    let hash = |text: &str| STANDARD.encode(sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; {more}img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(style),
        hash(script)
    )
}

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=build");
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    let style = without_comments("page.css")?;
    let script = SCRIPT.into_iter().map(without_comments).collect::<Result<String>>()?;

    let live = script.clone() + &without_comments(LIVE)?;
    let live_policy = policy(&style, &live, "connect-src 'self'; frame-ancestors 'none'; ");
    // Neither a time nor a name, and the same system everywhere: the same sources give the same bytes.
    let mut packed = GzBuilder::new().operating_system(255).write(Vec::new(), Compression::best());
    packed.write_all(document(&style, &live, "", "")?.as_bytes())?;
    std::fs::write(folder.join("live.html.gz"), packed.finish()?)?;
    std::fs::write(folder.join("live.policy"), live_policy)?;

    let style = style + &without_comments("recorded.css")?;
    let recorded = script + &without_comments(RECORDED)?;
    let policy = policy(&style, &recorded, "");
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n");
    std::fs::write(
        folder.join("recorded.html"),
        document(&style, &recorded, &policy, &read("recorded.html")?)?,
    )
}
