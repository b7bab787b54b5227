//! The checks of meaning (C7): what is well-formed but can never work.
//!
//! 3.8 starts such files without a word, so these are faults, not errors: `check` refuses them, the supervisor
//! warns and goes on.

use std::path::Path;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Command, EventPattern, Job, Trigger};
use std::collections::{BTreeMap, BTreeSet};

use crate::decode::Spanned;
use crate::diagnostics::{Place, Problem, Severity};
use crate::fields::{ConfigFields, CoprocessFields, JobFields, WhenFields};
use crate::host::{Host, ProgramState};
use crate::legacy::Version;
use crate::lower::{Draft, opening, source_named, told, written};
use crate::suggest;
use crate::values::{EventName, EventOrFlag};

/// Checks what was read, and says what it found.
pub(crate) fn check(
    fields: &ConfigFields,
    draft: &Draft,
    host: &dyn Host,
    version: Version,
    problems: &mut Vec<Problem>,
) {
    let jobs = fields.jobs.as_ref().map(|given| given.value.as_slice()).unwrap_or_default();
    let drafts = draft.jobs.iter().map(Option::as_ref);
    let pairs: Vec<(&JobFields, Option<&Job>)> = jobs.iter().zip(drafts).collect();
    let names_unclear = ["name", "jobs", "watches"].iter().any(|key| told(problems, None, key));
    let mut checker = Checker { host, problems, names: Names::new(fields), names_unclear, pairs };
    checker.events();
    checker.cycles();
    // In a version 2 file the keys have other names, and it was looked at already.
    if version == Version::Three {
        checker.times();
    }
    checker.duplicates(fields);
    checker.programs(fields);
    checker.embedded_catalog(fields);
}

/// The names of everything that can send events.
struct Names {
    jobs: BTreeMap<String, Vec<usize>>,
    watches: BTreeSet<String>,
}

impl Names {
    fn new(fields: &ConfigFields) -> Self {
        let jobs = fields.jobs.iter().flat_map(|given| &given.value).enumerate();
        let jobs = jobs.filter_map(|(nth, job)| Some((name_of(job)?.to_owned(), Some(nth))));
        let watches = fields.watches.iter().flat_map(|given| &given.value);
        let watches =
            watches.filter_map(|watch| watch.name.as_ref()).map(|given| given.value.clone()).collect();
        // A coprocess sends what a job sends, but is none of those that are looked at here.
        let coprocesses = fields.coprocesses.iter().flat_map(|given| &given.value).filter_map(coprocess_name);
        // Telemetry is advertised as a job of this name, and sends what a job sends.
        let telemetry = fields.telemetry.iter().map(|_| "containerpilot".to_owned());
        let all =
            containerpilot_core::grouped(jobs.chain(coprocesses.chain(telemetry).map(|name| (name, None))));
        let jobs = all.into_iter().map(|(name, jobs)| (name, jobs.into_iter().flatten().collect())).collect();
        Self { jobs, watches }
    }

    fn all(&self) -> Vec<String> {
        let watches = self.watches.iter().map(|name| format!("watch.{name}"));
        let mut all: Vec<String> = self.jobs.keys().cloned().chain(watches).collect();
        all.sort();
        all
    }
}

fn name_of(job: &JobFields) -> Option<&str> {
    match &job.name {
        Some(given) => Some(&given.value),
        None => job.exec.as_ref().map(|exec| exec.value.program.as_str()),
    }
}

/// What a coprocess is called.
fn coprocess_name(one: &CoprocessFields) -> Option<String> {
    let command = || one.command.as_ref().map(|command| written(&command.value));
    one.name.as_ref().map(|given| given.value.clone()).or_else(command)
}

/// Whether an event comes only from a job that has been started.
fn needs_start(code: Code) -> bool {
    matches!(code, Code::ExitSuccess | Code::ExitFailed | Code::Healthy | Code::Unhealthy)
}

/// An event that a job waits for, with its places in the file.
struct Wait<'a> {
    event: &'a EventPattern,
    source: Place,
    code: Place,
}

