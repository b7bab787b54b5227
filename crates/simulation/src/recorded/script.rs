//! The scenario of a recorded world.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::answer::{Answer, Instance};
use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Plan, Signal};

use super::{RecordedCheck, RecordedFile, RecordedJob, RecordedRun, RecordedWorld};
use crate::defaults;
use crate::scenario::{
    Action, CheckAnswer, CheckAnswers, FileScript, JobScript, Lifetime, Observation, RunScript, Scenario,
};
use crate::world::HARMLESS;
use crate::world::script::Period;

/// A process that exits so soon after a signal has exited because of it.
const SOON: Duration = Duration::from_secs(1);
/// A check that passes without consequences counts as one that takes the default time, unless it takes longer than this.
const QUICK: Duration = Duration::from_millis(100);
/// A check that was canceled after this time hung.
const HUNG: Duration = Duration::from_secs(1);
/// So many checks before the first one that passes have times of their own: each delays the next.
const EARLY: usize = 20;
/// What signals ask a program to exit.
const ENDING: [Signal; 4] = [Signal::INT, Signal::QUIT, Signal::KILL, Signal::TERM];

/// A scenario that was recorded.
#[derive(Clone, Debug)]
pub struct RecordedScenario {
    /// The scenario.
    pub scenario: Scenario,
    /// What it does not say, as sentences.
    pub left_out: Vec<String>,
    /// The states of jobs at the beginning, if the startup was not recorded.
    pub before: Vec<(String, &'static str)>,
    /// The jobs whose last run in it was not over.
    pub unfinished: Vec<String>,
}

/// A plan, and what it becomes each time the number of replicas is set. The plan itself is the first.
#[must_use]
pub fn scaled_plans(plan: &Plan, scenario: &Scenario) -> Vec<Plan> {
    let mut plans = vec![plan.clone()];
    for (_, action) in &scenario.actions {
        if let Action::Scale(name, count) = action
            && let Some(next) = plans.last().and_then(|plan| plan.scaled(name, *count).ok())
        {
            plans.push(next);
        }
    }
    plans
}

impl RecordedScenario {
    /// Without the names that only another configuration has, which was loaded later and is not known: a scenario must not
    /// have them.
    #[must_use]
    pub fn without_reloads(mut self, plan: &Plan) -> Self {
        let has_reload =
            |(_, action): &(Duration, Action)| matches!(action, Action::Reload(path, _) if path.is_empty());
        if !self.scenario.actions.iter().any(has_reload) {
            return self;
        }
        let plans = scaled_plans(plan, &self.scenario);
        let has_job = |name: &str| {
            plans.iter().flat_map(|plan| &plan.jobs).any(|job| job.name == name || job.is_replica_of(name))
        };
        let mut gone = Vec::new();
        let mut keep = |kind: &str, name: &str, is_known: bool| {
            if !is_known {
                gone.push(format!("{kind} {name}, which only a configuration has that was loaded later"));
            }
            is_known
        };
        let scenario = &mut self.scenario;
        scenario.jobs.retain(|name, _| keep("job", name, has_job(name)));
        for (name, script) in &mut scenario.jobs {
            let jobs = || plans.iter().flat_map(|plan| &plan.jobs).filter(|job| job.name == *name);
            let is_known = |answers: &CheckAnswers| {
                let mut checks = jobs().flat_map(|job| &job.health).flat_map(|health| &health.checks);
                checks.any(|check| answers.check.as_ref().is_none_or(|name| check.name == *name))
            };
            script.checks.retain(is_known);
            script.runs.iter_mut().for_each(|run| run.checks.retain(is_known));
            if !jobs().any(|job| job.exec.is_some()) {
                script.runs.clear();
            }
        }
        scenario
            .watches
            .retain(|name, _| keep("watch", name, plan.watches.iter().any(|watch| watch.name == *name)));
        scenario.locks.retain(|name, _| keep("lock", name, plan.locks.iter().any(|lock| lock.name == *name)));
        scenario.files.retain(|name, _| keep("file", name, plan.files.iter().any(|file| file.name == *name)));
        scenario.actions.retain(|(_, action)| match action {
            Action::Job(_, name) => keep("job", name, has_job(name)),
            Action::Scale(name, count) => keep("job", name, plan.scaled(name, *count).is_ok()),
            _ => true,
        });
        self.left_out.extend(gone);
        self.left_out.sort();
        self.left_out.dedup();
        self
    }
}

impl RecordedWorld {
    /// The world as a scenario. `reloads` has the paths of the configurations that were loaded, as far as they are known.
    #[must_use]
    pub fn scenario(&self, reloads: &[String]) -> RecordedScenario {
        let since = |at: Time| self.since_begin(at);
        let mut left_out = self.left_out.clone();
        let jobs = self.jobs.iter().map(|(name, job)| (name.clone(), self.job(job)));
        let watches = self.watches.iter().map(|(name, seen)| (name.clone(), self.observations(seen)));
        let locks = self.locks.iter().map(|(name, changes)| {
            let mut changes: Vec<_> = changes.iter().map(|(at, held)| (since(*at), *held)).collect();
            if changes.is_empty() {
                changes.push((Duration::ZERO, false));
            }
            (name.clone(), changes)
        });
        let files = self.files.iter().map(|(name, file)| (name.clone(), self.file(file)));
        let mut reloads = reloads.iter();
        let actions = self.actions.iter().map(|(at, action)| {
            let action = match action {
                Action::Reload(_, plan) => {
                    let path = reloads.next().cloned().unwrap_or_default();
                    if path.is_empty() {
                        left_out.push(
                            "another configuration that was loaded: it is not in a recording".to_owned(),
                        );
                    }
                    Action::Reload(path, plan.clone())
                }
                other => other.clone(),
            };
            (since(*at), action)
        });
        let actions = actions.collect();
        let scenario = Scenario {
            until: Some(self.until()),
            clock: self.clock,
            jobs: jobs.filter(|(_, job)| *job != JobScript::default()).collect(),
            watches: watches.collect(),
            locks: locks.collect(),
            files: files.collect(),
            actions,
            ..Scenario::default()
        };
        left_out.sort();
        left_out.dedup();
        let before = self.jobs.iter().filter_map(|(name, job)| Some((name.clone(), job.before?)));
        let unfinished = |job: &&RecordedJob| {
            job.runs.last().is_some_and(|run| run.exited.is_none() && run.failed.is_none() && !run.canceled)
        };
        let unfinished = self.jobs.iter().filter(|(_, job)| unfinished(job)).map(|(name, _)| name.clone());
        RecordedScenario { scenario, left_out, before: before.collect(), unfinished: unfinished.collect() }
    }

