//! `check`: reports all errors of a configuration, or a summary of what it does.

use std::rc::Rc;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::loading;
use containerpilot_command_line::options::as_json;
use containerpilot_command_line::options::config_path;
use containerpilot_command_line::output::print;
use containerpilot_command_line::report::print_report;
use containerpilot_config::LoadedConfig;
use containerpilot_config::diagnostics::{Problem, Severity};
use containerpilot_core::plan::Plan;
use containerpilot_load::config_source;
use containerpilot_load::find_files;
use containerpilot_load::looks::Looks;
use containerpilot_process::cgroups;
use containerpilot_text::summary;

use super::{Supervisor, control};

pub(super) fn check(args: &Arguments, supervisor: Supervisor) -> Result<(), Failure> {
    if args.is_on("diff") {
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
                print(&summary::json(None, false, &config_source::error_report(&message.to_string())))?;
            }
            return Err(Failure::Failed(message.to_string()));
        }
    };
    let names: Vec<String> = read.iter().map(|input| input.name.clone()).collect();
    let LoadedConfig { plan, report } = loading::load_with(read, looks);
    let report = if args.is_on("strict") { report.strict() } else { report };
    let report = match plan.as_ref().and_then(locks_without_cgroups) {
        Some(warning) => report.with(warning),
        None => report,
    };
    let unusable = plan.as_ref().and_then(|plan| (supervisor.check)(plan).err());
    let report = match &unusable {
        Some(why) => report.with(Problem::unlocated(Severity::Error, why)),
        None => report,
    };
    let good = plan.is_some() && unusable.is_none() && report.count(Severity::Fault) == 0;
    if json {
        print(&summary::json(plan.as_ref(), good, &report))?;
    } else {
        print_report(&report, true);
        match plan.as_ref().filter(|_| good) {
            Some(plan) => print(&summary::human(&names, plan))?,
            None => loading::print_totals(&report),
        }
    }
    if good { Ok(()) } else { Err(Failure::Reported) }
}

/// Without cgroups, a process can outlive the lock that its job requires. No configuration changes that, so it is no
/// error for `-strict`, and not worth an entry at every start.
fn locks_without_cgroups(plan: &Plan) -> Option<Problem> {
    let reason = plan.has_shared_locks().then(cgroups::why_none)??;
    let message = format!(
        "where runs have no cgroups, a process that leaves its session and clears its environment outlives the lock of \
         its job; here they have none: {reason}"
    );
    let help = "if jobs have such processes, see \"What it cannot do\" in docs/locks.md";
    Some(Problem::unlocated(Severity::Warning, &message).help(help))
}
