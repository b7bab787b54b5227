//! What programs, checks and the catalog do in a scenario. What it does not say is in `defaults.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::ids::{CheckIx, FileIx, JobIx, WatchIx};
use containerpilot_core::input::{Answer, Instance};
use containerpilot_core::plan::{Catalog, Plan, Watch, WatchKind};

use crate::defaults::{self, AwaitedJobs};
use crate::recorded::{NextChecks, RecordedRun, RecordedWorld};
use crate::scenario::{CheckAnswer, CheckAnswers, FileScript, Lifetime, Observation, RunScript, Scenario};
use crate::world::script::{
    AgentScript, CheckEnd, CheckScript, ProgramScript, Reaction, RenderEnd, RenderScript, ReportScript, Rest,
    Script, WatchScript,
};

/// Something the scenario does at a set time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An action on the supervisor, by index.
    Action(usize),
    /// The catalog forgets a service, by index.
    Forget(usize),
    /// An outage of the catalog starts or ends.
    Outage(bool),
    /// An expectation must see the state of a job.
    Probe,
}

/// A scenario, and how far its jobs have come.
pub(crate) struct Behavior<'a> {
    pub(crate) scenario: &'a Scenario,
    /// The times of this world count, where the scenario has durations.
    recorded: Option<&'a RecordedWorld>,
    /// How far the checks of recorded runs have come.
    checked: BTreeMap<(String, String), NextChecks>,
    /// The awaited jobs of the plan in force.
    awaited: AwaitedJobs,
    /// How many runs each job has had.
    runs: BTreeMap<String, usize>,
    /// The current run of each job and its start. Of a job without a program, its first check.
    since: BTreeMap<String, (RunScript, Time)>,
}

impl<'a> Behavior<'a> {
    pub(crate) fn new(scenario: &'a Scenario, plan: &Plan) -> Self {
        Self {
            scenario,
            recorded: None,
            checked: BTreeMap::new(),
            awaited: AwaitedJobs::of(plan),
            runs: BTreeMap::new(),
            since: BTreeMap::new(),
        }
    }

    /// The world that the scenario was made of, with its times.
    pub(crate) fn as_recorded(scenario: &'a Scenario, recorded: &'a RecordedWorld, plan: &Plan) -> Self {
        Self { recorded: Some(recorded), ..Self::new(scenario, plan) }
    }

    /// The plan was replaced.
    pub(crate) fn set_plan(&mut self, plan: &Plan) {
        self.awaited = AwaitedJobs::of(plan);
    }

    fn run_script(&self, job: &str, nth: usize) -> RunScript {
        let runs = self.scenario.jobs.get(job).map(|script| script.runs.as_slice()).unwrap_or_default();
        runs.get(nth).or(runs.last()).cloned().unwrap_or_default()
    }

    fn file_script(&self, plan: &Plan, file: FileIx) -> FileScript {
        let name = plan.files.get(file.index()).map_or("", |file| file.name.as_str());
        self.scenario.files.get(name).cloned().unwrap_or_else(defaults::file)
    }

    /// What a watch sees by the script or by default; `None` if it follows the catalog.
    pub(crate) fn observations(&self, plan: &Plan, watch: &Watch) -> Option<Vec<Observation>> {
        let observations = self.scenario.watches.get(&watch.name).cloned();
        observations.or_else(|| defaults::observations(plan, watch))
    }

    /// The recorded run of a job.
    fn recorded_run(&self, job: &str, nth: usize) -> Option<(&'a RecordedWorld, &'a RecordedRun)> {
        let world = self.recorded?;
        Some((world, world.jobs.get(job)?.runs.get(nth)?))
    }

    /// The times of a recorded run in place of durations.
    fn set_times(&self, job: &str, nth: usize, now: Time, script: &mut ProgramScript) {
        let Some((world, run)) = self.recorded_run(job, nth) else { return };
        let wait = |at: Time| world.simulated(at).since(now);
        if let Some(at) = run.started.or(run.failed.map(|(at, _)| at)) {
            script.starts_in = Some(wait(at));
        }
        let Some((at, _)) = run.exited else { return };
        let starts = script.starts_in.unwrap_or_default();
        script.exits_after = script.exits_after.map(|_| wait(at).saturating_sub(starts));
        if let Reaction::Exits(_, code) = script.on_signal
            && run.signals.iter().any(|(.., ends)| *ends)
        {
            script.on_signal = Reaction::ExitsAt(world.simulated(at), code);
        }
    }