    /// When the simulation ends: what happens in the last step is part of it.
    fn until(&self) -> Duration {
        round_up(self.since_begin(self.end)) + Duration::from_secs(u64::from(self.has_exited))
    }

    fn job(&self, job: &RecordedJob) -> JobScript {
        let mut runs: Vec<RunScript> = job.runs.iter().map(|run| run.script(self.end)).collect();
        // The last one is repeated.
        while let [.., one, last] = runs.as_slice()
            && one == last
        {
            runs.pop();
        }
        JobScript { runs, checks: answers(&job.checks, |at| self.since_begin(at)) }
    }

    fn observations(&self, seen: &[(Time, Answer)]) -> Vec<Observation> {
        if seen.is_empty() {
            // It was not answered until the end.
            return vec![Observation { at: self.until(), instances: 1, value: None, generation: 0 }];
        }
        let mut values: Vec<&Answer> = Vec::new();
        let (mut generation, mut last) = (0, None::<&[Instance]>);
        let observation = |(at, answer): &(Time, Answer)| {
            let at = self.since_begin(*at);
            let (mut instances, mut value) = (1, None);
            match answer {
                Answer::Instances(found) => {
                    instances = u16::try_from(found.len()).unwrap_or(u16::MAX).min(1000)
                }
                Answer::Up => {}
                Answer::Absent | Answer::Down(_) => instances = 0,
                Answer::Value(_) | Answer::Entries(_) => value = Some(()),
            }
            (at, instances, value)
        };
        seen.iter()
            .map(|one| {
                let (at, instances, value) = observation(one);
                let value = value.map(|()| {
                    let known = values.iter().position(|value| **value == one.1);
                    let number = known.unwrap_or_else(|| {
                        values.push(&one.1);
                        values.len() - 1
                    });
                    format!("value {}", number + 1)
                });
                if let Answer::Instances(found) = &one.1 {
                    if last.is_some_and(|last| last.len() == found.len() && !found.is_empty()) {
                        generation += 1;
                    }
                    last = Some(found);
                }
                Observation { at, instances, value, generation }
            })
            .collect()
    }

