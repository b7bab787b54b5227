//! From an incident to a test (B5): the world of a recording as a scenario, with another configuration, and shrunk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::output;
use containerpilot_config::duration::exact;
use containerpilot_core::plan::Plan;
use containerpilot_core::{Core, Time};
use containerpilot_drawing::simulation::{json, svg, timeline};
use containerpilot_process::error_text::describe;
use containerpilot_recording::{Recording, Replay};
use containerpilot_simulation::expect::judge;
use containerpilot_simulation::recorded::{Observe, Observer, RecordedScenario, RecordedWorld};
use containerpilot_simulation::scenario::{Claim, Expectation, Scenario};
use containerpilot_simulation::shrink::{Shrunk, shrink};
use containerpilot_simulation::timeline::{Entry, SimulationRun, What};
use containerpilot_simulation::timeline_writer::TimelineWriter;
use containerpilot_simulation::{expect, runner, write};
use containerpilot_text::screen::sanitized;

use super::clock::Clock;
use super::player::{play, times};
use super::printing::{note, screen, unknown_format};
use crate::simulate;

/// What to do with the world of a recording.
pub(super) enum Task<'a> {
    /// Write it as a scenario.
    Scenario(&'a str),
    /// Simulate it with another configuration.
    With(&'a str),
    /// Find the fewest facts that break a sentence, and write them as a scenario.
    Shrink(&'a str, Option<&'a str>),
}

impl<'a> Task<'a> {
    /// The task on the command line, if there is one. It contradicts some of the other options.
    pub(super) fn new(args: &'a Arguments) -> Result<Option<Self>, Failure> {
        let (scenario, with, sentence) = (args.value("scenario"), args.value("with"), args.value("shrink"));
        let (task, name, excluded): (Self, &str, &[(&str, &str)]) = match (scenario, with, sentence) {
            (None, None, None) => return Ok(None),
            (_, Some(_), Some(_)) => {
                return Err(contradiction("with", "shrink", "shrink the recording first"));
            }
            (Some(_), Some(_), None) => {
                let help = "write the scenario, and simulate the other configuration with it";
                return Err(contradiction("scenario", "with", help));
            }
            (None, Some(path), None) => (Self::With(path), "with", &[]),
            (Some(""), ..) => return Err(Failure::Usage("--scenario needs the name of a file".to_owned())),
            (Some(path), None, None) => (Self::Scenario(path), "scenario", PARTS),
            (path, None, Some(sentence)) => (Self::Shrink(sentence, path), "shrink", PARTS),
        };
        if args.rest.len() > 1 || args.value("at").is_some() {
            return Err(contradiction(
                name,
                "at",
                "it is about all of the recording, and --at about one time",
            ));
        }
        for (flag, help) in excluded.iter().chain(&[("page", "a page shows what was recorded")]) {
            if args.value(flag).is_some() || args.is_on(flag) {
                return Err(contradiction(name, flag, help));
            }
        }
        Ok(Some(task))
    }

    pub(super) fn run(
        self,
        args: &Arguments,
        recording: &Recording<'_>,
        clock: &Clock,
    ) -> Result<(), Failure> {
        match self {
            Self::Scenario(path) => {
                let mut incident = Incident::new(recording, clock, None)?;
                incident.recorded = incident.recorded.without_reloads(&incident.plan);
                incident.warn();
                let text = write::text(&incident.recorded.scenario, &incident.head(clock, &[]));
                write_new(path, &text)
            }
            Self::With(path) => simulate_with(args, path, recording, clock),
            Self::Shrink(sentence, path) => shrink_to(sentence, path, recording, clock),
        }
    }
}

/// What a scenario has no place for.
const PARTS: &[(&str, &str)] = &[
    ("from", "a scenario is of the whole recording"),
    ("to", "a scenario is of the whole recording"),
    ("format", "a scenario has one format"),
    ("full", "a scenario is always complete"),
    ("out", "`--scenario FILE` names the file"),
];

fn contradiction(one: &str, other: &str, help: &str) -> Failure {
    Failure::Usage(format!("--{one} and --{other} cannot be combined: {help}"))
}

/// A recording, and the scenario of its world.
struct Incident {
    /// The configuration at the beginning, with hashes.
    plan: Plan,
    world: RecordedWorld,
    /// When the supervisor was ready, or the recording begins, and the last step.
    begin: Time,
    end: Time,
    recorded: RecordedScenario,
    /// The timeline of the recording, with times since its beginning.
    run: SimulationRun,
    /// How a simulation differs from it.
    difference: Option<String>,
}

impl Incident {
    /// `claim` is what the timeline is judged by.
    fn new(recording: &Recording<'_>, clock: &Clock, claim: Option<&Claim>) -> Result<Self, Failure> {
        let (mut writer, mut plan) = (None::<TimelineWriter>, None);
        let mut observers = [Observer::default(), Observer::distinct()];
        let mut probes = claim.map(probes).unwrap_or_default();
        let mut replay = Replay::new(recording);
        while play(&mut replay, clock, |core, now, input, effects| {
            if plan.is_none() {
                plan = Some(core.plan().clone());
            }
            let writer = writer.get_or_insert_with(|| {
                let mut writer = TimelineWriter::new(core);
                writer.begin(core, now);
                writer
            });
            observers.iter_mut().for_each(|observer| observer.before_step(core, now, &input));
            let [observer, _] = &observers;
            view(writer, core, observer.beginning(), now, &mut probes);
            writer.replay(core, now, input, effects);
            observers.iter_mut().for_each(|observer| observer.after_step(core, now, effects));
        })?
        .is_some()
        {}
        let nothing = || Failure::Failed("nothing was recorded".to_owned());
        let (Some(mut writer), Some(plan)) = (writer, plan) else { return Err(nothing()) };
        let [plain, distinct] = observers.map(|observer| with_time_of_day(observer.world(), clock));
        if let Some(core) = replay.core() {
            writer.end(core);
        }
        let run = shifted(writer.run, plain.begin);
        let expected = events(&run, run.entries.len());
        let mut best: Option<(usize, Self)> = None;
        for world in [plain, distinct] {
            let recorded = world.aligned(&plan).scenario(&[]);
            let again = runner::simulate(&plan, &recorded.scenario);
            let counted = if world.has_exited { again.entries.len() } else { again.counted };
            let found = events(&again, counted);
            let same = expected.iter().zip(&found).take_while(|(one, other)| one.1 == other.1).count();
            let is_same = same == expected.len() && same == found.len();
            let difference =
                (world.has_begin && !is_same).then(|| differs(expected.get(same), found.get(same)));
            if best.as_ref().is_none_or(|(known, _)| *known < same) {
                best = Some((
                    same,
                    Self {
                        plan: plan.clone(),
                        begin: world.begin,
                        end: world.end,
                        world,
                        recorded,
                        run: run.clone(),
                        difference,
                    },
                ));
            }
            if is_same {
                break;
            }
        }
        best.map(|(_, best)| best).ok_or_else(nothing)
    }

    /// Prints what the scenario does not say.
    fn warn(&self) {
        for what in &self.recorded.left_out {
            note(&format!("warning: left out: {}", sanitized(what)));
        }
        if let Some(difference) = &self.difference {
            note(&format!("warning: a simulation of it is not the same: {}", sanitized(difference)));
        }
    }

    /// The comments at the beginning of a scenario.
    fn head(&self, clock: &Clock, first: &[String]) -> Vec<String> {
        let mut head = first.to_vec();
        let begin = clock.text(clock.at(self.begin));
        let end = clock.text(clock.at(self.end));
        head.push(format!("What was recorded from {begin} to {end}. With the configuration of that time:"));
        head.push("  containerpilot-tools simulate CONFIG THIS-FILE".to_owned());
        head.push("Programs, checks, watches, locks and people do what they did then.".to_owned());
        if !self.world.has_begin {
            head.push(String::new());
            head.push("The recording begins when the supervisor ran already, and this with a start. So the first run".to_owned());
            head.push(
                "of a job that ran is the rest of that run, and a job that had ended ends at once."
                    .to_owned(),
            );
            let of = |word: &str| {
                let names = self.recorded.before.iter().filter(|(_, state)| *state == word);
                names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
            };
            for word in
                ["starting", "running", "restarting", "stopping", "complete", "failed", "stopped", "skipped"]
            {
                let names = of(word);
                if !names.is_empty() {
                    head.push(format!("  {word} then: {names}"));
                }
            }
        }
        if !self.recorded.unfinished.is_empty() {
            let names = self.recorded.unfinished.join(", ");
            head.push(format!("The last run of these was not over when the recording ended: {names}."));
        }
        for what in &self.recorded.left_out {
            head.push(format!("Left out: {what}."));
        }
        if let Some(difference) = &self.difference {
            head.push(format!("A simulation of it is not the same: {difference}."));
        }
        head
    }
}

/// A core without times of day is not told the time. The recording has it.
fn with_time_of_day(mut world: RecordedWorld, clock: &Clock) -> RecordedWorld {
    let recorded = clock.at(world.begin).duration_since(UNIX_EPOCH).unwrap_or_default();
    let told = world.clock.filter(|told| told.abs_diff(recorded) < Duration::from_secs(1));
    world.clock = Some(told.unwrap_or(recorded));
    world
}

/// The times at which a claim must see the state of a job.
fn probes(claim: &Claim) -> Vec<(Duration, String)> {
    let expectations = vec![Expectation { claim: claim.clone(), why: None }];
    expect::probes(&Scenario { expectations, ..Scenario::default() }).collect()
}

/// Keeps the state of jobs at times that have passed before this step.
fn view(
    writer: &mut TimelineWriter,
    core: &Core,
    begin: Time,
    now: Time,
    probes: &mut Vec<(Duration, String)>,
) {
    probes.retain(|(at, name)| {
        let is_over = begin + *at <= now;
        if is_over {
            writer.probe(core, begin + *at, name);
        }
        !is_over
    });
}

/// The same timeline, with times since this one.
fn shifted(run: SimulationRun, begin: Time) -> SimulationRun {
    let to = |at: Time| Time::ZERO + at.since(begin);
    let entries = run.entries.into_iter().map(|entry| Entry { at: to(entry.at), ..entry });
    SimulationRun {
        entries: entries.collect(),
        views: run.views.into_iter().map(|((at, name), view)| ((to(at), name), view)).collect(),
        end: to(run.end),
        exit: run.exit.map(|(at, code)| (to(at), code)),
        ..run
    }
}

/// The events of a timeline.
fn events(run: &SimulationRun, counted: usize) -> Vec<(Time, String)> {
    let counted = run.entries.iter().take(counted);
    let events = counted.filter(|entry| matches!(entry.what, What::Event(_)));
    events.map(|entry| (entry.at, entry.name())).collect()
}

/// The first difference between the events of a recording and those of its simulation.
fn differs(recorded: Option<&(Time, String)>, found: Option<&(Time, String)>) -> String {
    let text = |event: Option<&(Time, String)>| match event {
        Some((at, name)) => format!("`{name}` at {}", exact(at.since(Time::ZERO))),
        None => "nothing".to_owned(),
    };
    format!("{} follows in the recording, and {} in the simulation", text(recorded), text(found))
}

/// Writes a file that does not exist yet, or to standard output.
fn write_new(path: &str, text: &str) -> Result<(), Failure> {
    if path == "-" {
        return output::write(path, text.as_bytes());
    }
    let cannot =
        |error: &std::io::Error| Failure::Failed(format!("cannot write {path}: {}", describe(error)));
    match File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map_err(|error| cannot(&error)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Failure::InvalidInput(format!(
            "{path} exists, and --scenario overwrites nothing: move it away, or name another file"
        ))),
        Err(error) => Err(cannot(&error)),
    }
}

