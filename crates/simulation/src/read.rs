//! Parses a user's file into a scenario. Reports all errors at once, each with its place.

mod expected;
mod sentence;

use std::time::Duration;

use containerpilot_config::decode::{Spanned, alternatives};
use containerpilot_config::diagnostics::{Place, Problem, Report, Severity, is_reported};
use containerpilot_config::values::{Several, TimeLimit, to_duration, value_of};
use containerpilot_config::{ConfigFile, PlainFile, read_plain_file};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{Catalog, Plan, Role, WatchKind};
use std::collections::BTreeMap;

use crate::fields::{
    ActionFields, CatalogFields, CheckFields, FileFields, LockChangeFields, LockFields, ObservationFields,
    RunFields, ScenarioFields, ScriptFields, WatchFields,
};
use crate::moment::nearest_name;
use crate::scenario::{
    Action, CheckAnswer, CheckAnswers, FileScript, JobAction, JobScript, Lifetime, LockChanges, Observation,
    RunScript, Scenario,
};
use crate::world::script::Period;

/// A scenario whose names have not been resolved yet.
#[derive(Clone, Debug)]
pub struct Draft {
    plain: PlainFile<ScenarioFields>,
}

impl Draft {
    /// Parses a file.
    #[must_use]
    pub fn read(input: ConfigFile) -> Self {
        Self { plain: read_plain_file(input) }
    }

    /// The paths of the configurations that it reloads, as written.
    #[must_use]
    pub fn reloads(&self) -> Vec<String> {
        let happens = self.plain.fields.iter().filter_map(|fields| fields.happens.as_ref());
        let paths = happens.flat_map(|happens| &happens.value).filter_map(|one| value_of(&one.reload));
        let mut paths: Vec<String> = paths.collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// Resolves names in the configuration and in those it reloads. `others` has the latter by path, or why they cannot be
    /// loaded.
    ///
    /// # Errors
    /// All errors.
    pub fn scenario(
        self,
        plan: &Plan,
        others: &BTreeMap<String, Result<Plan, String>>,
    ) -> Result<Scenario, Report> {
        let PlainFile { file, fields, mut problems } = self.plain;
        let mut plans = vec![plan];
        plans.extend(others.values().filter_map(|other| other.as_ref().ok()));
        // The names of replicas that the scenario adds.
        let happens = fields.iter().flat_map(|fields| each(&fields.happens));
        let scales = happens.filter_map(|action| scale(&action.scale.as_ref()?.value));
        let scaled: Vec<Plan> = scales
            .flat_map(|(name, count)| plans.iter().filter_map(move |plan| plan.scaled(name, count).ok()))
            .collect();
        plans.extend(&scaled);
        let scenario = fields.map(|fields| {
            let mut reader = Reader { plans: &plans, others, problems: &mut problems };
            reader.scenario(&fields)
        });
        let wrong = problems.iter().any(|problem| problem.severity == Severity::Error);
        match scenario.filter(|_| !wrong) {
            Some(scenario) => Ok(scenario),
            None => Err(Report::new(vec![file], problems)),
        }
    }
}

/// The job and the number of its replicas in `NAME=NUMBER`.
fn scale(text: &str) -> Option<(&str, u16)> {
    let (name, count) = text.rsplit_once('=')?;
    Some((name, count.parse().ok()?))
}

struct Reader<'a> {
    plans: &'a [&'a Plan],
    others: &'a BTreeMap<String, Result<Plan, String>>,
    problems: &'a mut Vec<Problem>,
}

/// The elements of a list that may be missing.
fn each<T>(list: &Option<Spanned<Vec<T>>>) -> impl Iterator<Item = &T> {
    list.iter().flat_map(|given| &given.value)
}

fn several<T>(list: &Option<Spanned<Several<T>>>) -> impl Iterator<Item = &T> {
    list.iter().flat_map(|given| &given.value.items)
}

