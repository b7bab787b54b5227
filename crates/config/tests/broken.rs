//! Invalid files and their reports (C5).
//!
//! Each `broken/NAME.json5` has the mistakes that its name describes; `broken/NAME.txt` is the report that `check` prints. The
//! first line of a file is its environment (`// env: A=1 B=two`, with `\n` for a line break), the second the number of mistakes
//! (`// mistakes: 2`). A report with more errors contains a consequence of a mistake; one with fewer errors misses a mistake.
//! `BLESS=1` rewrites the reports; read them before you commit.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use containerpilot_config::diagnostics::{Report, Severity, Style};
use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{ConfigFile, LoadedConfig, Options, load};

/// The maximum width of a report, in columns.
const MAX_WIDTH: usize = 130;

#[test]
fn c5_every_invalid_file_has_the_expected_report() {
    let bless = std::env::var_os("BLESS").is_some();
    let files = files();
    assert!(files.len() >= 65, "only {} files", files.len());
    let mut wrong = Vec::new();
    for path in &files {
        let report = shown(&loaded(path).report);
        let expected = path.with_extension("txt");
        if bless {
            fs::write(&expected, &report).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != report {
            wrong.push(format!("{}:\n{report}", name(path)));
        }
    }
    assert!(wrong.is_empty(), "{} reports differ (see BLESS above):\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn c5_a_report_has_one_error_per_mistake() {
    let mut wrong = Vec::new();
    for path in files() {
        let stated: usize = header(&path, 1, "// mistakes:").parse().unwrap();
        let LoadedConfig { plan, report } = loaded(&path);
        let found = report.count(Severity::Error) + report.count(Severity::Fault);
        // A file with 0 mistakes is only rejected by --strict (C9).
        assert!(!report.problems().is_empty(), "{} is a valid configuration", name(&path));
        assert!(report.count(Severity::Error) == 0 || plan.is_none(), "{} is started", name(&path));
        if found != stated {
            wrong.push(format!("{}: {stated} mistakes, {found} errors", name(&path)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn c5_every_error_has_a_place_and_a_caret() {
    for path in files() {
        let source = fs::read(&path).unwrap();
        let lines: Vec<&[u8]> = source.split(|byte| *byte == b'\n').collect();
        let report = loaded(&path).report;
        for one in report.problems() {
            let at = one.location.as_ref().unwrap_or_else(|| panic!("{}: no place", name(&path)));
            assert_eq!(report.file_name(at.file), name(&path));
            let line = lines.get(at.line - 1).unwrap_or_else(|| panic!("{}: line {}", name(&path), at.line));
            // The place after the last character is valid too: something is missing there.
            let columns = String::from_utf8_lossy(line).chars().count() + 1;
            assert!((1..=columns).contains(&at.column), "{}: column {}", name(&path), at.column);
            let message = &one.problem.message;
            assert!(!message.is_empty() && !message.ends_with('.'), "{}: {message}", name(&path));
        }
        let text = shown(&report);
        let carets = text.lines().filter(|line| line.trim_start_matches([' ', '|']).starts_with('^')).count();
        assert_eq!(carets, report.problems().len(), "{}:\n{text}", name(&path));
        let controls = |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert!(!text.contains(controls), "{}: {text:?}", name(&path));
        let wide = text.lines().find(|line| line.chars().count() > MAX_WIDTH);
        assert_eq!(wide, None, "{}", name(&path));
    }
}

/// Hiding the consequences of an error must not hide the only error: a file with a line or its end removed is valid or has an
/// error.
#[test]
fn c5_every_rejected_file_has_an_error() {
    for path in files() {
        let source = fs::read(&path).unwrap();
        let lines: Vec<&[u8]> = source.split_inclusive(|byte| *byte == b'\n').collect();
        for lost in 2..lines.len() {
            let without: Vec<u8> = [&lines[..lost], &lines[lost + 1..]].concat().concat();
            for text in [without, lines[..lost].concat()] {
                let LoadedConfig { plan, report } = loaded_text(&path, text);
                let reason = report.count(Severity::Error) > 0;
                assert!(plan.is_some() != reason, "{} without line {}", name(&path), lost + 1);
                assert!(!shown(&report).contains("internal error"), "{} line {}", name(&path), lost + 1);
            }
        }
    }
}

#[test]
fn l5_no_report_shows_a_secret() {
    for path in files() {
        let text = shown(&loaded(&path).report);
        for (variable, value) in environment(&path) {
            let secret = ["PASSWORD", "TOKEN", "SECRET"].iter().any(|word| variable.contains(word));
            assert!(!secret || !text.contains(&value), "{}:\n{text}", name(&path));
        }
    }
}

/// The invalid files, sorted by name.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "json5")).collect();
    files.sort();
    files
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// The value in a line of the file's header.
fn header(path: &Path, line: usize, word: &str) -> String {
    let source = fs::read(path).unwrap();
    // The header of a UTF-16 file is UTF-16 too.
    let source: Vec<u8> = source.into_iter().filter(|byte| !matches!(byte, 0 | 0xfe | 0xff)).collect();
    let text = String::from_utf8_lossy(&source);
    let line = text.lines().nth(line).unwrap_or_default();
    let says = line.strip_prefix(word).unwrap_or_else(|| panic!("{}: no `{word}`", name(path)));
    says.trim().to_owned()
}

fn environment(path: &Path) -> Vec<(String, String)> {
    let pairs = header(path, 0, "// env:");
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), value.replace("\\n", "\n"))
    };
    pairs.split_whitespace().map(pair).collect()
}

fn loaded(path: &Path) -> LoadedConfig {
    loaded_text(path, fs::read(path).unwrap())
}

fn loaded_text(path: &Path, text: Vec<u8>) -> LoadedConfig {
    let input = ConfigFile { name: name(path).to_owned(), text };
    load(vec![input], &host(path), Options { version: "1.2.3" })
}

/// A host with two interfaces and two users, on which every program exists.
fn host(path: &Path) -> StaticHost {
    let address =
        |interface: &str, ip: &str| HostAddress { interface: interface.into(), ip: ip.parse().unwrap() };
    let variables = environment(path).into_iter();
    StaticHost {
        environment: variables.map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect(),
        addresses: vec![address("lo", "127.0.0.1"), address("eth0", "10.0.0.7"), address("eth0", "fe80::7")],
        hostname: "box".into(),
        accounts: ["app".to_owned(), "www".to_owned()].into(),
        ..StaticHost::default()
    }
}

fn shown(report: &Report) -> String {
    report.display(Style { faults_are_errors: true, colour: false }).to_string()
}
