//! Loads a configuration for a command, and prints its problems.

use std::io::Write;
use std::rc::Rc;

use containerpilot_config::diagnostics::{Report, Severity};
use containerpilot_config::{ConfigFile, LoadedConfig, load};
use containerpilot_core::plan::Plan;
use containerpilot_load::config_source::OPTIONS;
use containerpilot_load::host::{self, ThisHost};
use containerpilot_load::looks::Looks;
use containerpilot_text::summary::plural;

use crate::failure::Failure;
use crate::report::print_report;

/// Loads a configuration as the supervisor does: a configuration that can never work gets only a warning. `otherwise`
/// completes the sentence "the configuration has errors, so".
pub fn load_or_fail(inputs: Vec<ConfigFile>, otherwise: &str) -> Result<Plan, Failure> {
    let LoadedConfig { plan, report } = load_here(inputs);
    print_report(&report, false);
    plan.ok_or_else(|| Failure::Failed(format!("the configuration has errors, so {otherwise}")))
}

pub fn load_here(inputs: Vec<ConfigFile>) -> LoadedConfig {
    load(inputs, &ThisHost::current(), OPTIONS)
}

/// The same, with the looks that have read the inputs.
pub fn load_with(inputs: Vec<ConfigFile>, looks: Rc<Looks>) -> LoadedConfig {
    load(inputs, &ThisHost::new(host::environment(), looks), OPTIONS)
}

pub fn print_totals(report: &Report) {
    let errors = report.count(Severity::Error) + report.count(Severity::Fault);
    let warnings = report.count(Severity::Warning);
    let mut line = plural(errors, "error");
    if warnings > 0 {
        line += &format!(", {}", plural(warnings, "warning"));
    }
    let _ = writeln!(std::io::stderr(), "{line}");
}
