//! C5: input that is too large, too deep or not text is a clear error, without a crash, a hang or quadratic time.

use containerpilot_config::limits::SOURCE_BYTES;
use containerpilot_config::{ConfigFile, LoadedConfig, Options, load};

use super::support::{host, shown};

fn loaded(text: impl Into<Vec<u8>>) -> LoadedConfig {
    let input = ConfigFile { name: "a.json5".into(), text: text.into() };
    load(vec![input], &host(), Options { version: "" })
}

fn rejected(text: impl Into<Vec<u8>>, because: &str) {
    let loaded = loaded(text);
    let shown = shown(&loaded);
    assert!(loaded.plan.is_none());
    assert!(
        shown.contains(because),
        "expected {because:?} in: {}",
        shown.chars().take(2000).collect::<String>()
    );
    assert!(shown.len() < 100_000, "the report is too long: {}", shown.len());
}

#[test]
fn c5_a_file_can_be_too_large() {
    rejected(vec![b' '; SOURCE_BYTES + 1], "the file is larger than 8 MiB");
    rejected(vec![b'{'; 10_000_000], "the file is larger than 8 MiB");
}

#[test]
fn c5_a_file_of_the_maximum_size_is_loaded() {
    let mut text = b"{ jobs: [] } //".to_vec();
    text.resize(SOURCE_BYTES, b'x');
    assert!(loaded(text).plan.is_some());
}

#[test]
fn c5_a_program_or_a_binary_file_is_one_error() {
    let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0 {{ {{".to_vec();
    program.resize(5000, 0);
    let mut zeros = b"{{".to_vec();
    zeros.resize(5000, 0);
    for (file, message) in [
        (program, "error: this is a program, not a configuration\n"),
        (zeros, "error: this is a binary file\n"),
    ] {
        let loaded = loaded(file);
        assert_eq!(loaded.report.problems().len(), 1);
        assert!(shown(&loaded).starts_with(message), "{}", shown(&loaded));
    }
    let utf16: Vec<u8> = "{ jobs: [] }}".encode_utf16().flat_map(u16::to_be_bytes).collect();
    rejected(utf16, "this file is UTF-16, not UTF-8");
}

#[test]
fn c5_a_byte_that_is_not_utf8_is_a_warning() {
    let loaded = loaded(b"{ jobs: [{ name: \"caf\xe9\", exec: \"x\" }] }");
    assert!(loaded.plan.is_some());
    let shown = shown(&loaded);
    assert!(shown.starts_with("warning: byte 0xE9 is not UTF-8 and was read as U+FFFD\n"), "{shown}");
    assert!(shown.contains("= help: save the file as UTF-8"), "{shown}");
}

#[test]
fn c5_a_file_without_braces_gets_help_that_works() {
    let shown = shown(&loaded("name = \"x\"\n"));
    assert!(shown.contains("`coprocesses`: jobs: [ { name: … } ]"), "{shown}");
    assert!(!shown.contains("rendered"), "{shown}");
}

#[test]
fn c5_lists_can_be_nested_too_deeply() {
    for depth in [1_000, 1_000_000] {
        rejected("[".repeat(depth), "nest");
        rejected(format!("{{a: {}", "[".repeat(depth)), "nest");
        rejected(format!("{{a: {}", "{a:".repeat(depth)), "nest");
    }
}

#[test]
fn c5_numbers_can_be_too_large() {
    for number in ["1e999", "-1e999", "9".repeat(400).as_str(), "0xffffffffffffffffffff", "NaN", "Infinity"] {
        rejected(format!("{{ stopTimeout: {number} }}"), "`stopTimeout`");
        rejected(format!("{{ jobs: [{{ name: 'a', exec: 'x', port: {number} }}] }}"), "`port`");
        rejected(format!("{{ jobs: [{{ name: 'a', exec: 'x', timeout: {number} }}] }}"), "`timeout`");
        rejected(format!("{{ jobs: [{{ name: 'a', exec: 'x', restarts: {number} }}] }}"), "`restarts`");
    }
    rejected(format!("{{ stopTimeout: '{}h' }}", "9".repeat(5_000_000)), "`stopTimeout`");
}

#[test]
fn c5_bytes_can_be_invalid_utf8() {
    rejected(b"\xff\xfe{}".to_vec(), "a.json5:1:1");
    rejected(b"{ \0: 1 }".to_vec(), "a.json5:1:3");
    rejected(b"{ jobs: [{ name: 'a', exec: ['a\\0b'] }] }".to_vec(), "NUL");
    assert!(
        loaded(b"{ jobs: [{ name: 'a', exec: ['\xff'] }] }".to_vec()).plan.is_some(),
        "inside a string it is U+FFFD"
    );
}

#[test]
fn c5_templates_can_run_too_long() {
    rejected("{{ .A", "action");
    rejected("{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}", "a.json5:1:");
    rejected("{{ range loop 0 1000000000 }}x{{ end }}", "a.json5:1:");
    rejected("{{ range loop 100000 }}{{ range loop 100000 }}x{{ end }}{{ end }}", "a.json5:1:");
    rejected(
        "{{ $x := \"xxxxxxxxxxxxxxxx\" }}{{ range loop 100 }}{{ $x = print $x $x }}{{ end }}{{ $x }}",
        "a.json5:1:",
    );
    rejected(format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)), "a.json5:1:");
    rejected("{{ if true }}".repeat(100_000), "a.json5:1:");
}

#[test]
fn c5_of_thousands_of_errors_only_some_are_shown() {
    let text = format!("{{ jobs: [{}] }}", "{ name: 'a', exce: 'x' }, ".repeat(50_000));
    rejected(text, "… and");
    rejected(format!("{{ {} }}", "a b, ".repeat(100_000)), "a.json5:1:");
}