/// `--with`
fn simulate_with(
    args: &Arguments,
    path: &str,
    recording: &Recording<'_>,
    clock: &Clock,
) -> Result<(), Failure> {
    let (from, to) = times(args, recording, clock)?;
    let format = args.text("format");
    if !matches!(format, "" | "human" | "json" | "svg") {
        return Err(unknown_format(format, "`human`, `json` and `svg`"));
    }
    let plan = simulate::plan(Some(Path::new(path))).map_err(Failure::InvalidInput)?;
    let incident = Incident::new(recording, clock, None)?;
    let other = incident.world.with_plan(&incident.recorded, &incident.plan, &plan);
    let run = runner::simulate(&plan, &other.scenario);
    let mut assumptions = other.assumptions;
    assumptions.extend(incident.world.repeated_runs(&run));
    if let Some(difference) = &incident.difference {
        assumptions
            .push(format!("with the recorded configuration, a simulation is not the same: {difference}"));
    }
    let abort = run.abort;
    let at = |time: Time| clock.at(incident.begin + time.since(Time::ZERO));
    let (start, end) = (clock.text(at(Time::ZERO)), clock.text(at(run.end)));
    let run =
        part(run, |time| from.is_none_or(|from| at(time) >= from) && to.is_none_or(|to| at(time) <= to));
    if run.entries.is_empty() {
        return Err(Failure::Failed(format!(
            "nothing happens then: the simulation is from {start} to {end}"
        )));
    }
    let assumed =
        assumptions.iter().map(|what| format!("assumed: {}\n", sanitized(what))).collect::<String>();
    let out = args.text("out");
    let text = match format {
        "json" => json::timeline(&run, &[]),
        "svg" => svg::timeline(&run, &[]),
        _ => {
            let gap = if assumed.is_empty() { "" } else { "\n" };
            let time = |time| clock.text(at(time));
            let times = timeline::Times { row: &time, moment: &time };
            let table = timeline::human(screen(args), &run, &[], args.is_on("full"), &times);
            format!("{assumed}{gap}{table}")
        }
    };
    if matches!(format, "json" | "svg") {
        assumed.lines().for_each(note);
    }
    output::write(out, text.as_bytes())?;
    abort.map_or(Ok(()), |cut| Err(Failure::Failed(format!("the simulation was stopped: {cut}"))))
}

