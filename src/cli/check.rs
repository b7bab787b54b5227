//! `check`: every mistake of a configuration, or what it would do.

use std::io::Write;

use containerpilot_config::diagnose::{Report, Severity, Style};
use containerpilot_config::{Input, Loaded, load};
use containerpilot_core::plan::Plan;

use super::flags::Arguments;
use super::{Failure, colour, config_path, orders, print, summary};
use crate::load::files;
use crate::load::host::ThisHost;
use crate::load::source::{self, OPTIONS};

pub(super) fn check(args: &Arguments) -> Result<(), Failure> {
    if args.is_on("diff") {
        if !args.rest.is_empty() {
            let words = "-diff takes no path: the supervisor reads what it was started with";
            return Err(Failure::Usage(words.to_owned()));
        }
        return orders::diff(args);
    }
    let format = args.text("format");
    if !matches!(format, "" | "human" | "json") {
        return Err(Failure::Usage(format!("there is no format `{format}`; there are `human` and `json`")));
    }
    let read = match files::read(config_path(args).as_deref()) {
        Ok(read) => read,
        Err(message) => {
            // A program that asks for JSON gets JSON, whatever happened.
            if format == "json" {
                print(&summary::json(None, false, &source::error_report(&message.to_string())))?;
            }
            return Err(Failure::Failed(message.to_string()));
        }
    };
    let names: Vec<String> = read.iter().map(|input| input.name.clone()).collect();
    let Loaded { plan, report } = loaded(read);
    let good = plan.is_some() && report.count(Severity::Fault) == 0;
    if format == "json" {
        print(&summary::json(plan.as_ref(), good, &report))?;
    } else {
        complain(&report, true);
        match plan.as_ref().filter(|_| good) {
            Some(plan) => print(&summary::human(&names, plan))?,
            None => tally(&report),
        }
    }
    if good { Ok(()) } else { Err(Failure::Failed(String::new())) }
}

/// Loads the configuration as the supervisor does: what can never work is only warned about. `otherwise` says what does
/// not happen if there are errors.
pub(super) fn loads(inputs: Vec<Input>, otherwise: &str) -> Result<Plan, Failure> {
    let Loaded { plan, report } = loaded(inputs);
    complain(&report, false);
    plan.ok_or_else(|| Failure::Failed(format!("the configuration has errors, so {otherwise}")))
}

fn loaded(inputs: Vec<Input>) -> Loaded {
    load(inputs, &ThisHost::current(), OPTIONS)
}

/// Prints what was found to standard error.
pub(super) fn complain(report: &Report, faults_are_errors: bool) {
    let mut text = report.display(style(faults_are_errors)).to_string();
    if !text.is_empty() {
        text.push('\n');
        // Without standard error there is nobody to tell; the exit code still does.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// How problems are shown on standard error.
pub(super) fn style(faults_are_errors: bool) -> Style {
    Style { faults_are_errors, colour: colour() }
}

fn tally(report: &Report) {
    let errors = report.count(Severity::Error) + report.count(Severity::Fault);
    let warnings = report.count(Severity::Warning);
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut line = plural(errors, "error");
    if warnings > 0 {
        line += &format!(", {}", plural(warnings, "warning"));
    }
    let _ = writeln!(std::io::stderr(), "{line}");
}