/// The events a job waits for.
fn waits<'a>(fields: &'a JobFields, job: &'a Job) -> Vec<Wait<'a>> {
    let Some(when) = &fields.when else { return Vec::new() };
    let together = |conditions: &'a [EventPattern], given: Option<&'a Spanned<Vec<_>>>| {
        let fields = given.map(|given| given.value.as_slice()).unwrap_or_default();
        conditions
            .iter()
            .zip(fields)
            .map(|(event, fields): (_, &crate::fields::ConditionFields)| {
                let here = opening(fields.place);
                let source = fields.source.as_ref().map_or(here, |given| given.place);
                let code = fields.event.as_ref().map_or(here, |given| given.place);
                Wait { event, source, code }
            })
            .collect()
    };
    match &job.when.trigger {
        Trigger::Event { event, .. } => {
            let code = event_place(&when.value).unwrap_or(when.key);
            let source = when.value.source.as_ref().map_or(code, |given| given.place);
            vec![Wait { event, source, code }]
        }
        Trigger::All { conditions, .. } => together(conditions, when.value.all.as_ref()),
        Trigger::Any { conditions, .. } => together(conditions, when.value.any.as_ref()),
        Trigger::Interval(_) | Trigger::Never => Vec::new(),
    }
}

fn event_place(when: &WhenFields) -> Option<Place> {
    let once = when.once.as_ref().map(|given| given.place);
    let each = when.each.as_ref().map(|given| given.place);
    once.or(each).or(when.event.as_ref().map(|given| given.place))
}

struct Checker<'a> {
    host: &'a dyn Host,
    problems: &'a mut Vec<Problem>,
    names: Names,
    /// Some name was not understood: it may be the very one that is missed elsewhere.
    names_unclear: bool,
    pairs: Vec<(&'a JobFields, Option<&'a Job>)>,
}

