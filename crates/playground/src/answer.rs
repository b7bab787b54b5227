//! What is known about a configuration and a scenario.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use containerpilot_config::diagnostics::{Report, Severity, Style};
use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::template::Environment;
use containerpilot_config::{ConfigFile, LoadedConfig, Options, load};
use containerpilot_core::plan::Plan;
use containerpilot_drawing::graph::model::Graph;
use containerpilot_drawing::{graph, simulation};
use containerpilot_simulation::read::Draft;
use containerpilot_simulation::scenario::Scenario;
use containerpilot_simulation::target_host::TargetHost;
use containerpilot_simulation::{expect, runner};
use containerpilot_text::screen::Screen;
use containerpilot_text::summary;
use serde::{Deserialize, Serialize};

/// What a page asks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    config: String,
    /// Empty without one.
    #[serde(default)]
    scenario: String,
    /// The environment variables of the container.
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

/// What a page shows. A part that does not exist, because of errors before it, is left out.
#[derive(Default, Serialize)]
pub(crate) struct Answer {
    /// The output of `check`: errors and warnings, or the summary of the plan.
    check: String,
    /// Whether the configuration can run.
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<String>,
    /// Why the scenario cannot be played.
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario_errors: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulation: Option<Simulation>,
}

/// The output of `simulate`.
#[derive(Serialize)]
struct Simulation {
    text: String,
    svg: String,
    /// Whether all expectations of the scenario hold, and it ran to its end.
    holds: bool,
}

/// Errors as on a terminal without colours.
const STYLE: Style = Style { faults_are_errors: true, colour: false };

pub(crate) fn answer(request: Request) -> Answer {
    const NAME: &str = "containerpilot.json5";
    let input = ConfigFile { name: NAME.to_owned(), text: request.config.into_bytes() };
    let options = Options { version: env!("CARGO_PKG_VERSION") };
    let LoadedConfig { plan, report } = load(vec![input], &host(request.environment), options);
    let mut check = shown(&report);
    let ok = plan.is_some() && report.count(Severity::Fault) == 0;
    let Some(plan) = plan else { return Answer { check, ..Answer::default() } };
    if ok {
        check += &summary::human(&[NAME.to_owned()], &plan);
    }
    let graph = Some(graph::svg::text(&Graph::of(&plan)));
    let (scenario_errors, simulation) = match scenario(request.scenario, &plan) {
        Ok(scenario) => (None, Some(simulate(&plan, &scenario))),
        Err(report) => (Some(shown(&report)), None),
    };
    Answer { check, ok, graph, scenario_errors, simulation }
}

/// The container: nothing of it is known but its environment and two interfaces.
fn host(variables: BTreeMap<String, String>) -> TargetHost<StaticHost> {
    let address =
        |interface: &str, ip: Ipv4Addr| HostAddress { interface: interface.to_owned(), ip: ip.into() };
    let mut environment = Environment::new();
    for (name, value) in variables {
        environment.insert(name.into_bytes(), value.into_bytes());
    }
    TargetHost::new(StaticHost {
        environment,
        addresses: vec![address("eth0", Ipv4Addr::new(192, 0, 2, 1)), address("lo", Ipv4Addr::LOCALHOST)],
        hostname: "playground".to_owned(),
        ..StaticHost::default()
    })
}

fn scenario(text: String, plan: &Plan) -> Result<Scenario, Report> {
    if text.trim().is_empty() {
        return Ok(Scenario::default());
    }
    let draft = Draft::read(ConfigFile { name: "scenario.json5".to_owned(), text: text.into_bytes() });
    let none = |path| (path, Err("the playground has one configuration only".to_owned()));
    let others = draft.reloads().into_iter().map(none).collect();
    draft.scenario(plan, &others)
}

fn simulate(plan: &Plan, scenario: &Scenario) -> Simulation {
    let run = runner::simulate(plan, scenario);
    let verdicts = expect::judge(scenario, &run);
    let mut text = simulation::timeline::human(
        Screen::default(),
        &run,
        &verdicts,
        false,
        &simulation::timeline::SINCE_START,
    );
    if let Some(cut) = &run.abort {
        text += &format!("the simulation was stopped: {cut}\n");
    }
    let holds = run.abort.is_none() && verdicts.iter().all(|verdict| verdict.holds);
    Simulation { text, svg: simulation::svg::timeline(&run, &verdicts), holds }
}

fn shown(report: &Report) -> String {
    let mut text = report.display(STYLE).to_string();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(config: &str, scenario: &str) -> Answer {
        answer(Request {
            config: config.to_owned(),
            scenario: scenario.to_owned(),
            environment: BTreeMap::new(),
        })
    }

    #[test]
    fn x4_a_configuration_is_checked_drawn_and_simulated() {
        let found = ask(
            "{ jobs: [{ name: 'setup', exec: 'true' }, { name: 'app', exec: 'app', when: { source: 'setup', once: 'exitSuccess' } }] }",
            "{ happens: [{ at: '10s', signal: 'SIGTERM' }], expect: [{ see: 'setup exitSuccess' }] }",
        );
        assert!(found.ok && found.check.contains("2 jobs"), "{}", found.check);
        assert!(found.graph.unwrap().contains("setup"));
        let simulation = found.simulation.unwrap();
        assert!(simulation.holds && simulation.text.contains("app"), "{}", simulation.text);
        assert!(simulation.svg.starts_with("<svg"));
    }

    #[test]
    fn x4_errors_are_shown_at_their_places() {
        let found = ask("{ jobs: [{ name: 'a', exce: 'true' }] }", "");
        assert!(!found.ok && found.graph.is_none());
        assert!(
            found.check.contains("exec") && found.check.contains("containerpilot.json5:1"),
            "{}",
            found.check
        );
        let found = ask("{ jobs: [{ name: 'a', exec: 'true' }] }", "{ jobs: [{ name: 'b' }] }");
        assert!(found.ok && found.simulation.is_none());
        assert!(found.scenario_errors.unwrap().contains("scenario.json5:1"));
        let found =
            ask("{ jobs: [{ name: 'a', exec: 'true' }] }", "{ happens: [{ at: '1s', reload: 'b.json5' }] }");
        assert!(found.scenario_errors.unwrap().contains("one configuration only"));
    }

    #[test]
    fn x4_a_broken_expectation_is_no_success() {
        let found = ask("{ jobs: [{ name: 'a', exec: 'true' }] }", "{ expect: [{ see: 'a exitFailed' }] }");
        assert!(!found.simulation.unwrap().holds);
    }

    #[test]
    fn x4_templates_see_the_environment_of_the_request() {
        let mut request = Request {
            config: "{ jobs: [{ name: '{{ .NAME }}', exec: 'true' }] }".to_owned(),
            scenario: String::new(),
            environment: BTreeMap::new(),
        };
        request.environment.insert("NAME".to_owned(), "shop".to_owned());
        assert!(answer(request).check.contains("shop"));
    }
}
