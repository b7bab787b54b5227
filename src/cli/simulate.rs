//! `simulate`: a configuration in virtual time, as a scenario has it, with no process started.

mod json;
mod svg;
mod text;
mod worlds;

use std::path::{Path, PathBuf};

use containerpilot_config::host::{Host, ProgramState};
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::template::Environment;
use containerpilot_config::{Loaded, load};
use containerpilot_core::plan::Plan;
use containerpilot_simulation::explore::{Explorer, Found, Seed};
use containerpilot_simulation::read::Draft;
use containerpilot_simulation::scenario::Scenario;
use containerpilot_simulation::{expect, player};
use std::collections::BTreeMap;

use super::flags::Arguments;
use super::terminal::{Screen, visible};
use super::{Failure, check, named_config, render};
use crate::load::files;
use crate::load::host::ThisHost;
use crate::load::source::OPTIONS;

/// The form of the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Human,
    Json,
    Svg,
}

pub(super) fn simulate(args: &Arguments) -> Result<(), Failure> {
    let format = match args.text("format") {
        "" | "human" => Format::Human,
        "json" => Format::Json,
        "svg" => Format::Svg,
        other => {
            let words = format!("there is no format `{other}`; there are `human`, `json` and `svg`");
            return Err(Failure::Usage(words));
        }
    };
    let (config, scenario) = paths(args)?;
    let plan = plan(config.as_deref()).map_err(Failure::Unreadable)?;
    let scenario = match scenario {
        Some(path) => read(&path, &plan)?,
        None => Scenario::default(),
    };
    let out = args.text("out");
    let screen = if matches!(out, "" | "-") { Screen::of_stdout() } else { Screen::default() };
    if !args.text("explore").is_empty() {
        return explore(args, &plan, &scenario, format, screen);
    }
    let (scenario, mishaps) = world(args, &plan, scenario)?;
    let course = player::play(&plan, &scenario);
    let verdicts = expect::judge(&scenario, &course);
    let answer = match format {
        Format::Human => mishaps + &text::story(screen, &course, &verdicts, args.is_on("full")),
        Format::Svg => svg::story(&course, &verdicts),
        Format::Json => json::story(&course, &verdicts),
    };
    render::write(out, answer.as_bytes())?;
    if let Some(cut) = course.cut {
        return Err(Failure::Failed(format!("the rehearsal was given up: {cut}")));
    }
    if verdicts.iter().all(|verdict| verdict.holds) { Ok(()) } else { Err(Failure::Failed(String::new())) }
}

/// Tries many worlds.
fn explore(
    args: &Arguments,
    plan: &Plan,
    scenario: &Scenario,
    format: Format,
    screen: Screen,
) -> Result<(), Failure> {
    let number = |flag: &str, usual: &str| {
        let text = Some(args.text(flag)).filter(|text| !text.is_empty()).unwrap_or(usual);
        let wrong = || Failure::Usage(format!("-{flag} cannot be `{text}`: it is no number"));
        text.parse::<u64>().map_err(|_| wrong())
    };
    let (worlds, series) = (number("explore", "")?, number("seed", "1")?);
    let found = Explorer::new(plan, scenario).explore(series, worlds);
    let answer = match format {
        Format::Human => worlds::human(screen, worlds, &found),
        Format::Json => worlds::json(worlds, &found),
        Format::Svg => {
            let words = "-explore has no picture; draw one world with -seed";
            return Err(Failure::Usage(words.to_owned()));
        }
    };
    render::write(args.text("out"), answer.as_bytes())?;
    if found.iter().any(Found::is_problem) { Err(Failure::Failed(String::new())) } else { Ok(()) }
}

/// The scenario, with the mishaps of a world that was found; and those in words.
fn world(args: &Arguments, plan: &Plan, scenario: Scenario) -> Result<(Scenario, String), Failure> {
    let text = args.text("seed");
    if text.is_empty() {
        return Ok((scenario, String::new()));
    }
    let seed: Seed = text.parse().map_err(|()| {
        Failure::Usage(format!("-seed cannot be `{text}`: write it as -explore has shown it"))
    })?;
    let explorer = Explorer::new(plan, &scenario);
    let words = format!("{}\n\n", visible(&worlds::circumstances(&explorer.mishaps(seed))));
    let expectations = scenario.expectations;
    Ok((Scenario { expectations, ..explorer.scenario(seed) }, words))
}

/// The configuration and the scenario. With -config, the only argument is the scenario.
fn paths(args: &Arguments) -> Result<(Option<PathBuf>, Option<PathBuf>), Failure> {
    let mut rest = args.rest.iter().map(PathBuf::from);
    let config = if args.text("config").is_empty() { rest.next() } else { None };
    let scenario = rest.next();
    if let Some(extra) = rest.next() {
        let words = format!("`simulate` does not know what to do with `{}`", extra.display());
        return Err(Failure::Usage(words));
    }
    Ok((config.or_else(|| named_config(args)), scenario))
}

/// Loads a configuration. Nothing of it is started, so its programs and users need not be here.
fn plan(path: Option<&Path>) -> Result<Plan, String> {
    let inputs = files::read(path)?;
    let Loaded { plan, report } = load(inputs, &Elsewhere(ThisHost::current()), OPTIONS);
    check::complain(&report, false);
    plan.ok_or_else(|| "the configuration has errors, so there is nothing to simulate".to_owned())
}

fn read(path: &Path, plan: &Plan) -> Result<Scenario, Failure> {
    let mut inputs = files::read(Some(path)).map_err(|error| Failure::Unreadable(error.to_string()))?;
    let input = match inputs.pop() {
        Some(input) if inputs.is_empty() => input,
        _ => {
            let words = format!("{} is a folder; a scenario is one file", path.display());
            return Err(Failure::Unreadable(words));
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
        check::complain(&report, true);
        Failure::Unreadable("the scenario has errors, so nothing was simulated".to_owned())
    })
}

/// The machine that the configuration is meant for: where it cannot be asked, it is taken to have what is needed.
struct Elsewhere(ThisHost);

impl Host for Elsewhere {
    fn environment(&self) -> &Environment {
        self.0.environment()
    }

    fn addresses(&self) -> &[HostAddress] {
        self.0.addresses()
    }

    fn hostname(&self) -> &str {
        self.0.hostname()
    }

    fn program(&self, _: &str) -> ProgramState {
        ProgramState::Runnable
    }

    fn readable(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn has_user(&self, _: &str) -> bool {
        true
    }

    fn has_group(&self, _: &str) -> bool {
        true
    }
}
