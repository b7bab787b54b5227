//! `audit`: compares a configuration with the deployment of its container (X14).

use std::ffi::OsString;
use std::path::Path;

use containerpilot_audit::model::Container;
use containerpilot_audit::{AuditError, Configuration, Finding, Invocation};
use containerpilot_command_line::action::Action;
use containerpilot_command_line::action::action;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::{self, Arguments};
use containerpilot_command_line::loading;
use containerpilot_command_line::options::as_json;
use containerpilot_command_line::options::config_path;
use containerpilot_command_line::options::names_configuration;
use containerpilot_command_line::output::print;
use containerpilot_command_line::parse::{check_arguments, unknown_command};
use containerpilot_command_line::report::print_report;
use containerpilot_command_line::table::{COMMANDS, MAIN_FLAGS, Program, TOOLS};
use containerpilot_config::diagnostics::{FileId, Place, Problem, Report, Severity, SourceFile, position};
use containerpilot_config::span::{SourceMap, Span};
use containerpilot_config::{LoadedConfig, load};
use containerpilot_core::plan::Plan;
use containerpilot_core::state::longest_stop::longest_stop;
use containerpilot_core::time::fmt_duration;
use containerpilot_core::variables::SOCKET_VARIABLE;
use containerpilot_import::files::Text;
use containerpilot_load::config_source::{self, OPTIONS};
use containerpilot_load::find_files;
use containerpilot_load::host::{ThisHost, environment};
use containerpilot_simulation::target_host::TargetHost;
use containerpilot_text::summary;

use crate::on_disk::OnDisk;

pub(crate) fn audit(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let Some(path) = args.value("with") else {
        let message = "name the deployment: containerpilot audit [PATH] --with FILE";
        return Err(Failure::Usage(message.to_owned()));
    };
    let Audited { plan, report, container } = match run(args, path) {
        Ok(audited) => audited,
        Err(failure) => {
            if json && let Failure::InvalidInput(message) = &failure {
                print(&summary::json(None, false, &config_source::error_report(message)))?;
            }
            return Err(failure);
        }
    };
    let report = if args.is_on("strict") { report.strict() } else { report };
    let good = report.count(Severity::Fault) == 0;
    if json {
        print(&summary::json(None, good, &report))?;
    } else {
        print_report(&report, true);
        match good {
            true => print(&summary_line(&plan, &container, path))?,
            false => loading::print_totals(&report),
        }
    }
    if good { Ok(()) } else { Err(Failure::Reported) }
}

struct Audited {
    plan: Plan,
    report: Report,
    container: Container,
}

fn run(args: &Arguments, path: &str) -> Result<Audited, Failure> {
    let invalid = |error: AuditError| Failure::InvalidInput(error.to_string());
    let text = Text::read(&OnDisk, path).map_err(|error| invalid(error.into()))?;
    let containers = containerpilot_audit::read(&text).map_err(invalid)?;
    let container = containerpilot_audit::choose(&containers, args.value("container")).map_err(invalid)?;
    let inputs = find_files::read(config_path(args).as_deref())
        .map_err(|error| Failure::InvalidInput(error.to_string()))?;
    // The variables of the container are those of the template. Its control socket is not that of a supervisor here.
    let mut environment = environment();
    environment.remove(SOCKET_VARIABLE.as_bytes());
    let own =
        container.env.iter().map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()));
    environment.extend(own);
    let LoadedConfig { plan, report } =
        load(inputs, &TargetHost::with_interface(ThisHost::with(environment), "eth0"), OPTIONS);
    let Some(plan) = plan else {
        print_report(&report, false);
        return Err(Failure::InvalidInput("the configuration has errors, so it was not audited".to_owned()));
    };
    let files = report.into_files();
    let command_line = |words: &[String]| invocation(words, &plan);
    let configuration = Configuration { plan: &plan, files: &files, command_line: &command_line };
    let findings = containerpilot_audit::audit(configuration, container);
    let report = located(findings, files, &text);
    Ok(Audited { report, container: container.clone(), plan })
}

/// The findings as problems of the deployment. The help names the place in the configuration.
fn located(findings: Vec<Finding>, mut files: Vec<SourceFile>, text: &Text) -> Report {
    let source = text.text.clone().into_bytes();
    let deployment = FileId::at(files.len());
    let problems = findings.into_iter().map(|finding| {
        let place = Place::source(deployment, line_span(&text.text, finding.line));
        let help = match finding.config.and_then(|place| position(&files, place)) {
            Some(at) => format!("{} (in the configuration: {at})", finding.help),
            None => finding.help,
        };
        Problem::new(finding.severity, place, finding.message).help(help)
    });
    let problems: Vec<Problem> = problems.collect();
    files.push(SourceFile {
        name: text.path.clone(),
        map: SourceMap::identity(source.len()),
        rendered: source.clone(),
        source,
    });
    Report::new(files, problems)
}

/// The range of a line, from 1, without the spaces around it.
fn line_span(text: &str, line: usize) -> Span {
    let mut lines = text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(line.saturating_sub(1)).map(str::len).sum();
    let line = lines.next().unwrap_or_default();
    let start = start + line.len() - line.trim_start().len();
    Span::new(start, start + line.trim().len())
}

fn summary_line(plan: &Plan, container: &Container, path: &str) -> String {
    let longest = fmt_duration(longest_stop(plan).time);
    let hook = container.pre_stop.as_ref().map(|hook| hook.value).unwrap_or_default();
    let grace = container.grace.as_ref().map(|grace| grace.value.saturating_sub(hook));
    let of = grace.map_or_else(String::new, |grace| format!(" of {}", fmt_duration(grace)));
    format!(
        "ok: container {} of {} in {path}\nstop: at most {longest}{of}\n",
        container.name, container.parent
    )
}

/// Reads a command line as the program itself does.
fn invocation(words: &[String], plan: &Plan) -> Result<Invocation, String> {
    let global = flags::parse(MAIN_FLAGS, words).map_err(|error| error.to_string())?;
    let named = |command: &str| Invocation { command: command.to_owned(), ..Invocation::default() };
    match action(&global) {
        Action::Version => return Ok(named("version")),
        Action::Template => return Ok(named("render")),
        Action::Control(flag) => return Ok(named(flag)),
        Action::Run => {}
    }
    let Some(name) = global.rest.first().filter(|_| !global.double_dash) else { return Ok(named("run")) };
    let name = name.to_string_lossy();
    let Some(command) = COMMANDS.iter().chain(TOOLS).find(|command| command.name == name) else {
        let is_file = names_configuration(Path::new(&*name)) || name.contains('/');
        // With a ContainerPilot 2 configuration it is the main program.
        let is_valid = is_file || plan.legacy_maintenance;
        return if is_valid {
            Ok(named("run"))
        } else {
            Err(unknown_command(Program::Containerpilot, &name))
        };
    };
    let rest: &[OsString] = global.rest.get(1..).unwrap_or_default();
    let own = flags::parse_mixed(command.flags, rest).map_err(|error| error.to_string())?;
    if command.name != "run" {
        check_arguments(Program::Containerpilot, command, &own)?;
    }
    let arguments = own.rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let socket = own.value("socket").map(str::to_owned);
    Ok(Invocation { command: command.name.to_owned(), arguments, socket })
}
