//! `init`: writes a first configuration, the lines for a Dockerfile, and a scenario (X20).

mod dockerfile;
mod new_files;
mod questions;
mod texts;
mod wanted;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::{self, Arguments};
use containerpilot_command_line::loading;
use containerpilot_command_line::options::utf8;
use containerpilot_command_line::output::print;
use containerpilot_command_line::report::print_report;
use containerpilot_command_line::table::AUDIT;
use containerpilot_config::diagnostics::Severity;
use containerpilot_config::{LoadedConfig, load};
use containerpilot_load::config_source::OPTIONS;
use containerpilot_load::find_files;
use containerpilot_load::host::ThisHost;
use containerpilot_simulation::target_host::TargetHost;
use containerpilot_text::summary;

use crate::audit;
use new_files::NewFiles;
use wanted::{CONFIG, DOCKERFILE, SCENARIO, Wanted};

pub(crate) fn init(args: &Arguments) -> Result<(), Failure> {
    let folder = args.rest.first().map_or_else(|| Ok(".".to_owned()), utf8)?;
    if folder.is_empty() {
        return Err(Failure::Usage("the name of the folder is empty".to_owned()));
    }
    let files = NewFiles::new(&folder, [CONFIG, DOCKERFILE, SCENARIO])?;
    let wanted = match args.value("from") {
        Some(path) => dockerfile::read(path)?,
        None if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => questions::ask()?,
        None => {
            let message =
                "no terminal, so nothing is asked and the defaults are used; --from reads a Dockerfile\n";
            // The files show them, too.
            let _ = std::io::stderr().write_all(message.as_bytes());
            Wanted::default()
        }
    };
    let texts = texts::texts(&wanted);
    let [config, dockerfile, scenario] = files.write(&[&texts.config, &texts.dockerfile, &texts.scenario])?;
    print(&format!("wrote {config}, {dockerfile} and {scenario}\n"))?;
    let checked = check(&config);
    let audited = checked.and_then(|()| audit(&config, &dockerfile));
    audited?;
    print(&format!("next: containerpilot simulate {config} {scenario}\n"))
}

/// Shows what `check` says, for a host that has all programs of the image.
fn check(path: &str) -> Result<(), Failure> {
    let inputs = find_files::read(Some(Path::new(path)))?;
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let LoadedConfig { plan, report } = load(inputs, &TargetHost::new(ThisHost::current()), OPTIONS);
    print_report(&report, true);
    match plan.filter(|_| report.count(Severity::Fault) == 0) {
        Some(plan) => print(&summary::human(&names, &plan)),
        None => {
            loading::print_totals(&report);
            Err(Failure::Failed(format!("{path} is written, but must be corrected")))
        }
    }
}

/// Runs `audit`.
fn audit(config: &str, dockerfile: &str) -> Result<(), Failure> {
    let words: Vec<OsString> = [config, "-with", dockerfile].map(OsString::from).to_vec();
    let args = flags::parse_mixed(AUDIT.flags, &words).map_err(|error| Failure::Failed(error.to_string()))?;
    audit::audit(&args)
}