    /// What a recorded check did.
    fn recorded_check(
        &mut self,
        job: &str,
        check: &str,
        timeout: Duration,
        now: Time,
    ) -> Option<(CheckAnswer, Duration)> {
        let world = self.recorded?;
        let nth = self.runs.get(job).copied().unwrap_or_default().checked_sub(1);
        let recorded = world.jobs.get(job)?;
        let checks = match nth {
            Some(nth) => &recorded.runs.get(nth)?.checks,
            None => &recorded.checks,
        };
        let place = (job.to_owned(), check.to_owned());
        let new = || NextChecks::new(checks, check, |at| world.simulated(at));
        let check = self.checked.entry(place).or_insert_with(new).next(now)?;
        // It may take longer, but it has a timeout.
        let exact = check.done.map(|done| done.since(now));
        let exact = exact.filter(|exact| !exact.is_zero() && *exact < timeout);
        Some((check.answer, exact.unwrap_or(check.takes)))
    }

    fn check_answer(
        &mut self,
        job: &str,
        check: &str,
        timeout: Duration,
        now: Time,
    ) -> (CheckAnswer, Duration) {
        if let Some(recorded) = self.recorded_check(job, check, timeout, now) {
            return recorded;
        }
        let elapsed = now.since(Time::ZERO);
        let fits = |answers: &&CheckAnswers| {
            answers.period.contains(elapsed) && answers.check.as_ref().is_none_or(|name| name == check)
        };
        let script = self.scenario.jobs.get(job);
        if let Some(answers) = script.and_then(|script| script.checks.iter().rev().find(fits)) {
            return (answers.answer, answers.takes);
        }
        let (run, since) = self.since.entry(job.to_owned()).or_insert((RunScript::default(), now));
        let (in_run, since) = (now.since(*since), *since);
        let fits = |answers: &&CheckAnswers| {
            answers.period.contains(in_run) && answers.check.as_ref().is_none_or(|name| name == check)
        };
        if let Some(answers) = run.checks.iter().rev().find(fits) {
            return (answers.answer, answers.takes);
        }
        let (answer, takes) = defaults::check();
        let fails = match run.healthy_after {
            None => false,
            Some(Lifetime::Forever) => true,
            Some(Lifetime::For(time)) => now.since(since) < time,
        };
        (if fails { CheckAnswer::Fail } else { answer }, takes)
    }
}

