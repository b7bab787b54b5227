//! Never a crash, a hang or quadratic time: what is too large, too deep or not text at all ends in a clear error.

use containerpilot_config::limits::SOURCE_BYTES;
use containerpilot_config::{Input, Loaded, Options, load};

use crate::support::{host, shown};

fn loaded(text: impl Into<Vec<u8>>) -> Loaded {
    let input = Input { name: "a.json5".into(), text: text.into() };
    load(vec![input], &host(), Options { version: "" })
}

fn refused(text: impl Into<Vec<u8>>, because: &str) {
    let loaded = loaded(text);
    let shown = shown(&loaded);
    assert!(loaded.plan.is_none());
    assert!(
        shown.contains(because),
        "expected {because:?} in: {}",
        shown.chars().take(2000).collect::<String>()
    );
    assert!(shown.len() < 100_000, "the answer itself is too long: {}", shown.len());
}

#[test]
fn a_file_that_is_too_large() {
    refused(vec![b' '; SOURCE_BYTES + 1], "too large for a configuration");
    refused(vec![b'{'; 10_000_000], "too large for a configuration");
}

#[test]
fn a_file_as_large_as_is_allowed_is_read() {
    let mut text = b"{ jobs: [] } //".to_vec();
    text.resize(SOURCE_BYTES, b'x');
    assert!(loaded(text).plan.is_some());
}

#[test]
fn lists_in_lists_in_lists() {
    for depth in [1_000, 1_000_000] {
        refused("[".repeat(depth), "nest");
        refused(format!("{{a: {}", "[".repeat(depth)), "nest");
        refused(format!("{{a: {}", "{a:".repeat(depth)), "nest");
    }
}

#[test]
fn huge_numbers() {
    for number in ["1e999", "-1e999", "9".repeat(400).as_str(), "0xffffffffffffffffffff", "NaN", "Infinity"] {
        refused(format!("{{ stopTimeout: {number} }}"), "`stopTimeout`");
        refused(format!("{{ jobs: [{{ name: 'a', exec: 'x', port: {number} }}] }}"), "`port`");
        refused(format!("{{ jobs: [{{ name: 'a', exec: 'x', timeout: {number} }}] }}"), "`timeout`");
        refused(format!("{{ jobs: [{{ name: 'a', exec: 'x', restarts: {number} }}] }}"), "`restarts`");
    }
    refused(format!("{{ stopTimeout: '{}h' }}", "9".repeat(5_000_000)), "`stopTimeout`");
}

#[test]
fn bytes_that_are_no_text() {
    refused(b"\xff\xfe{}".to_vec(), "a.json5:1:1");
    refused(b"{ \0: 1 }".to_vec(), "a.json5:1:3");
    refused(b"{ jobs: [{ name: 'a', exec: ['a\\0b'] }] }".to_vec(), "NUL");
    assert!(
        loaded(b"{ jobs: [{ name: 'a', exec: ['\xff'] }] }".to_vec()).plan.is_some(),
        "inside a text it is U+FFFD"
    );
}

#[test]
fn templates_that_would_never_end() {
    refused("{{ .A", "action");
    refused("{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}", "a.json5:1:");
    refused("{{ range loop 0 1000000000 }}x{{ end }}", "a.json5:1:");
    refused("{{ range loop 100000 }}{{ range loop 100000 }}x{{ end }}{{ end }}", "a.json5:1:");
    refused(
        "{{ $x := \"xxxxxxxxxxxxxxxx\" }}{{ range loop 100 }}{{ $x = print $x $x }}{{ end }}{{ $x }}",
        "a.json5:1:",
    );
    refused(format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)), "a.json5:1:");
    refused("{{ if true }}".repeat(100_000), "a.json5:1:");
}

#[test]
fn thousands_of_errors_are_told_in_part() {
    let text = format!("{{ jobs: [{}] }}", "{ name: 'a', exce: 'x' }, ".repeat(50_000));
    refused(text, "… and");
    refused(format!("{{ {} }}", "a b, ".repeat(100_000)), "a.json5:1:");
}