impl Checker<'_> {
    fn say(&mut self, severity: Severity, place: Place, message: String, help: impl Into<String>) {
        if self.problems.len() < crate::limits::PROBLEMS {
            self.problems.push(Problem::new(severity, place, message).help(help));
        }
    }

    fn fault(&mut self, place: Place, message: String, help: impl Into<String>) {
        self.say(Severity::Fault, place, message, help);
    }

    /// Sources that do not exist, and events that their source never sends.
    fn events(&mut self) {
        for (fields, job) in self.pairs.clone() {
            let Some(job) = job else {
                self.lone_source(fields);
                continue;
            };
            if job.when.trigger == Trigger::Never {
                self.never(fields);
            }
            for wait in waits(fields, job) {
                self.wait(&wait);
            }
        }
    }

    /// A `when` that names no event which could come.
    fn never(&mut self, fields: &JobFields) {
        let Some(when) = &fields.when else { return };
        // What was wrong in it has been said, and is the reason why it names no event.
        let inside = |place: Place| {
            let (outer, inner) = (when.place.span, place.span);
            place.file == when.place.file && outer.start <= inner.start && inner.end <= outer.end
        };
        let wrong =
            |problem: &Problem| problem.severity == Severity::Error && problem.place.is_some_and(inside);
        if self.problems.iter().any(wrong) {
            return self.lone_source(fields);
        }
        let source = when.value.source.as_ref().filter(|given| !given.value.is_empty());
        let never = |given: &Option<Spanned<EventOrFlag>>| match given {
            Some(Spanned { value: EventOrFlag::Event(EventName::NeverSent(word)), .. }) => Some(*word),
            _ => None,
        };
        if let Some(word) = never(&when.value.once).or(never(&when.value.each)) {
            let place = event_place(&when.value).unwrap_or(when.key);
            let (message, help) = if word.starts_with("SIG") {
                let message = format!("`{word}` is a source and not an event, so the job can never run");
                (message, format!("write when: {{ source: \"{word}\" }}"))
            } else {
                let message = format!("the event `{word}` is never sent, so the job can never run");
                (
                    message,
                    "for the end write once: \"shutdown\", for a failure once: \"exitFailed\"".to_owned(),
                )
            };
            return self.fault(place, message, help);
        }
        match source {
            Some(source) if is_signal(&source.value) => {
                let message = format!("a job cannot wait for {}, so it can never run", source.value);
                let name = source.value.to_ascii_uppercase();
                let name = name.strip_prefix("SIG").unwrap_or(&name);
                let help = match name {
                    "HUP" | "USR2" => format!("write source: \"SIG{name}\""),
                    "TERM" | "INT" => {
                        "write when: { once: \"shutdown\" }, which both SIGTERM and SIGINT cause".to_owned()
                    }
                    _ => "the signals that a job can wait for are SIGHUP and SIGUSR2".to_owned(),
                };
                self.fault(source.place, message, help);
            }
            Some(source) => {
                let message = "`when` names a source but no event, so the job can never run".to_owned();
                self.fault(source.place, message, "add `once` or `each`, for example once: \"exitSuccess\"");
            }
            None => {
                let message = "`when` names no event, so the job can never run".to_owned();
                self.fault(when.key, message, "remove it to run the job at startup");
            }
        }
    }

    /// A source beside an event that could not be understood, or in a job with another mistake: whether it exists can be
    /// said all the same.
    fn lone_source(&mut self, fields: &JobFields) {
        let source = fields.when.as_ref().and_then(|when| when.value.source.as_ref());
        let Some(Spanned { value, place, .. }) = source.filter(|given| !is_signal(&given.value)) else {
            return;
        };
        match source_named(value) {
            Source::Watch(name) if !self.names.watches.contains(&name) => {
                self.unknown(*place, value, &format!("there is no watch `{name}`"));
            }
            Source::Job(name)
                if !self.names.jobs.contains_key(&name) && !self.names.watches.contains(&name) =>
            {
                self.unknown(*place, value, &format!("there is no job or watch `{name}`"));
            }
            _ => {}
        }
    }

    fn wait(&mut self, wait: &Wait<'_>) {
        let EventPattern { source, code } = wait.event;
        match source {
            Source::Signal(_) => {}
            Source::Global => {
                if !code.is_global() {
                    let message = format!("`{code}` needs a `source`: it comes from a job or a watch");
                    self.fault(wait.code, message, "add source: \"NAME\"");
                }
            }
            Source::Watch(name) => {
                if !self.names.watches.contains(name) {
                    self.unknown(
                        wait.source,
                        &format!("watch.{name}"),
                        &format!("there is no watch `{name}`"),
                    );
                } else if !matches!(code, Code::Changed | Code::Healthy | Code::Unhealthy) {
                    let message = format!("a watch never sends `{code}`");
                    self.fault(wait.code, message, "a watch sends changed, healthy and unhealthy");
                }
            }
            Source::Job(name) => match self.names.jobs.get(name) {
                None => self.unknown(wait.source, name, &format!("there is no job or watch `{name}`")),
                Some(jobs) => {
                    let jobs = jobs.clone();
                    self.sent_by(wait, name, &jobs);
                }
            },
        }
    }

    fn unknown(&mut self, place: Place, name: &str, message: &str) {
        if self.names_unclear {
            return;
        }
        let mut all = self.names.all();
        if name.starts_with("watch.") {
            all.retain(|name| name.starts_with("watch."));
        }
        let help = match suggest::nearest(name, all.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if all.len() == 1 => format!("did you mean \"{}\"?", all.concat()),
            None if all.is_empty() && name.starts_with("watch.") => "add it to `watches`".to_owned(),
            None if all.is_empty() => "there is nothing else in the file to wait for".to_owned(),
            None if all.len() > 20 => "a source is the name of a job, or watch.NAME".to_owned(),
            None => format!("there are: {}", all.join(", ")),
        };
        self.fault(place, message.to_owned(), help);
    }

    /// Whether a job ever sends what another waits for.
    fn sent_by(&mut self, wait: &Wait<'_>, name: &str, senders: &[usize]) {
        let code = wait.event.code;
        let senders: Vec<_> = senders.iter().filter_map(|nth| self.pairs.get(*nth)).copied().collect();
        // A key that was not understood may be the very one that is missed here.
        let unclear =
            |key: &str| senders.iter().any(|(fields, _)| told(self.problems, Some(fields.place), key));
        let all = |lacks: fn(&JobFields) -> bool| {
            !senders.is_empty() && senders.iter().all(|(fields, _)| lacks(fields))
        };
        let (why, help) = match code {
            Code::Changed => {
                let help = if self.names.watches.contains(name) {
                    format!("write source: \"watch.{name}\"")
                } else {
                    "only a watch sends it: add one to `watches`, and write source: \"watch.NAME\"".to_owned()
                };
                ("it is a job, not a watch", help)
            }
            code if code.is_global() => ("containerpilot itself sends it", "remove `source`".to_owned()),
            Code::ExitSuccess | Code::ExitFailed
                if all(|fields| fields.exec.is_none()) && !unclear("exec") =>
            {
                ("it has no `exec`", "wait for healthy, stopping or stopped".to_owned())
            }
            Code::Healthy | Code::Unhealthy
                if all(|fields| fields.health.is_none()) && !unclear("health") =>
            {
                ("it has no `health`", format!("add `health` to the job `{name}`, or wait for another event"))
            }
            Code::TimerExpired if all(no_start_timeout) && !unclear("timeout") => {
                ("it has no `when.timeout`", format!("add when: {{ timeout: … }} to the job `{name}`"))
            }
            _ => return,
        };
        self.fault(wait.code, format!("the job `{name}` never sends `{code}`: {why}"), help);
    }

    /// Jobs that wait for one another in a circle.
    fn cycles(&mut self) {
        let blocked = self.blocked();
        let mut visited: Vec<bool> = vec![false; self.pairs.len()];
        for start in 0..self.pairs.len() {
            let mut path = Vec::new();
            let mut at = start;
            // Follow whom each one waits for, until a job is met that was seen on this walk or before.
            let circle = loop {
                if let Some(from) = path.iter().position(|nth| *nth == at) {
                    break path.get(from..).map(<[usize]>::to_vec);
                }
                if visited.get(at).copied().unwrap_or(true) {
                    break None;
                }
                path.push(at);
                match blocked.get(at).copied().flatten() {
                    Some(next) => at = next,
                    None => break None,
                }
            };
            for nth in path {
                if let Some(seen) = visited.get_mut(nth) {
                    *seen = true;
                }
            }
            if let Some(circle) = circle {
                self.circle(&circle);
            }
        }
    }

    fn circle(&mut self, circle: &[usize]) {
        let name = |nth: &usize| {
            self.pairs.get(*nth).and_then(|(fields, _)| name_of(fields)).unwrap_or("?").to_owned()
        };
        let mut names: Vec<String> = circle.iter().map(name).collect();
        names.extend(names.first().cloned());
        let place = circle
            .first()
            .and_then(|nth| self.pairs.get(*nth))
            .and_then(|(fields, _)| fields.when.as_ref())
            .map(|when| when.value.source.as_ref().map_or(when.key, |given| given.place));
        let Some(place) = place else { return };
        let (message, help) = if let [only, _] = names.as_slice() {
            let message = format!("the job `{only}` waits for itself, so it can never run");
            (message, "without `when` it runs at startup; to run it again when it has ended, use `restarts`")
        } else {
            let message = format!("these jobs wait for one another and can never run: {}", names.join(" → "));
            (message, "let one of them start at another event")
        };
        self.fault(place, message, help);
    }

    /// For each job that can never be started because of another job: that other job.
    fn blocked(&self) -> Vec<Option<usize>> {
        let count = self.pairs.len();
        let mut startable = vec![false; count];
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut todo: Vec<usize> = (0..count).collect();
        for (nth, (fields, job)) in self.pairs.iter().enumerate() {
            let Some(job) = job else { continue };
            for wait in waits(fields, job) {
                for on in self.waited_for(wait.event) {
                    if let Some(list) = waiting.get_mut(*on) {
                        list.push(nth);
                    }
                }
            }
        }
        while let Some(nth) = todo.pop() {
            let already = startable.get(nth).copied().unwrap_or(true);
            if already || self.obstacle(nth, &startable).is_some() {
                continue;
            }
            if let Some(can) = startable.get_mut(nth) {
                *can = true;
            }
            todo.extend(waiting.get(nth).into_iter().flatten().copied());
        }
        (0..count)
            .map(|nth| if startable.get(nth) == Some(&true) { None } else { self.obstacle(nth, &startable) })
            .collect()
    }

    /// The jobs that must have been started before an event can come.
    fn waited_for(&self, event: &EventPattern) -> &[usize] {
        match &event.source {
            Source::Job(name) if needs_start(event.code) => {
                self.names.jobs.get(name).map(Vec::as_slice).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// A job that is in the way of this one's start.
    fn obstacle(&self, nth: usize, startable: &[bool]) -> Option<usize> {
        let (fields, job) = self.pairs.get(nth)?;
        let job = (*job)?;
        let in_the_way = |wait: &Wait<'_>| {
            let on = self.waited_for(wait.event);
            let open = on.is_empty() || on.iter().any(|on| startable.get(*on).copied().unwrap_or(true));
            if open { None } else { on.first().copied() }
        };
        let waits = waits(fields, job);
        match &job.when.trigger {
            Trigger::Any { .. } => {
                let obstacles: Vec<_> = waits.iter().map(in_the_way).collect();
                if obstacles.iter().all(Option::is_some) {
                    obstacles.into_iter().next().flatten()
                } else {
                    None
                }
            }
            _ => waits.iter().find_map(in_the_way),
        }
    }

    /// A TTL that runs out before the next heartbeat can come.
    fn times(&mut self) {
        for (fields, _) in self.pairs.clone() {
            for check in fields.health.iter().flat_map(|given| &given.value.items) {
                let (Some(ttl), Some(interval)) = (&check.ttl, &check.interval) else { continue };
                let (pace, key) = match &check.heartbeat {
                    Some(heartbeat) => (heartbeat.value, "heartbeat"),
                    None => (interval.value, "interval"),
                };
                if ttl.value > 0 && pace > 0 && ttl.value <= pace {
                    let message = format!("`ttl` must be longer than `{key}`");
                    let help = "otherwise the catalog takes the service for dead between two checks; \
                                two or three times as long is usual";
                    self.fault(ttl.place, message, help);
                }
            }
        }
    }

    /// Names that stand for two things.
    fn duplicates(&mut self, fields: &ConfigFields) {
        let advertised = |job: &JobFields| job.port.as_ref().is_some_and(|port| port.value != 0);
        let given = self.pairs.iter().rev().filter(|(job, _)| job.name.is_some());
        let first: BTreeMap<&str, &JobFields> =
            given.filter_map(|(job, _)| Some((name_of(job)?, *job))).collect();
        for (job, _) in self.pairs.clone() {
            let (Some(name), Some(place)) = (name_of(job), job.name.as_ref().map(|given| given.place)) else {
                continue;
            };
            let Some(other) = first.get(name).filter(|first| !std::ptr::eq(**first, job)) else { continue };
            if advertised(job) && advertised(other) {
                let message = format!("two jobs with a `port` are named `{name}`");
                self.fault(
                    place,
                    message,
                    "they would overwrite each other in the catalog: give each a name of its own",
                );
            } else {
                let message = format!("two jobs are named `{name}`");
                self.say(
                    Severity::Warning,
                    place,
                    message,
                    "whoever waits for one of them cannot tell them apart",
                );
            }
        }
        for one in fields.coprocesses.iter().flat_map(|given| &given.value) {
            if let Some(name) = coprocess_name(one).filter(|name| first.contains_key(name.as_str())) {
                let place = one.name.as_ref().map_or(opening(one.place), |given| given.place);
                let message = format!("a job and a coprocess are both named `{name}`");
                let help = "whoever waits for one of them cannot tell them apart";
                self.say(Severity::Warning, place, message, help);
            }
        }
        let watches = fields.watches.iter().flat_map(|given| &given.value);
        let watches: Vec<&Spanned<String>> = watches.filter_map(|watch| watch.name.as_ref()).collect();
        let first: BTreeMap<&str, &Spanned<String>> =
            watches.iter().rev().map(|name| (name.value.as_str(), *name)).collect();
        for name in watches {
            if first.get(name.value.as_str()).is_some_and(|first| !std::ptr::eq(*first, name)) {
                let message = format!("two watches are named `{}`", name.value);
                self.say(
                    Severity::Warning,
                    name.place,
                    message,
                    "whoever waits for one of them cannot tell them apart",
                );
            }
        }
    }

    /// Programs that are not there, or may not be run.
    fn programs(&mut self, fields: &ConfigFields) {
        let mut commands: Vec<(&Spanned<Command>, bool)> = Vec::new();
        for (job, _) in &self.pairs {
            // A directory or a PATH of its own changes what a name means; only the start will tell.
            let elsewhere =
                job.cwd.is_some() || job.env.as_ref().is_some_and(|env| env.value.contains_key("PATH"));
            let checks = job
                .health
                .iter()
                .flat_map(|given| &given.value.items)
                .filter_map(|check| check.exec.as_ref());
            commands.extend(job.exec.iter().chain(checks).map(|command| (command, elsewhere)));
        }
        let coprocesses = fields.coprocesses.iter().flat_map(|given| &given.value);
        commands.extend(coprocesses.filter_map(|one| one.command.as_ref()).map(|command| (command, false)));
        let metrics = fields.telemetry.iter().flat_map(|given| &given.value.metrics);
        let metrics = metrics.flat_map(|given| &given.value).filter_map(|metric| metric.exec.as_ref());
        commands.extend(metrics.map(|command| (command, false)));
        commands.retain(|(command, elsewhere)| !elsewhere || Path::new(&command.value.program).is_absolute());
        // Each is looked for once.
        let programs: BTreeSet<&str> =
            commands.iter().map(|(command, _)| command.value.program.as_str()).collect();
        let states: BTreeMap<&str, ProgramState> =
            programs.into_iter().map(|program| (program, self.host.program(program))).collect();
        for (command, _) in commands {
            let program = &command.value.program;
            let Some(state) = states.get(program.as_str()).copied() else { continue };
            let (message, help) = match (state, program.contains('/')) {
                (ProgramState::Runnable, _) => continue,
                (ProgramState::Missing, true) => (
                    format!("there is no program `{program}`"),
                    "the job will fail unless it is there by then",
                ),
                (ProgramState::Missing, false) => (
                    format!("there is no program `{program}` in PATH"),
                    "the job will fail unless it is there by then",
                ),
                (ProgramState::NotExecutable, _) => (
                    format!("`{program}` may not be executed"),
                    "make it executable, for example with chmod +x",
                ),
            };
            self.say(Severity::Warning, command.place, message, help);
        }
    }

    /// Services that nobody outside can find (D2).
    fn embedded_catalog(&mut self, fields: &ConfigFields) {
        if fields.consul.is_some() {
            return;
        }
        let ports = self.pairs.iter().filter_map(|(job, _)| job.port.as_ref());
        if let Some(place) = ports.filter(|port| port.value != 0).map(|port| port.key).next() {
            let message =
                "there is no `consul`, so only this container can find the services in it".to_owned();
            self.say(Severity::Warning, place, message, "add consul: \"localhost:8500\" to advertise them");
        }
    }
}

/// Whether a source is meant to be a signal: `SIGTERM`, `sighup`.
fn is_signal(source: &str) -> bool {
    let sig = source.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("sig"));
    source.starts_with("SIG") || sig && crate::values::signal_named(source).is_some()
}

fn no_start_timeout(fields: &JobFields) -> bool {
    fields.when.as_ref().is_none_or(|when| when.value.timeout.is_none())
}
