//! `simulate`: runs a configuration in virtual time. No process is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::count;
use containerpilot_command_line::options::named_config;
use containerpilot_command_line::output;
use containerpilot_command_line::report::print_report;
use containerpilot_command_line::terminal::stdout_screen;
use containerpilot_config::{LoadedConfig, load};
use containerpilot_core::plan::Plan;
use containerpilot_drawing::simulation::{explore, json, svg, timeline};
use containerpilot_load::config_source::OPTIONS;
use containerpilot_load::find_files;
use containerpilot_load::host::ThisHost;
use containerpilot_simulation::explore::{Explorer, Found, Seed};
use containerpilot_simulation::read::Draft;
use containerpilot_simulation::scenario::Scenario;
use containerpilot_simulation::target_host::TargetHost;
use containerpilot_simulation::{expect, runner};
use containerpilot_text::screen::{Screen, sanitized};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Human,
    Json,
    Svg,
}

pub(crate) fn simulate(args: &Arguments) -> Result<(), Failure> {
    let format = match args.text("format") {
        "" | "human" => Format::Human,
        "json" => Format::Json,
        "svg" => Format::Svg,
        other => {
            let message = format!("unknown format `{other}`: the formats are `human`, `json` and `svg`");
            return Err(Failure::Usage(message));
        }
    };
    let variations = count(args, "explore", 1)?;
    let (config, scenario) = paths(args);
    let plan = plan(config.as_deref()).map_err(Failure::InvalidInput)?;
    let scenario = match scenario {
        Some(path) => read_scenario(&path, &plan)?,
        None => Scenario::default(),
    };
    let out = args.text("out");
    let screen = if matches!(out, "" | "-") { stdout_screen() } else { Screen::default() };
    if let Some(variations) = variations {
        return explore(args, variations, &plan, &scenario, format, screen);
    }
    let (scenario, faults) = with_seed(args, &plan, scenario)?;
    let run = runner::simulate(&plan, &scenario);
    let verdicts = expect::judge(&scenario, &run);
    let text = match format {
        Format::Human => {
            faults + &timeline::human(screen, &run, &verdicts, args.is_on("full"), &timeline::SINCE_START)
        }
        Format::Svg => svg::timeline(&run, &verdicts),
        Format::Json => json::timeline(&run, &verdicts),
    };
    output::write(out, text.as_bytes())?;
    if let Some(cut) = run.abort {
        return Err(Failure::Failed(format!("the simulation was stopped: {cut}")));
    }
    if verdicts.iter().all(|verdict| verdict.holds) { Ok(()) } else { Err(Failure::Reported) }
}

/// `simulate --explore`
fn explore(
    args: &Arguments,
    variations: u64,
    plan: &Plan,
    scenario: &Scenario,
    format: Format,
    screen: Screen,
) -> Result<(), Failure> {
    let series = count(args, "seed", 0)?.unwrap_or(1);
    let found = Explorer::new(plan, scenario).explore(series, variations);
    let text = match format {
        Format::Human => explore::human(screen, variations, &found),
        Format::Json => explore::json(variations, &found),
        Format::Svg => {
            let message = "-explore cannot be drawn; use -seed to draw one variation";
            return Err(Failure::Usage(message.to_owned()));
        }
    };
    output::write(args.text("out"), text.as_bytes())?;
    if found.iter().any(Found::is_problem) { Err(Failure::Reported) } else { Ok(()) }
}

/// Adds the faults of --seed to the scenario. Returns it with a line that lists the faults.
fn with_seed(args: &Arguments, plan: &Plan, scenario: Scenario) -> Result<(Scenario, String), Failure> {
    let Some(text) = args.value("seed") else { return Ok((scenario, String::new())) };
    let seed: Seed = text.parse().map_err(|()| {
        Failure::Usage(format!("invalid -seed `{text}`: copy it from the output of -explore"))
    })?;
    let explorer = Explorer::new(plan, &scenario);
    let faults = format!("{}\n\n", sanitized(&explore::fault_list(&explorer.faults(seed))));
    let expectations = scenario.expectations;
    Ok((Scenario { expectations, ..explorer.scenario(seed) }, faults))
}

/// The paths of the configuration and the scenario. With -config, the only argument is the scenario.
fn paths(args: &Arguments) -> (Option<PathBuf>, Option<PathBuf>) {
    let mut rest = args.rest.iter().map(PathBuf::from);
    let config = if args.text("config").is_empty() { rest.next() } else { None };
    let scenario = rest.next();
    (config.or_else(|| named_config(args)), scenario)
}

/// Loads a configuration. Nothing is started, so its programs and users need not exist here.
pub(crate) fn plan(path: Option<&Path>) -> Result<Plan, String> {
    let inputs = find_files::read(path).map_err(|error| error.to_string())?;
    let LoadedConfig { plan, report } = load(inputs, &TargetHost::new(ThisHost::current()), OPTIONS);
    print_report(&report, false);
    plan.ok_or_else(|| "the configuration has errors, so there is nothing to simulate".to_owned())
}

fn read_scenario(path: &Path, plan: &Plan) -> Result<Scenario, Failure> {
    let mut inputs =
        find_files::read(Some(path)).map_err(|error| Failure::InvalidInput(error.to_string()))?;
    let input = match inputs.pop() {
        Some(input) if inputs.is_empty() => input,
        _ => {
            let message = format!("{} is a directory; a scenario is a file", path.display());
            return Err(Failure::InvalidInput(message));
        }
    };
    let draft = Draft::read(input);
    let folder = path.parent().unwrap_or(Path::new(""));
    let others: BTreeMap<String, Result<Plan, String>> = draft
        .reloads()
        .into_iter()
        .map(|name| {
            let plan = self::plan(Some(&folder.join(&name)));
            (name, plan)
        })
        .collect();
    draft.scenario(plan, &others).map_err(|report| {
        print_report(&report, true);
        Failure::InvalidInput("the scenario has errors, so nothing was simulated".to_owned())
    })
}
