//! The comparison with other init systems in `benches/peers`: its page matches its figures, and it still measures.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::deadline::InTime;
use crate::support::program::repository;
use crate::support::skip::skip;

fn harness(words: &[&str]) -> Output {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Command::new("python3").arg(here.join("benches/peers")).args(words).output_in_time().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `BLESS=1` rewrites the page and its pictures from the stored figures, without measuring.
#[test]
fn peers_page_matches_its_figures() {
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let done = harness(&[if bless { "--render" } else { "--check" }]);
    assert!(done.status.success(), "{}", stderr(&done));
}

/// A page that is older than the last release says nothing about it.
#[test]
fn peers_page_is_about_this_version() {
    let page = std::fs::read_to_string(repository().join("docs/peers.json")).unwrap();
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    let version = page.pointer("/peers/containerpilot/version").and_then(serde_json::Value::as_str);
    assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "run `make bench-peers` on an idle machine");
    let measured = page.pointer("/scenes/size/samples/size-own/containerpilot/0").unwrap().as_f64().unwrap();
    let binary =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from);
    let Ok(file) = std::fs::metadata(binary.join("artifacts/containerpilot")) else {
        return skip(
            "the size in docs/peers.md is compared with target/artifacts/containerpilot: run `make static`",
        );
    };
    let size = file.len() as f64 / 1024.0;
    assert!((size / measured - 1.0).abs() < 0.02, "it has {size:.0} KiB, docs/peers.md says {measured}");
}

/// Runs a few scenes quickly; the figures themselves do not matter.
#[test]
#[ignore = "slow: measures"]
fn peers_harness_measures_a_few_scenes_quickly() {
    let folder = std::env::temp_dir().join(format!("containerpilot-peers-{}", std::process::id()));
    let out = folder.display().to_string();
    let ours = ["--binary", env!("CARGO_BIN_EXE_containerpilot"), "--peers", "floor,containerpilot"];
    let quick = ["--quick", "--scenes", "start,fleet,log,restart", "--patience", "0", "--out", &out];
    let done = harness(&[&ours[..], &quick[..]].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    let page = std::fs::read_to_string(folder.join("peers.md")).unwrap();
    let kept = std::fs::read_to_string(folder.join("peers.json")).unwrap();
    let picture = std::fs::read_to_string(folder.join("peers/log.svg")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();

    for row in ["start of one service", "start of 10 services", "log as JSON", "CPU time per restart"] {
        let line = page.lines().find(|line| line.starts_with(&format!("| {row}")));
        let cells: Vec<&str> = line.unwrap_or_default().split('|').map(str::trim).collect();
        let figure = cells.get(3).copied().unwrap_or_default().trim_matches('*').replace(',', "");
        assert!(figure.parse::<f64>().is_ok_and(|figure| figure > 0.0), "{row}: {line:?}\n{}", stderr(&done));
    }
    assert!(picture.contains("<svg") && picture.contains("</svg>"));
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let failed = kept.pointer("/scenes/start/failed").and_then(serde_json::Value::as_object).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn peers_harness_lists_the_scenes_for_an_unknown_name() {
    let done = harness(&["--binary", env!("CARGO_BIN_EXE_containerpilot"), "--scenes", "lunch"]);
    assert!(!done.status.success());
    assert!(
        stderr(&done).contains("there is no scene 'lunch': it is one of start, memory"),
        "{}",
        stderr(&done)
    );
}
