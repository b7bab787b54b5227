//! `simulate`: a configuration in virtual time, as a scenario has it, with no process started.

mod json;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use containerpilot_config::host::{Host, ProgramState};
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::template::Environment;
use containerpilot_config::{Loaded, load};
use containerpilot_core::plan::Plan;
use containerpilot_rehearsal::read::Draft;
use containerpilot_rehearsal::scenario::Scenario;
use containerpilot_rehearsal::{expect, player};

use super::flags::Arguments;
use super::terminal::Screen;
use super::{Failure, check, named_config, render};
use crate::files;
use crate::host::ThisHost;
use crate::source::OPTIONS;

/// The form of the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Human,
    Json,
}

pub(super) fn simulate(args: &Arguments) -> Result<(), Failure> {
    let format = match args.text("format") {
        "" | "human" => Format::Human,
        "json" => Format::Json,
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
    let course = player::play(&plan, &scenario);
    let verdicts = expect::judge(&scenario, &course);
    let out = args.text("out");
    let screen = if matches!(out, "" | "-") { Screen::of_stdout() } else { Screen::default() };
    let answer = match format {
        Format::Human => text::story(screen, &course, &verdicts, args.is_on("full")),
        Format::Json => json::story(&course, &verdicts),
    };
    render::write(out, answer.as_bytes())?;
    if let Some(cut) = course.cut {
        return Err(Failure::Failed(format!("the rehearsal was given up: {cut}")));
    }
    if verdicts.iter().all(|verdict| verdict.holds) { Ok(()) } else { Err(Failure::Failed(String::new())) }
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
    let Loaded { plan, report } = load(inputs, &Elsewhere(ThisHost::look()), OPTIONS);
    check::complain(&report, false);
    plan.ok_or_else(|| "the configuration has errors, so there is nothing to simulate".to_owned())
}

fn read(path: &Path, plan: &Plan) -> Result<Scenario, Failure> {
    let mut inputs = files::read(Some(path)).map_err(Failure::Unreadable)?;
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