fn small(number: &Option<Spanned<i64>>) -> Option<u8> {
    number.as_ref().and_then(|given| u8::try_from(given.value).ok())
}

impl Reader<'_> {
    fn error(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        let (problem, help) = (Problem::new(Severity::Error, place, message), help.into());
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    fn scenario(&mut self, fields: &ScenarioFields) -> Scenario {
        let clock = value_of(&fields.at);
        let mut scenario = Scenario { until: self.time(&fields.until), clock, ..Scenario::default() };
        for script in each(&fields.jobs) {
            if let Some((name, script)) = self.script(script)
                && scenario.jobs.insert(name.value.clone(), script).is_some()
            {
                let message = format!("duplicate script for job `{}`", name.value);
                self.error(name.place, message, "put everything about a job into one script");
            }
        }
        for watch in each(&fields.watches) {
            if let Some((name, observations)) = self.watch(watch)
                && scenario.watches.insert(name.value.clone(), observations).is_some()
            {
                let message = format!("duplicate script for watch `{}`", name.value);
                self.error(name.place, message, "put everything about a watch into one script");
            }
        }
        for lock in each(&fields.locks) {
            if let Some((name, changes)) = self.lock(lock)
                && scenario.locks.insert(name.value.clone(), changes).is_some()
            {
                let message = format!("duplicate script for lock `{}`", name.value);
                self.error(name.place, message, "put everything about a lock into one script");
            }
        }
        for file in each(&fields.files) {
            if let Some((name, script)) = self.file(file)
                && scenario.files.insert(name.value.clone(), script).is_some()
            {
                let message = format!("duplicate script for file `{}`", name.value);
                self.error(name.place, message, "put everything about a file into one script");
            }
        }
        if let Some(catalog) = &fields.catalog {
            self.catalog(&catalog.value, &mut scenario);
        }
        scenario.actions = each(&fields.happens).filter_map(|one| self.action(one)).collect();
        scenario.actions.sort_by_key(|(at, _)| *at);
        scenario.expectations = each(&fields.expect).filter_map(|one| self.expectation(one)).collect();
        scenario
    }

    /// A time since the start, or a duration.
    fn time(&mut self, given: &Option<Spanned<i64>>) -> Option<Duration> {
        let given = given.as_ref()?;
        if given.value < 0 {
            self.error(given.place, "times must not be negative", "remove the minus sign");
        }
        Some(to_duration(given.value))
    }

    fn lifetime(&mut self, given: &Option<Spanned<TimeLimit>>) -> Option<Lifetime> {
        let Spanned { value, place, key, written } = *given.as_ref()?;
        match value {
            TimeLimit::Never => Some(Lifetime::Forever),
            TimeLimit::After(value) => {
                self.time(&Some(Spanned { value, place, key, written })).map(Lifetime::For)
            }
        }
    }

    fn period(&mut self, from: &Option<Spanned<i64>>, to: &Option<Spanned<i64>>) -> Period {
        let period = Period { from: self.time(from).unwrap_or_default(), to: self.time(to) };
        if let (Some(end), Some(to)) = (period.to, to)
            && end <= period.from
        {
            self.error(
                to.place,
                "`to` must be later than `from`",
                "both count from the start of the simulation",
            );
        }
        period
    }

    /// Reports a missing key, unless an error already mentions it.
    fn required<'f, T>(
        &mut self,
        field: &'f Option<Spanned<T>>,
        section: Place,
        key: &str,
    ) -> Option<&'f Spanned<T>> {
        if field.is_none() && !is_reported(self.problems, Some(section), key) {
            self.error(section, format!("`{key}` is missing"), "");
        }
        field.as_ref()
    }

    fn job<'f>(&mut self, name: &'f Spanned<String>) -> Option<&'f Spanned<String>> {
        let known = self.plans.iter().flat_map(|plan| &plan.jobs).any(|job| job.name == name.value);
        if !known {
            let help = nearest_name(&name.value, self.plans);
            self.error(name.place, format!("there is no job `{}`", name.value), help);
        }
        known.then_some(name)
    }

    /// A job, or a job with replicas (W20).
    fn target<'f>(&mut self, name: &'f Spanned<String>) -> Option<&'f Spanned<String>> {
        let mut jobs = self.plans.iter().flat_map(|plan| &plan.jobs);
        if jobs.any(|job| job.is_replica_of(&name.value)) { Some(name) } else { self.job(name) }
    }

    /// Another number of replicas.
    fn scale(&mut self, given: &Spanned<String>) -> Option<Action> {
        let Some((name, count)) = scale(&given.value) else {
            let message = format!("`{}` is not NAME=NUMBER", given.value);
            self.error(given.place, message, "write for example \"web=4\"");
            return None;
        };
        let possible = self.plans.iter().map(|plan| plan.scaled(name, count).map(drop));
        if let Some(error) = possible.reduce(|one, other| other.or(one)).and_then(Result::err) {
            self.error(given.place, error.to_string(), "");
        }
        Some(Action::Scale(name.to_owned(), count))
    }

    fn script<'f>(&mut self, fields: &'f ScriptFields) -> Option<(&'f Spanned<String>, JobScript)> {
        let name = self.required(&fields.name, fields.place, "name");
        let known = name.as_ref().map_or("", |name| name.value.as_str());
        let runs = several(&fields.runs).map(|run| self.run(run, known)).collect();
        let name = self.job(name?)?;
        let checks = several(&fields.checks).map(|one| self.answers(one, &name.value)).collect();
        let jobs: Vec<_> =
            self.plans.iter().flat_map(|plan| &plan.jobs).filter(|job| job.name == name.value).collect();
        let (exec, health) =
            (jobs.iter().any(|job| job.exec.is_some()), jobs.iter().any(|job| job.health.is_some()));
        if let Some(runs) = fields.runs.as_ref().filter(|_| !exec) {
            let message = format!("`{}` has no `exec`, so it has no runs", name.value);
            self.error(runs.key, message, "use `checks` to set the results of its checks");
        }
        let of_runs = several(&fields.runs).filter_map(|run| run.checks.as_ref());
        if let Some(checks) = fields.checks.as_ref().into_iter().chain(of_runs).next().filter(|_| !health) {
            let message = format!("`{}` has no `health`, so it is never checked", name.value);
            self.error(checks.key, message, "remove this, or add `health` to the job");
        }
        Some((name, JobScript { runs, checks }))
    }

    fn run(&mut self, fields: &RunFields, job: &str) -> RunScript {
        let checks = several(&fields.checks).map(|one| self.answers(one, job)).collect();
        let exit = small(&fields.exit).filter(|_| fields.exit.as_ref().is_some_and(|exit| exit.written));
        if let (Some(signal), Some(_)) = (&fields.signal, exit) {
            let help = "a program exits with a code or is killed by a signal; keep one of them";
            self.error(signal.key, "`signal` and `exit` cannot be combined", help);
        }
        if let Some(fails) = &fields.fails {
            let others = [
                fields.lasts.as_ref().map(|given| given.key),
                fields.signal.as_ref().map(|given| given.key),
                exit.and(fields.exit.as_ref()).map(|given| given.key),
            ];
            if others.into_iter().flatten().next().is_some() {
                let help = "a program that fails to start does not run; keep one of them";
                self.error(fails.key, "`fails` cannot be combined with `lasts`, `exit` or `signal`", help);
            }
        }
        let status = fields.signal.as_ref().map(|signal| ExitStatus::Signal(signal.value));
        RunScript {
            starts_in: self.lifetime(&fields.starts_in),
            fails: fields.fails.as_ref().map(|fails| fails.value.0),
            lasts: self.lifetime(&fields.lasts),
            status: status.or(exit.map(ExitStatus::Code)),
            stops_in: self.lifetime(&fields.stops_in),
            stop_exit: small(&fields.stop_exit),
            outlived_for: self.lifetime(&fields.outlived_for),
            healthy_after: self.lifetime(&fields.healthy_after),
            ready: self.lifetime(&fields.ready),
            drain: self.lifetime(&fields.drain),
            drain_fails: value_of(&fields.drain_exit).is_some_and(|code| code != 0),
            watchdog_stops: self.lifetime(&fields.watchdog_stops),
            ignores: fields.ignores.iter().flat_map(|given| given.value.iter().copied()).collect(),
            checks,
        }
    }

    fn answers(&mut self, fields: &CheckFields, job: &str) -> CheckAnswers {
        if let Some(check) = &fields.check {
            let jobs = self.plans.iter().flat_map(|plan| &plan.jobs).filter(|known| known.name == job);
            let checks = jobs.flat_map(|job| &job.health).flat_map(|health| &health.checks);
            let names: Vec<String> = checks.map(|check| format!("`{}`", check.name)).collect();
            if !names.contains(&format!("`{}`", check.value)) {
                let help = if names.is_empty() {
                    String::new()
                } else {
                    format!("its checks are {}", alternatives(&names))
                };
                self.error(check.place, format!("`{job}` has no check `{}`", check.value), help);
            }
        }
        CheckAnswers {
            check: value_of(&fields.check),
            period: self.period(&fields.from, &fields.to),
            answer: value_of(&fields.answer).unwrap_or(CheckAnswer::Fail),
            takes: self.time(&fields.takes).unwrap_or_default(),
        }
    }

    fn watch<'f>(&mut self, fields: &'f WatchFields) -> Option<(&'f Spanned<String>, Vec<Observation>)> {
        let name = self.required(&fields.name, fields.place, "name");
        self.required(&fields.sees, fields.place, "sees");
        let mut observations: Vec<(Observation, bool)> =
            several(&fields.sees).map(|one| self.observation(one)).collect();
        observations.sort_by_key(|(observation, _)| observation.at);
        let mut generation = 0;
        for (observation, others) in &mut observations {
            generation += u32::from(*others);
            observation.generation = generation;
        }
        let name = name?;
        if !self.plans.iter().flat_map(|plan| &plan.watches).any(|watch| watch.name == name.value) {
            let help = nearest_name(&name.value, self.plans);
            self.error(name.place, format!("there is no watch `{}`", name.value), help);
        } else {
            self.check_kind(&name.value, fields);
        }
        Some((name, observations.into_iter().map(|(observation, _)| observation).collect()))
    }

    /// Refuses what a watch of this kind does not see.
    fn check_kind(&mut self, name: &str, fields: &WatchFields) {
        let kinds = self.plans.iter().flat_map(|plan| &plan.watches).filter(|watch| watch.name == name);
        let kinds: Vec<&WatchKind> = kinds.map(|watch| &watch.kind).collect();
        for one in several(&fields.sees) {
            if let Some(value) =
                one.value.as_ref().filter(|given| given.written && !kinds.iter().any(|kind| kind.has_value()))
            {
                self.error(value.key, format!("watch `{name}` has no value"), "remove this");
            }
            if let Some(instances) = one
                .instances
                .as_ref()
                .filter(|given| given.written && !kinds.iter().any(|kind| kind.has_instances()))
            {
                let help = "write `up: true` or `up: false`";
                self.error(instances.key, format!("watch `{name}` has no instances"), help);
            }
        }
    }

    fn lock<'f>(&mut self, fields: &'f LockFields) -> Option<(&'f Spanned<String>, LockChanges)> {
        let name = self.required(&fields.name, fields.place, "name");
        self.required(&fields.changes, fields.place, "changes");
        let change = |this: &mut Self, one: &LockChangeFields| {
            (this.time(&one.at).unwrap_or_default(), value_of(&one.held).unwrap_or(true))
        };
        let mut changes: Vec<_> = several(&fields.changes).map(|one| change(self, one)).collect();
        changes.sort_by_key(|(at, _)| *at);
        let name = name?;
        let has_lock = |plan: &&&Plan| plan.locks.iter().any(|lock| lock.name == name.value);
        match self.plans.iter().find(has_lock) {
            None => self.error(name.place, format!("there is no lock `{}`", name.value), ""),
            Some(plan) if !plan.has_shared_locks() => {
                let message = "without Consul, the supervisor has the lock from the start";
                self.error(name.place, message, "remove this, or set `consul` in the configuration");
            }
            Some(_) => {}
        }
        Some((name, changes))
    }

    fn file<'f>(&mut self, fields: &'f FileFields) -> Option<(&'f Spanned<String>, FileScript)> {
        let takes = self.time(&fields.takes).unwrap_or_default();
        let fails = several(&fields.fails).map(|fail| self.period(&fail.from, &fail.to)).collect();
        let tests = several(&fields.tests).map(|test| CheckAnswers {
            check: None,
            period: self.period(&test.from, &test.to),
            answer: value_of(&test.answer).unwrap_or(CheckAnswer::Fail),
            takes: self.time(&test.takes).unwrap_or_default(),
        });
        let tests = tests.collect();
        let name = self.required(&fields.name, fields.place, "name")?;
        let mut files = self.plans.iter().flat_map(|plan| &plan.files).filter(|file| file.name == name.value);
        let Some(first) = files.next() else {
            let help = nearest_name(&name.value, self.plans);
            self.error(name.place, format!("there is no file `{}`", name.value), help);
            return None;
        };
        if let Some(tests) = &fields.tests
            && first.test.is_none()
            && files.all(|file| file.test.is_none())
        {
            let message = format!("`{}` has no `test`", name.value);
            self.error(tests.key, message, "remove this, or add `test` to the file");
        }
        Some((name, FileScript { takes, fails, tests }))
    }

    fn observation(&mut self, fields: &ObservationFields) -> (Observation, bool) {
        let up = value_of(&fields.up).unwrap_or(true);
        let instances = fields.instances.as_ref().and_then(|given| u16::try_from(given.value).ok());
        let instances = if up { instances.unwrap_or(1) } else { 0 };
        let at = self.time(&fields.at).unwrap_or_default();
        let value = value_of(&fields.value);
        let observation = Observation { at, instances, value, generation: 0 };
        (observation, value_of(&fields.others).unwrap_or(false))
    }

    fn catalog(&mut self, fields: &CatalogFields, scenario: &mut Scenario) {
        if !self.plans.iter().any(|plan| matches!(plan.catalog, Catalog::Consul(_))) {
            let message = "the configuration does not use Consul; the embedded catalog is never unreachable";
            self.error(fields.place, message, "remove this, or set `consul` in the configuration");
        }
        scenario.outages = several(&fields.away).map(|away| self.period(&away.from, &away.to)).collect();
        for forget in several(&fields.forgets) {
            self.required(&forget.at, forget.place, "at");
            let at = self.time(&forget.at);
            let job = self.required(&forget.job, forget.place, "job").and_then(|job| self.job(job));
            let (Some(at), Some(job)) = (at, job) else { continue };
            let jobs = self.plans.iter().flat_map(|plan| &plan.jobs);
            if !jobs.into_iter().any(|known| known.name == job.value && known.service.is_some()) {
                let message = format!("`{}` has no `port`, so it is never in the catalog", job.value);
                self.error(job.place, message, "");
            }
            scenario.forgets.push((at, job.value.clone()));
        }
    }

    fn action(&mut self, fields: &ActionFields) -> Option<(Duration, Action)> {
        self.required(&fields.at, fields.place, "at");
        let at = self.time(&fields.at);
        let mut found: Vec<(Place, Option<Action>)> = Vec::new();
        if let Some(signal) = &fields.signal {
            found.push((signal.key, Some(Action::Signal(signal.value))));
        }
        if let Some(on) = &fields.maintenance {
            found.push((on.key, Some(Action::Maintenance(on.value))));
        }
        if let Some(unix) = &fields.clock {
            found.push((unix.key, Some(Action::Clock(unix.value))));
        }
        let job_actions = [
            (&fields.start, JobAction::Start),
            (&fields.stop, JobAction::Stop),
            (&fields.restart, JobAction::Restart),
            (&fields.rolling_restart, JobAction::RollingRestart),
        ];
        for (name, action) in job_actions {
            if let Some(name) = name {
                let internal = self.target(name).is_some() && self.is_internal(name);
                found.push((name.key, (!internal).then(|| Action::Job(action, name.value.clone()))));
            }
        }
        if let Some(given) = &fields.scale {
            let action = self.scale(given);
            found.push((given.key, action));
        }
        match (&fields.send, &fields.to) {
            (Some(send), Some(to)) => {
                self.target(to);
                found.push((send.key, Some(Action::Job(JobAction::Send(send.value), to.value.clone()))));
            }
            (Some(send), None) => {
                self.error(
                    send.key,
                    "`send` needs `to`",
                    "name the job that receives the signal, or use `signal` to signal the supervisor",
                );
                found.push((send.key, None));
            }
            (None, Some(to)) => {
                self.error(to.key, "`to` needs `send`", "set the signal to send");
                found.push((to.key, None));
            }
            (None, None) => {}
        }
        if let Some(path) = &fields.reload {
            let plan = match self.others.get(&path.value) {
                Some(Ok(plan)) => Some(Action::Reload(path.value.clone(), Box::new(plan.clone()))),
                Some(Err(why)) => {
                    let why = why.clone();
                    self.error(path.place, format!("`{}` cannot be loaded", path.value), why);
                    None
                }
                None => None,
            };
            found.push((path.key, plan));
        }
        if let Some(given) = &fields.putenv {
            let (name, value) = given.value.split_once('=').unwrap_or((&given.value, ""));
            if name.is_empty() {
                let message = format!("`{}` is not NAME=VALUE", given.value);
                self.error(given.place, message, "write for example \"LEVEL=debug\"");
            }
            let value = Some(value.to_owned()).filter(|value| !value.is_empty());
            found.push((given.key, Some(Action::PutVariable(name.to_owned(), value))));
        }
        let choice = "`signal`, `maintenance`, `clock`, `start`, `stop`, `restart`, `rollingRestart`, `scale`, `send`, `reload` or `putenv`";
        match found.as_slice() {
            [] if !self.has_errors_in(fields.place) => {
                self.error(fields.place, "this entry does nothing", format!("set one of {choice}"));
            }
            [_, (second, _), ..] => {
                let second = *second;
                self.error(
                    second,
                    "an entry can do only one thing",
                    format!("set one of {choice}; put the other into an entry of its own"),
                );
            }
            _ => {}
        }
        let (_, action) = found.pop()?;
        Some((at?, action?))
    }

    /// Reports a job that cannot be controlled by hand.
    fn is_internal(&mut self, name: &Spanned<String>) -> bool {
        let mut named =
            self.plans.iter().flat_map(|plan| &plan.jobs).filter(|job| job.name == name.value).peekable();
        let own = named.peek().is_some() && named.all(|job| job.role == Role::Telemetry);
        if own {
            self.error(
                name.place,
                format!("`{}` is an internal job of the supervisor", name.value),
                "name another job",
            );
        }
        own
    }

    fn has_errors_in(&self, section: Place) -> bool {
        self.problems.iter().any(|problem| problem.place.is_some_and(|place| section.contains(place)))
    }
}
