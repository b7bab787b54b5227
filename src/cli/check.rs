//! `check`: reports all errors of a configuration, or a summary of what it does.

use std::io::Write;
use std::rc::Rc;

use containerpilot_config::diagnostics::{Report, Severity};
use containerpilot_config::{Input, Loaded, load};
use containerpilot_core::plan::Plan;

use super::flags::Arguments;
use super::report::print_report;
use super::{Failure, as_json, config_path, control, print, summary};
use crate::load::command_line::{self, OPTIONS};
use crate::load::host::ThisHost;
use crate::load::looks::Looks;
use crate::load::{find_files, host};

pub(super) fn check(args: &Arguments) -> Result<(), Failure> {
    if args.is_on("diff") {
        if !args.rest.is_empty() {
            let words = "-diff takes no path: the supervisor reads its own configuration";
            return Err(Failure::Usage(words.to_owned()));
        }
        if args.is_on("strict") {
            return Err(Failure::Usage("-strict cannot be combined with -diff".to_owned()));
        }
        return control::diff(args);
    }
    let json = as_json(args)?;
    let looks = Rc::new(Looks::reported_on_stderr());
    let read = match find_files::read_with(config_path(args).as_deref(), &looks) {
        Ok(read) => read,
        Err(message) => {
            // With --format json the output is always JSON.
            if json {
                print(&summary::json(None, false, &command_line::error_report(&message.to_string())))?;
            }
            return Err(Failure::Failed(message.to_string()));
        }
    };
    let names: Vec<String> = read.iter().map(|input| input.name.clone()).collect();
    let Loaded { plan, report } = load(read, &ThisHost::new(host::environment(), looks), OPTIONS);
    let report = if args.is_on("strict") { report.strict() } else { report };
    let good = plan.is_some() && report.count(Severity::Fault) == 0;
    if json {
        print(&summary::json(plan.as_ref(), good, &report))?;
    } else {
        print_report(&report, true);
        match plan.as_ref().filter(|_| good) {
            Some(plan) => print(&summary::human(&names, plan))?,
            None => print_totals(&report),
        }
    }
    if good { Ok(()) } else { Err(Failure::Reported) }
}

/// Loads a configuration as the supervisor does: a configuration that can never work gets only a warning. `otherwise` completes
/// the sentence "the configuration has errors, so".
pub(super) fn load_or_fail(inputs: Vec<Input>, otherwise: &str) -> Result<Plan, Failure> {
    let Loaded { plan, report } = load(inputs, &ThisHost::current(), OPTIONS);
    print_report(&report, false);
    plan.ok_or_else(|| Failure::Failed(format!("the configuration has errors, so {otherwise}")))
}

pub(super) fn print_totals(report: &Report) {
    let errors = report.count(Severity::Error) + report.count(Severity::Fault);
    let warnings = report.count(Severity::Warning);
    let mut line = summary::plural(errors, "error");
    if warnings > 0 {
        line += &format!(", {}", summary::plural(warnings, "warning"));
    }
    let _ = writeln!(std::io::stderr(), "{line}");
}