impl Script for Behavior<'_> {
    type Event = Event;

    fn program(&mut self, plan: &Plan, job: JobIx, now: Time) -> ProgramScript {
        let planned = plan.jobs.get(job.index());
        let name = planned.map_or("", |job| job.name.as_str());
        let nth = self.runs.get(name).copied().unwrap_or_default();
        self.runs.insert(name.to_owned(), nth + 1);
        let script = self.run_script(name, nth);
        let usual = defaults::program(&self.awaited, planned);
        // A program with an exit status does exit.
        let exits = script.status.map(|_| Lifetime::For(defaults::TASK));
        let mut program = ProgramScript {
            starts_in: script.starts_in.map_or(usual.starts_in, Lifetime::time),
            start_error: script.fails.or(usual.start_error),
            exits_after: script.lasts.or(exits).map_or(usual.exits_after, Lifetime::time),
            status: script.status.unwrap_or(usual.status),
            on_signal: match (script.stops_in, usual.on_signal) {
                (Some(Lifetime::Forever), _) => Reaction::Ignores,
                (Some(Lifetime::For(time)), _) | (None, Reaction::Exits(time, None)) => {
                    Reaction::Exits(time, script.stop_exit)
                }
                (None, usual) => usual,
            },
            rest: script.outlived_for.map_or(usual.rest, |time| match time {
                Lifetime::For(Duration::ZERO) => Rest::Nothing,
                Lifetime::For(time) => Rest::For(time),
                Lifetime::Forever => Rest::UntilKilled,
            }),
            reports: ReportScript {
                ready: script.ready.map_or(usual.reports.ready, Lifetime::time),
                hangs: script.watchdog_stops.map_or(usual.reports.hangs, Lifetime::time),
                ..usual.reports
            },
            ignores: script.ignores,
            ..usual
        };
        self.set_times(name, nth, now, &mut program);
        program
    }

    fn started(&mut self, job: &str, now: Time) {
        let nth = self.runs.get(job).copied().unwrap_or_default().saturating_sub(1);
        self.since.insert(job.to_owned(), (self.run_script(job, nth), now));
        self.checked.retain(|(of, _), _| of != job);
    }

    fn exited(&mut self, job: &str) {
        self.since.remove(job);
    }

    fn check(&mut self, plan: &Plan, job: JobIx, check: CheckIx, now: Time) -> CheckScript {
        let planned = plan.jobs.get(job.index());
        let health = planned.and_then(|job| job.health.as_ref());
        let check = health.and_then(|health| health.checks.get(check.index()));
        let (answer, takes) = match (planned, check) {
            (Some(job), Some(check)) if !check.probe.is_passive() => {
                self.check_answer(&job.name, &check.name, check.timeout, now)
            }
            _ => (CheckAnswer::Pass, Duration::ZERO),
        };
        CheckScript {
            takes: (answer != CheckAnswer::Hang).then_some(takes),
            end: CheckEnd::passes(answer == CheckAnswer::Pass),
            cancel_takes: Duration::ZERO,
        }
    }

    fn render(&mut self, plan: &Plan, file: FileIx, now: Time) -> RenderScript {
        let script = self.file_script(plan, file);
        let fails = script.fails.iter().any(|period| period.contains(now.since(Time::ZERO)));
        let end = if fails { RenderEnd::Fails } else { RenderEnd::Renders };
        RenderScript { takes: script.takes, end, installs: true }
    }

    fn test(&mut self, plan: &Plan, file: FileIx, now: Time) -> CheckScript {
        let script = self.file_script(plan, file);
        let elapsed = now.since(Time::ZERO);
        let answers = script.tests.iter().rev().find(|answers| answers.period.contains(elapsed));
        let (answer, takes) = answers.map_or_else(defaults::check, |answers| (answers.answer, answers.takes));
        CheckScript {
            takes: (answer != CheckAnswer::Hang).then_some(takes),
            end: CheckEnd::passes(answer == CheckAnswer::Pass),
            cancel_takes: Duration::ZERO,
        }
    }

    fn drain(&mut self, plan: &Plan, job: JobIx) -> CheckScript {
        let name = plan.jobs.get(job.index()).map_or("", |job| job.name.as_str());
        let run = self.since.get(name).map(|(run, _)| run.clone()).unwrap_or_default();
        let usual = defaults::drain();
        CheckScript {
            takes: run.drain.map_or(usual.takes, Lifetime::time),
            end: if run.drain_fails { CheckEnd::Fails } else { usual.end },
            ..usual
        }
    }

    fn agent(&self, plan: &Plan, _job: JobIx) -> Option<AgentScript> {
        let outages = || self.scenario.outages.clone();
        (plan.catalog != Catalog::Embedded).then(|| AgentScript { outages: outages(), ..defaults::agent() })
    }

    fn watch(&self, plan: &Plan, watch: WatchIx, now: Time) -> WatchScript {
        let elapsed = now.since(Time::ZERO);
        let Some(watch) = plan.watches.get(watch.index()) else { return WatchScript::NoAnswer };
        if watch.kind.is_in_catalog()
            && let Some(end) = self.scenario.outage_at(elapsed)
        {
            return end.map_or(WatchScript::NoAnswer, |end| WatchScript::AnswerAt(Time::ZERO + end));
        }
        let Some(observations) = self.observations(plan, watch) else { return WatchScript::Catalog };
        let Some(seen) = observations.iter().rev().find(|seen| seen.at <= elapsed) else {
            return WatchScript::NoAnswer;
        };
        let instance = |nth: u16| Instance {
            id: format!("{}-{}", watch.name, u32::from(nth) + seen.generation.saturating_mul(1_000)),
            address: "192.0.2.1".to_owned(),
            port: nth.saturating_add(1),
            ..Instance::default()
        };
        let value =
            || seen.value.clone().unwrap_or_else(|| format!("contents {}", seen.generation)).into_bytes();
        let is_up = seen.instances > 0;
        WatchScript::Answer(match &watch.kind {
            WatchKind::Service { .. } | WatchKind::Dns { .. } => {
                Answer::Instances((0..seen.instances).map(instance).collect())
            }
            WatchKind::Tcp { .. } if is_up => Answer::Up,
            WatchKind::Http(_) | WatchKind::File { .. } | WatchKind::Key { .. } if is_up => {
                Answer::Value(value().into())
            }
            WatchKind::Tcp { .. } | WatchKind::Http(_) => Answer::Down("connection refused".to_owned()),
            WatchKind::Prefix { .. } if is_up => Answer::Entries([("key".to_owned(), value().into())].into()),
            WatchKind::File { .. } | WatchKind::Key { .. } | WatchKind::Prefix { .. } => Answer::Absent,
        })
    }
}