    fn file(&self, file: &RecordedFile) -> FileScript {
        let takes = median(file.spans.iter().map(|(from, to)| to.since(*from)).collect());
        let mut fails: Vec<Period> = Vec::new();
        let mut before = None;
        for (began, is_good) in &file.renderings {
            let from = round_down(before, self.since_begin(*began));
            match fails.last_mut().filter(|period| period.to.is_none()) {
                Some(open) if *is_good => open.to = Some(from),
                None if !is_good => fails.push(Period { from, to: None }),
                _ => {}
            }
            before = Some(self.since_begin(*began));
        }
        FileScript {
            takes: takes.unwrap_or(defaults::CHECK),
            fails,
            tests: answers(&file.tests, |at| self.since_begin(at)),
        }
    }
}

impl RecordedRun {
    /// What the program does, counted from its start.
    pub(crate) fn script(&self, end: Time) -> RunScript {
        let start = self.started.unwrap_or(self.spawned);
        let some = |time: Duration| Some(Lifetime::For(time)).filter(|_| !time.is_zero());
        let starts_in = match (self.started.or(self.failed.map(|(at, _)| at)), self.canceled) {
            (Some(at), _) => some(at.since(self.spawned)),
            (None, true) => Some(Lifetime::Forever),
            (None, false) => None,
        };
        let mut script = RunScript { starts_in, ..RunScript::default() };
        if let (None, Some((_, kind))) = (self.started, self.failed) {
            // One that was killed before it was executed was sent a signal.
            script.fails = Some(kind).filter(|kind| !matches!(kind, StartErrorKind::Killed(_)));
            return script;
        }
        self.add_end(start, &mut script);
        if self.says_ready {
            script.ready = match self.ready {
                Some(at) => some(at.since(start)),
                None => Some(Lifetime::Forever),
            };
        }
        let over = self.exited.map_or(end, |(at, _)| at);
        let over = self.signals.iter().find(|(.., ends)| *ends).map_or(over, |(at, ..)| *at);
        if let (Some(time), Some(alive)) = (self.watchdog, self.alive)
            && over.since(alive) > time
        {
            script.watchdog_stops = Some(Lifetime::For(alive.since(start) + Duration::from_millis(1)));
        }
        if let Some(drain) = &self.drain {
            script.drain_fails = drain.answer == CheckAnswer::Fail;
            script.drain = match drain.done {
                Some(at) if drain.answer != CheckAnswer::Hang => Some(Lifetime::For(at.since(drain.started))),
                _ => Some(Lifetime::Forever),
            };
        }
        if let (true, Some((at, _))) = (self.has_rest, self.exited) {
            script.outlived_for =
                Some(self.gone.map_or(Lifetime::Forever, |gone| Lifetime::For(gone.since(at))));
        }
        script.checks = answers(&self.checks, |at| at.since(start));
        script
    }

    fn add_end(&self, start: Time, script: &mut RunScript) {
        let sent: Vec<&(Time, Signal, bool)> =
            self.signals.iter().filter(|(_, signal, _)| !HARMLESS.contains(signal)).collect();
        let Some((at, status)) = self.exited else {
            let survived = sent.iter().filter(|(.., ends)| !ends);
            script.ignores = survived.map(|(_, signal, _)| *signal).collect();
            script.lasts = Some(Lifetime::Forever);
            return;
        };
        let Some((then, signal)) = self.ended_by(&sent, at, status) else {
            script.lasts = Some(Lifetime::For(at.since(start)));
            script.status = Some(status);
            script.ignores = sent.iter().map(|(_, signal, _)| *signal).collect();
            return;
        };
        script.lasts = Some(Lifetime::Forever);
        let before = sent.iter().filter(|(_, other, _)| *other != signal).filter(|(sent, ..)| *sent <= then);
        script.ignores = before.map(|(_, signal, _)| *signal).collect();
        if signal == Signal::KILL {
            // What ends only by SIGKILL.
            let is_stubborn = !script.ignores.is_empty();
            script.ignores = Default::default();
            script.stops_in = is_stubborn.then_some(Lifetime::Forever);
            return;
        }
        script.stops_in = Some(Lifetime::For(at.since(then)));
        script.stop_exit = match status {
            ExitStatus::Code(code) => Some(code),
            ExitStatus::Signal(_) => None,
        };
    }

