//! `interfaces.json`: which address is advertised.

use containerpilot_config::interfaces::{HostAddress, InterfaceSpec, choose};
use serde_json::Value;

use super::harness::{Outcome, run, text};

#[test]
fn d6_vectors_interfaces() {
    run("interfaces.json", |case| {
        let specs: Vec<&str> =
            case["specs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let addresses = case["addresses"].as_array().into_iter().flatten();
        let addresses: Vec<HostAddress> = addresses
            .map(|address| HostAddress {
                interface: text(address, "iface").to_owned(),
                ip: text(address, "ip").parse().unwrap(),
            })
            .collect();
        let expected = case["result"].as_str().map(str::to_owned).ok_or(text(case, "kind"));
        let found = outcome(&specs, &addresses);
        if found == expected {
            Outcome::Passed
        } else if expected == Err("bad-spec") && specs.iter().any(|spec| has_wider_name(spec)) {
            Outcome::Deviates("interface-names")
        } else {
            Outcome::Failed(format!("{specs:?}: expected {expected:?}, found {found:?}"))
        }
    });
}

fn outcome(specs: &[&str], addresses: &[HostAddress]) -> Result<String, &'static str> {
    let specs: Result<Vec<_>, _> = specs.iter().map(|spec| InterfaceSpec::parse(spec)).collect();
    let specs = specs.map_err(|_| "bad-spec")?;
    choose(&specs, addresses).map(|ip| ip.to_string()).ok_or("no-match")
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
