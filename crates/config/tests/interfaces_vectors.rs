//! The vectors of `interfaces.json` (D6). Names such as `br-lan` and `eth0.100` are accepted on purpose.

use std::path::PathBuf;

use containerpilot_config::interfaces::{HostAddress, InterfaceSpec, choose};
use serde_json::Value;

fn folder() -> PathBuf {
    let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    std::env::var_os("VECTORS_DIR").map_or_else(|| PathBuf::from(copy), PathBuf::from)
}

/// A name with `-` or `.` in it that 3.8 refuses for that reason alone.
fn has_wider_name(spec: &str) -> bool {
    let name = spec.split([':', '[']).next().unwrap_or_default();
    let allowed = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
    name.contains(['-', '.'])
        && name.chars().all(allowed)
        && !name.starts_with(['-', '.'])
        && !name.chars().all(|char| char.is_ascii_digit() || char == '.')
}

fn outcome(specs: &[&str], addresses: &[HostAddress]) -> Result<String, &'static str> {
    let specs: Result<Vec<_>, _> = specs.iter().map(|spec| InterfaceSpec::parse(spec)).collect();
    let specs = specs.map_err(|_| "bad-spec")?;
    choose(&specs, addresses).map(|ip| ip.to_string()).ok_or("no-match")
}

#[test]
fn d6_vectors_interfaces() {
    let text = std::fs::read_to_string(folder().join("interfaces.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let (mut passed, mut failed, mut on_purpose) = (0, 0, 0);
    for case in &cases {
        let specs: Vec<&str> =
            case["specs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let addresses: Vec<HostAddress> = case["addresses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|address| HostAddress {
                interface: address["iface"].as_str().unwrap().to_owned(),
                ip: address["ip"].as_str().unwrap().parse().unwrap(),
            })
            .collect();
        let expected = match case["result"].as_str() {
            Some(result) => Ok(result.to_owned()),
            None => Err(case["kind"].as_str().unwrap_or("no kind")),
        };
        let found = outcome(&specs, &addresses);
        if found == expected {
            passed += 1;
        } else if expected == Err("bad-spec") && specs.iter().any(|spec| has_wider_name(spec)) {
            on_purpose += 1;
            println!("interfaces.json: on purpose: a name with `-` or `.`: {specs:?} gives {found:?}");
        } else {
            failed += 1;
            println!("interfaces.json {} {specs:?}: expected {expected:?}, found {found:?}", case["id"]);
        }
    }
    println!("interfaces.json: {passed} passed, {failed} failed, {on_purpose} differ on purpose");
    assert_eq!(failed, 0);
}