    /// The signal that it exited on, if it did not exit by itself, and when that was sent first.
    fn ended_by(
        &self,
        sent: &[&(Time, Signal, bool)],
        at: Time,
        status: ExitStatus,
    ) -> Option<(Time, Signal)> {
        let signal = match status {
            ExitStatus::Signal(signal) => signal,
            ExitStatus::Code(_) => {
                let asks = |(then, signal, ends): &(Time, Signal, bool)| {
                    *ends || ENDING.contains(signal) || at.since(*then) <= SOON
                };
                sent.iter().rev().find(|sent| asks(sent))?.1
            }
        };
        // A code is no answer to SIGKILL.
        let is_possible = signal != Signal::KILL || matches!(status, ExitStatus::Signal(_));
        let first = sent.iter().find(|(_, other, _)| *other == signal).filter(|_| is_possible)?;
        Some((first.0, signal))
    }
}

/// The recorded checks of one name, in one run, and how many of them have happened again.
#[derive(Clone, Debug)]
pub(crate) struct NextChecks {
    checks: Vec<NextCheck>,
    next: usize,
}

/// A recorded check that happens again, with times of the simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextCheck {
    started: Time,
    pub(crate) answer: CheckAnswer,
    pub(crate) takes: Duration,
    /// When it was done, if that matters.
    pub(crate) done: Option<Time>,
    matters: bool,
    /// True if something followed from it.
    has_effect: bool,
}

impl NextChecks {
    pub(crate) fn new(checks: &[RecordedCheck], name: &str, simulated: impl Fn(Time) -> Time) -> Self {
        let own = counted(checks, name);
        let routine = routine_times(&own);
        let next = |(check, matters): (&RecordedCheck, bool)| {
            let (answer, takes) = outcome(check, matters, routine);
            let done = check.done.filter(|_| matters && answer != CheckAnswer::Hang).map(&simulated);
            let started = simulated(check.started);
            NextCheck { started, answer, takes, done, matters, has_effect: check.matters }
        };
        Self { checks: with_early(own).map(next).collect(), next: 0 }
    }

    /// The next one. The last one is repeated, without its time.
    ///
    /// Each check of a supervisor is a little late, and delays the next, so a simulation has more of them in the same time.
    /// They follow the time where one more or less changes nothing.
    pub(crate) fn next(&mut self, now: Time) -> Option<NextCheck> {
        let late = |check: &NextCheck| check.started.since(now).max(now.since(check.started));
        while let (Some(one), Some(next)) = (self.checks.get(self.next), self.checks.get(self.next + 1))
            && !one.matters
            && !next.matters
            && one.answer == next.answer
            && late(next) < late(one)
        {
            self.next += 1;
        }
        if let Some(before) = self.before_change()
            && let Some(next) = self.checks.get(self.next)
            && next.started.since(now) > next.started.since(before.started) / 2
        {
            return Some(NextCheck { done: None, ..before });
        }
        let check = self.checks.get(self.next).copied();
        self.next += 1;
        check.or_else(|| Some(NextCheck { done: None, ..*self.checks.last()? }))
    }

    /// The last one, if the next one has another result, and the same result once more has no effect: the job is healthy
    /// or unhealthy already.
    fn before_change(&self) -> Option<NextCheck> {
        let (before, rest) = self.checks.split_at_checked(self.next)?;
        let last = before.last()?;
        let mut same = before.iter().rev().take_while(|check| check.answer == last.answer);
        let is_known = last.answer == CheckAnswer::Pass || same.any(|check| check.has_effect);
        (is_known && rest.first()?.answer != last.answer).then_some(*last)
    }
}