/// A part of a timeline.
fn part(run: SimulationRun, is_shown: impl Fn(Time) -> bool) -> SimulationRun {
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    let mut entries: Vec<Entry> = Vec::new();
    for (nth, entry) in run.entries.into_iter().enumerate().filter(|(_, entry)| is_shown(entry.at)) {
        places.insert(nth, entries.len());
        let cause = entry.cause.and_then(|place| places.get(&place).copied());
        entries.push(Entry { cause, ..entry });
    }
    let counted = places.range(..run.counted).count();
    SimulationRun { entries, counted, ..run }
}

/// `--shrink`
fn shrink_to(
    sentence: &str,
    path: Option<&str>,
    recording: &Recording<'_>,
    clock: &Clock,
) -> Result<(), Failure> {
    let plan = first_plan(recording, clock)?;
    let claim = Claim::read(sentence, &[&plan]).map_err(|invalid| {
        let help = if invalid.help.is_empty() { String::new() } else { format!("; {}", invalid.help) };
        Failure::Usage(format!("invalid --shrink `{sentence}`: {}{help}", invalid.message))
    })?;
    let mut incident = Incident::new(recording, clock, Some(&claim))?;
    let expectations = vec![Expectation { claim: claim.clone(), why: None }];
    let judged = judge(&Scenario { expectations, ..Scenario::default() }, &incident.run);
    let happened =
        judged.first().map_or_else(String::new, |verdict| sanitized(&verdict.happened).to_string());
    if judged.iter().all(|verdict| verdict.holds) {
        return output::print(&format!("kept: {claim}: {happened}\n"));
    }
    let Some(shrunk) = shrink(&incident.plan, &incident.recorded.scenario, &claim) else {
        let why = match incident.world.has_exited {
            true => "",
            false => {
                "; the supervisor still ran when the recording ended, and a simulation ends with a shutdown"
            }
        };
        return Err(Failure::Failed(format!(
            "the recording breaks the sentence ({happened}), but a simulation of it does not: it cannot be shrunk{why}"
        )));
    };
    let Shrunk { scenario, facts: (left, all), .. } = shrunk;
    incident.recorded = RecordedScenario { scenario, ..incident.recorded }.without_reloads(&incident.plan);
    incident.warn();
    let are = if left == 1 { "is" } else { "are" };
    let summary = format!("broken: {claim}: {happened}. {left} of {all} facts {are} needed");
    let text =
        write::text(&incident.recorded.scenario, &incident.head(clock, &[summary.clone(), String::new()]));
    match path.filter(|path| *path != "-") {
        Some(path) => {
            write_new(path, &text)?;
            output::print(&format!("{}\n", sanitized(&summary)))?;
        }
        None => output::print(&text)?,
    }
    Err(Failure::Reported)
}

/// The configuration at the beginning of a recording.
fn first_plan(recording: &Recording<'_>, clock: &Clock) -> Result<Plan, Failure> {
    let mut plan = None;
    play(&mut Replay::new(recording), clock, |core, now, input, effects| {
        plan = Some(core.plan().clone());
        core.step(now, input, effects);
    })?;
    plan.ok_or_else(|| Failure::Failed("nothing was recorded".to_owned()))
}
