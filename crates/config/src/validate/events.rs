//! Sources that do not exist, and events that their source never sends.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{EventPattern, Job, Repeat, Signal, Trigger};

use crate::decode::Spanned;
use crate::diagnostics::{Place, Problem, Severity, is_reported};
use crate::fields::JobFields;
use crate::lower::source_named;
use crate::suggest;
use crate::validate::Checker;
use crate::validate::waits::{Wait, event_place, waits};
use crate::values::{EventName, EventOrFlag, nearest_signal};

impl Checker<'_> {
    /// Reports sources that do not exist, and events that their source never sends.
    pub(super) fn events(&mut self) {
        for (fields, job) in self.pairs.clone() {
            let Some(job) = job else {
                self.check_source(fields);
                continue;
            };
            if job.when.trigger == Trigger::Never {
                self.never(fields);
            }
            for wait in waits(fields, job) {
                self.wait(&wait, job);
            }
        }
    }

    /// Reports a `when` without an event that can be sent.
    fn never(&mut self, fields: &JobFields) {
        let Some((given, when)) = fields.when.as_ref().and_then(|given| Some((given, given.value.object()?)))
        else {
            return;
        };
        // An error in it has been reported, and is the reason for the missing event.
        let inside = |place: Place| given.place.contains(place);
        let wrong =
            |problem: &Problem| problem.severity == Severity::Error && problem.place.is_some_and(inside);
        if self.problems.iter().any(wrong) {
            return self.check_source(fields);
        }
        let source = when.source.as_ref().filter(|given| !given.value.is_empty());
        let never = |given: &Option<Spanned<EventOrFlag>>| match given {
            Some(Spanned { value: EventOrFlag::Event(EventName::NeverSent(word)), .. }) => Some(*word),
            _ => None,
        };
        if let Some(word) = never(&when.once).or(never(&when.each)) {
            let place = event_place(when).unwrap_or(given.key);
            let (message, help) = if word.starts_with("SIG") {
                let message = format!("`{word}` is a source, not an event, so the job can never run");
                (message, format!("write when: {{ source: \"{word}\" }}"))
            } else {
                let message = format!("the event `{word}` is never sent, so the job can never run");
                (
                    message,
                    "use once: \"shutdown\" for the shutdown, or once: \"exitFailed\" for a failure"
                        .to_owned(),
                )
            };
            return self.fault(place, message, help);
        }
        match source {
            Some(source) if is_signal(&source.value) => {
                let message = format!("a job cannot wait for {}, so the job can never run", source.value);
                self.fault(source.place, message, self.signal_help(&source.value));
            }
            Some(source) if self.is_unknown_signal(&source.value) => {
                let message = format!("unknown job or watch `{}`", source.value);
                self.unknown(Severity::Fault, source.place, &source.value, &message);
            }
            Some(source) => {
                let message = "`when` has a source but no event, so the job can never run".to_owned();
                self.fault(source.place, message, "add `once` or `each`, for example once: \"exitSuccess\"");
            }
            None => {
                let message = "`when` has no event, so the job can never run".to_owned();
                self.fault(given.key, message, "remove it to run the job at startup");
            }
        }
    }

    /// Reports an unknown source even if the event or the job has other errors.
    fn check_source(&mut self, fields: &JobFields) {
        let when = fields.when.as_ref().and_then(|when| when.value.object());
        let source = when.and_then(|when| when.source.as_ref());
        let Some(Spanned { value, place, .. }) = source.filter(|given| !is_signal(&given.value)) else {
            return;
        };
        match source_named(value) {
            Source::Watch(name) if !self.names.watches.contains(&name) => {
                self.unknown(Severity::Fault, *place, value, &format!("unknown watch `{name}`"));
            }
            Source::Lock(name) if !self.names.locks.contains(&name) => {
                self.unknown(Severity::Fault, *place, value, &format!("unknown lock `{name}`"));
            }
            Source::Job(name) if self.names.jobs.contains_key(&name) => {}
            Source::Job(name) if name.starts_with("file.") => {
                let file = name.trim_start_matches("file.");
                if !self.names.files.contains(file) {
                    self.unknown(Severity::Fault, *place, value, &format!("unknown file `{file}`"));
                }
            }
            Source::Job(name) if !self.names.watches.contains(&name) => {
                self.unknown(Severity::Fault, *place, value, &format!("unknown job or watch `{name}`"));
            }
            _ => {}
        }
    }

    fn wait(&mut self, wait: &Wait<'_>, job: &Job) {
        let EventPattern { source, code } = wait.event;
        match source {
            Source::Signal(_) => {}
            Source::File(name) => {
                if !self.names.files.contains(name) {
                    let message = format!("unknown file `{name}`");
                    self.unknown(Severity::Fault, wait.source, &format!("file.{name}"), &message);
                } else if !Code::OF_FILES.contains(code) {
                    let message = format!("a file never sends `{code}`");
                    self.fault(wait.code, message, "a file sends changed and failed");
                }
            }
            Source::Global => {
                if !code.is_global() {
                    let message = format!("`{code}` needs a `source`: a job or a watch sends it");
                    self.fault(wait.code, message, "add source: \"NAME\"");
                }
            }
            Source::Watch(name) => {
                if !self.names.watches.contains(name) {
                    // Without a job that only reacts to changes, the container still does its work.
                    let reacts =
                        matches!(job.when.trigger, Trigger::Event { repeat, .. } if repeat != Repeat::Once);
                    let severity = if reacts { Severity::Warning } else { Severity::Fault };
                    let message = format!("unknown watch `{name}`");
                    self.unknown(severity, wait.source, &format!("watch.{name}"), &message);
                } else if !Code::OF_WATCHES.contains(code) {
                    let message = format!("a watch never sends `{code}`");
                    self.fault(wait.code, message, "a watch sends changed, healthy and unhealthy");
                }
            }
            Source::Lock(name) => {
                if !self.names.locks.contains(name) {
                    let message = format!("unknown lock `{name}`");
                    self.unknown(Severity::Fault, wait.source, &format!("lock.{name}"), &message);
                } else if !Code::OF_LOCKS.contains(code) {
                    let message = format!("a lock never sends `{code}`");
                    self.fault(wait.code, message, "a lock sends acquired and lost");
                }
            }
            Source::Job(name) => match self.names.jobs.get(name) {
                None => self.unknown(
                    Severity::Fault,
                    wait.source,
                    name,
                    &format!("unknown job or watch `{name}`"),
                ),
                Some(jobs) => {
                    let jobs = jobs.clone();
                    self.sent_by(wait, name, &jobs);
                }
            },
        }
    }

    /// Returns true for a signal without SIG, such as `hup`, that is not the name of a job or watch.
    fn is_unknown_signal(&self, name: &str) -> bool {
        let is_number = name.starts_with(|c: char| c.is_ascii_digit());
        let is_known = self.names.jobs.contains_key(name) || self.names.watches.contains(name);
        !is_number && !is_known && Signal::from_name(name).is_some()
    }

    /// What to write instead of a signal that a job cannot wait for under this name.
    fn signal_help(&self, name: &str) -> String {
        let near = nearest_signal(name).filter(|_| Signal::from_name(name).is_none());
        let meant = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        match near.or(Signal::from_name(name)) {
            Some(signal) if self.stop_on.contains(&signal) => format!(
                "{meant}write when: {{ once: \"shutdown\" }}, which {signal} causes, or leave it out of `stopOn`"
            ),
            Some(signal) if signal.can_be_received() => format!("did you mean \"{signal}\"?"),
            _ => "a job can wait for every signal but SIGKILL, SIGSTOP and SIGCHLD".to_owned(),
        }
    }

    pub(super) fn unknown(&mut self, severity: Severity, place: Place, name: &str, message: &str) {
        if self.names_incomplete {
            return;
        }
        let mut all = self.names.all();
        let prefix = ["watch.", "file.", "lock."].into_iter().find(|prefix| name.starts_with(prefix));
        if let Some(prefix) = prefix {
            all.retain(|name| name.starts_with(prefix));
        }
        let help = match suggest::nearest(name, all.iter().map(String::as_str)) {
            _ if self.is_unknown_signal(name) => self.signal_help(name),
            Some(near) => format!("did you mean \"{near}\"?"),
            None if all.len() == 1 => format!("did you mean \"{}\"?", all.concat()),
            None if all.is_empty() && name.starts_with("watch.") => "add it to `watches`".to_owned(),
            None if all.is_empty() && name.starts_with("file.") => "add it to `files`".to_owned(),
            None if all.is_empty() && name.starts_with("lock.") => "add it to `locks`".to_owned(),
            None if all.is_empty() => "the file has no other job or watch to wait for".to_owned(),
            None if all.len() > 20 => {
                "a source is the name of a job, watch.NAME, file.NAME or lock.NAME".to_owned()
            }
            None => format!("the sources are {}", all.join(", ")),
        };
        self.report(severity, place, message.to_owned(), help);
    }

    /// Reports an event that its source never sends.
    fn sent_by(&mut self, wait: &Wait<'_>, name: &str, senders: &[usize]) {
        let code = wait.event.code;
        let senders: Vec<_> = senders.iter().filter_map(|nth| self.pairs.get(*nth)).copied().collect();
        // A key that could not be decoded may be the one that is missing here.
        let unclear =
            |key: &str| senders.iter().any(|(fields, _)| is_reported(self.problems, Some(fields.place), key));
        let all = |lacks: fn(&JobFields) -> bool| {
            !senders.is_empty() && senders.iter().all(|(fields, _)| lacks(fields))
        };
        let (why, help) = match code {
            Code::Changed => {
                let help = if self.names.watches.contains(name) {
                    format!("write source: \"watch.{name}\"")
                } else {
                    "only a watch sends it: add one to `watches` and write source: \"watch.NAME\"".to_owned()
                };
                ("it is a job, not a watch", help)
            }
            Code::Acquired | Code::Lost => {
                let help = "only a lock sends it: add one to `locks` and write source: \"lock.NAME\"";
                ("it is a job, not a lock", help.to_owned())
            }
            Code::Failed => {
                let help = "a job that fails sends exitFailed; a file sends failed: source: \"file.NAME\"";
                ("it is a job, not a file", help.to_owned())
            }
            code if code.is_global() => ("containerpilot itself sends it", "remove `source`".to_owned()),
            Code::ExitSuccess | Code::ExitFailed
                if all(|fields| fields.exec.is_none() && fields.action.is_none())
                    && !unclear("exec")
                    && !unclear("do") =>
            {
                ("it has no `exec`", "use healthy, stopping or stopped".to_owned())
            }
            Code::Healthy | Code::Unhealthy | Code::BecameHealthy | Code::BecameUnhealthy
                if all(|fields| fields.health.is_none() && fields.ready.is_none())
                    && !unclear("health")
                    && !unclear("ready") =>
            {
                ("it has no `health`", format!("add `health` to the job `{name}`, or use another event"))
            }
            Code::Ready if all(|fields| fields.ready.is_none()) && !unclear("ready") => {
                ("it has no `ready`", format!("add ready: \"notify\" to the job `{name}`, or use `healthy`"))
            }
            Code::CrashLoop if all(|fields| fields.start_limit.is_none()) && !unclear("startLimit") => {
                let help = format!("add startLimit: {{ count: 5, within: \"1m\" }} to the job `{name}`");
                ("it has no `startLimit`", help)
            }
            Code::TimerExpired if all(no_start_timeout) && !unclear("timeout") => {
                ("it has no `when.timeout`", format!("add when: {{ timeout: … }} to the job `{name}`"))
            }
            _ => return,
        };
        self.fault(wait.code, format!("the job `{name}` never sends `{code}`: {why}"), help);
    }
}

/// Returns true if a source is meant to be a signal: `SIGTERM`, `sighup`.
fn is_signal(source: &str) -> bool {
    let sig = source.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("sig"));
    source.starts_with("SIG") || sig && Signal::from_name(source).is_some()
}

fn no_start_timeout(fields: &JobFields) -> bool {
    let when = fields.when.as_ref().and_then(|when| when.value.object());
    when.is_none_or(|when| when.timeout.is_none())
}