/// The checks of this name that have a result.
fn counted<'a>(checks: &'a [RecordedCheck], name: &str) -> Vec<&'a RecordedCheck> {
    let counts = |check: &&RecordedCheck| {
        let hung = || check.done.is_some_and(|done| done.since(check.started) >= HUNG);
        check.name == name && check.done.is_some() && (!check.is_canceled || hung())
    };
    checks.iter().filter(counts).collect()
}

/// Each check, and whether its time matters.
fn with_early(checks: Vec<&RecordedCheck>) -> impl Iterator<Item = (&RecordedCheck, bool)> {
    let first_pass = checks.iter().position(|check| check.answer == CheckAnswer::Pass);
    let early = first_pass.map_or(EARLY, |first| EARLY.min(first + 1));
    checks.into_iter().enumerate().map(move |(nth, check)| (check, check.matters || nth < early))
}

/// How long checks take that pass, and that fail, without consequences.
fn routine_times(checks: &[&RecordedCheck]) -> (Duration, Duration) {
    let of = |answer: CheckAnswer| {
        let own = checks.iter().filter(|check| check.answer == answer && !check.matters);
        median(own.filter_map(|check| Some(check.done?.since(check.started))).collect())
    };
    let passes = of(CheckAnswer::Pass).filter(|time| *time > QUICK).unwrap_or(defaults::CHECK);
    (passes, of(CheckAnswer::Fail).unwrap_or(defaults::CHECK))
}

/// The result of a check, and how long it takes. Checks that do not matter take equally long, so that a steady job has one
/// line.
fn outcome(
    check: &RecordedCheck,
    matters: bool,
    (passes, fails): (Duration, Duration),
) -> (CheckAnswer, Duration) {
    let took = check.done.map_or(defaults::CHECK, |done| done.since(check.started));
    let takes = match check.answer {
        CheckAnswer::Hang => defaults::CHECK,
        _ if matters => took,
        CheckAnswer::Pass => passes,
        CheckAnswer::Fail => fails,
    };
    (check.answer, takes)
}

/// The results of checks, as periods.
fn answers(checks: &[RecordedCheck], since: impl Fn(Time) -> Duration) -> Vec<CheckAnswers> {
    let mut names: Vec<&str> = Vec::new();
    for check in checks {
        if !names.contains(&check.name.as_str()) {
            names.push(&check.name);
        }
    }
    let is_alone = names.len() <= 1;
    let mut all = Vec::new();
    for name in names {
        let own = counted(checks, name);
        let routine = routine_times(&own);
        let mut before = None;
        let first = all.len();
        for (check, matters) in with_early(own) {
            let (answer, takes) = outcome(check, matters, routine);
            let started = since(check.started);
            let is_same = |last: &CheckAnswers| last.answer == answer && last.takes == takes;
            if !all.get(first..).and_then(<[_]>::last).is_some_and(is_same) {
                let from = if before.is_none() { Duration::ZERO } else { round_down(before, started) };
                if let Some(last) = all.get_mut(first..).and_then(<[_]>::last_mut) {
                    last.period.to = Some(from);
                }
                let check = (!is_alone).then(|| name.to_owned());
                all.push(CheckAnswers { check, period: Period { from, to: None }, answer, takes });
            }
            before = Some(started);
        }
    }
    // This is what a check does by default.
    all.retain(|one| (one.answer, one.takes) != defaults::check());
    all
}

/// The shortest time to write that is not later than `time`, and nearer to it than to `before`.
fn round_down(before: Option<Duration>, time: Duration) -> Duration {
    let Some(before) = before else { return time };
    let after = before + time.saturating_sub(before) / 2;
    let units = [
        3_600_000_000_000,
        60_000_000_000,
        10_000_000_000,
        1_000_000_000,
        100_000_000,
        10_000_000,
        1_000_000,
    ];
    let nanos = time.as_nanos();
    let rounded = units.iter().map(|unit| nanos - nanos % unit);
    let rounded = rounded.filter_map(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
    rounded.into_iter().find(|rounded| *rounded > after).unwrap_or(time)
}

/// The next whole millisecond.
fn round_up(time: Duration) -> Duration {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis.saturating_add(1))
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}
