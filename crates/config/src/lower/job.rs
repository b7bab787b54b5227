//! Jobs: their names, timeouts, restarts and processes.

use std::borrow::Cow;
use std::time::Duration;

use containerpilot_core::exit_status::ExitStatus;
use containerpilot_core::plan::{
    Backoff, Drain, Job, Principal, Process, Repeat, Restarts, Role, StartLimit, Stop, Trigger, When,
};
use containerpilot_core::time::fmt_duration;

use super::{Lower, TELEMETRY_JOB, defaults};
use crate::decode::{Section, Spanned};
use crate::default_names::job_name;
use crate::fields::{BackoffFields, DrainFields, JobFields, StartLimitFields};
use crate::host::Host;
use crate::limits::SHORTEST_TIME;
use crate::values::{StopEscalation, TimeLimit, TimeOr, to_duration, value_of};

impl Lower<'_> {
    pub(super) fn job(&mut self, fields: &JobFields) -> Option<Job> {
        let name = self.job_name(fields);
        let exec = self.exec(fields);
        let groups = self.groups(fields);
        let when = self.when(fields);
        let requires = self.requires(fields);
        let timeout = self.timeout(fields, when.as_ref());
        let restarts = self.restarts(fields, when.as_ref());
        let backoff = self.backoff(fields);
        let process = self.process(fields);
        let port = value_of(&fields.port).map_or(0, |ports| ports.first);
        if port != 0
            && fields.health.is_none()
            && fields.ready.is_none()
            && name.as_deref() != Some(TELEMETRY_JOB)
        {
            let place = fields.port.as_ref().map_or(fields.place.first_byte(), |given| given.key);
            if !self.is_reported(fields.place, "health") && !self.is_reported(fields.place, "ready") {
                let help = format!(
                    "the catalog needs to know whether the job is healthy; for example:\n\
                     health: {{ http: \"http://127.0.0.1:{port}/\", interval: 10, ttl: 30 }}"
                );
                self.error(place, "a job with a `port` needs `health`", &help);
            }
        }
        let health = match &fields.health {
            None => Some(None),
            Some(given) => self.health(name.as_deref().unwrap_or_default(), given).map(Some),
        };
        let ready = self.ready(fields);
        let health = self.with_readiness(name.as_deref(), ready.as_ref(), health);
        let ttl = health.as_ref().and_then(|health| health.as_ref()).map(|health| health.ttl);
        let service = self.service(fields, name.as_deref(), ttl);
        let (stop, start_limit) = (self.stop(fields), self.start_limit(fields));
        let output = self.output(fields);
        Some(Job {
            name: name?,
            role: Role::User,
            groups: groups?,
            exec: exec?,
            when: when?,
            requires: requires?,
            stop_after: fields
                .stop_after
                .iter()
                .flat_map(|given| &given.value)
                .map(|name| name.value.clone())
                .collect(),
            timeout: timeout?,
            restarts: restarts?,
            restart_on: value_of(&fields.restart_on)?,
            success_codes: value_of(&fields.success_codes)
                .filter(|codes| codes[..] != [ExitStatus::Code(0)])
                .unwrap_or_default(),
            start_limit: start_limit?,
            backoff: backoff?,
            stop: stop?,
            on_failure: value_of(&fields.on_failure)?,
            on_success: value_of(&fields.on_success)?,
            ready: ready?,
            health: health?,
            service: service?,
            process: process?,
            output: output?,
            replica: None,
        })
    }

    fn job_name(&mut self, fields: &JobFields) -> Option<String> {
        match &fields.name {
            Some(given) if given.value.is_empty() => {
                self.error(
                    given.place,
                    "`name` is empty",
                    "write a name, or remove it to use the name of the program",
                );
                None
            }
            _ => {
                let name = job_name(fields).map(Cow::into_owned);
                if name.is_none() && !self.is_reported(fields.place, "exec") {
                    let (message, help) = if fields.action.is_some() {
                        ("a job with `do` needs `name`", "for example: name: \"nginx-reload\"")
                    } else {
                        ("a job needs `name` or `exec`", "for example: exec: \"/bin/server\"")
                    };
                    self.error(fields.place.first_byte(), message, help);
                }
                name
            }
        }
    }

    fn timeout(&mut self, fields: &JobFields, when: Option<&When>) -> Option<Option<Duration>> {
        match &fields.timeout {
            None => Some(defaults::job_timeout(when)),
            Some(Spanned { value: TimeLimit::Never, .. }) => Some(None),
            Some(Spanned { value: TimeLimit::After(time), place, .. }) if *time < SHORTEST_TIME => {
                self.error(*place, "`timeout` must be at least 1ms", "remove it for no timeout");
                None
            }
            Some(Spanned { value: TimeLimit::After(time), .. }) => Some(Some(to_duration(*time))),
        }
    }

    fn restarts(&mut self, fields: &JobFields, when: Option<&When>) -> Option<Restarts> {
        let trigger = when.map(|when| &when.trigger);
        let Some(given) = &fields.restarts else { return Some(defaults::restarts(when)) };
        let each =
            fields.when.as_ref().and_then(|when| when.value.object()).is_some_and(|when| when.each.is_some())
                || matches!(
                    trigger,
                    Some(Trigger::All { repeat, .. } | Trigger::Any { repeat, .. }) if *repeat != Repeat::Once
                );
        if given.value == Restarts::Unlimited && each {
            let message = "`restarts: \"unlimited\"` cannot be combined with `when.each`";
            let help =
                "the job would restart forever after the first event; use `once`, or a number of restarts";
            self.error(given.place, message, help);
            return None;
        }
        Some(given.value)
    }

    fn backoff(&mut self, fields: &JobFields) -> Option<Option<Backoff>> {
        let given = fields.restart_backoff.as_ref()?;
        let Some(section) = &given.value else { return Some(None) };
        let BackoffFields { initial, max, reset, .. } = section;
        let [initial, max, reset] = [initial.as_ref()?, max.as_ref()?, reset.as_ref()?];
        for time in [initial, max, reset] {
            if time.value < 0 {
                self.error(time.place, "a delay cannot be negative", "");
                return None;
            }
        }
        if initial.value > max.value {
            let place = if initial.written { initial.place } else { max.place };
            self.error(place, "`initial` is longer than `max`", "");
            return None;
        }
        let (initial, max, reset) =
            (to_duration(initial.value), to_duration(max.value), to_duration(reset.value));
        Some(Some(Backoff { initial, max, reset }))
    }

    fn start_limit(&mut self, fields: &JobFields) -> Option<Option<StartLimit>> {
        let Some(given) = &fields.start_limit else { return Some(None) };
        let (section, at) = (&given.value, given.place.first_byte());
        let within =
            self.positive(&StartLimitFields::INFO, section.place, at, section.within.as_ref(), "within");
        let Some(count) = &section.count else {
            self.required(&StartLimitFields::INFO, section.place, at, "count");
            return None;
        };
        let count = u32::try_from(count.value).ok()?;
        Some(Some(StartLimit { count, within: within?, then: value_of(&section.then)? }))
    }

    fn stop(&mut self, fields: &JobFields) -> Option<Stop> {
        let StopEscalation { signal, then, kill_after } = value_of(&fields.stop_signal)?;
        let total: Duration = then.iter().map(|next| next.after).sum();
        let kill_after = match &fields.kill_after {
            None => kill_after,
            Some(given) if kill_after.is_some() => {
                let message = "`killAfter` beside a `stopSignal` that ends with KILL";
                self.error(
                    given.key,
                    message,
                    "remove `killAfter`, or remove KILL and the duration before it",
                );
                return None;
            }
            Some(given) if given.value < SHORTEST_TIME => {
                let help = "write stopSignal: \"KILL\" to kill the job at once";
                self.error(given.place, "`killAfter` must be at least 1ms", help);
                return None;
            }
            Some(given) if to_duration(given.value) <= total => {
                let message = "SIGKILL would come before the last signal of `stopSignal`";
                let total = fmt_duration(total);
                self.error(given.place, message, &format!("write a `killAfter` of more than {total}"));
                return None;
            }
            Some(given) => Some(to_duration(given.value)),
        };
        Some(Stop {
            signal,
            escalation: then,
            kill_after,
            scope: value_of(&fields.stop_scope)?,
            hook_timeout: value_of(&fields.stop_timeout).filter(|time| *time > 0).map(to_duration),
            drain: self.drain(fields)?,
        })
    }

    /// How long a job keeps running after its service is deregistered (S2, S11).
    fn drain(&mut self, fields: &JobFields) -> Option<Drain> {
        let given = fields.drain.as_ref()?;
        let section = match &given.value {
            TimeOr::Time(time) => return Some(Drain::For(to_duration(*time))),
            TimeOr::Object(section) => section,
        };
        if section.exec.is_none() {
            self.required(&DrainFields::INFO, section.place, given.key, "exec");
        }
        let timeout = section.timeout.as_ref();
        if let Some(short) = timeout.filter(|given| given.value < SHORTEST_TIME) {
            self.error(short.place, "`timeout` must be at least 1ms", "remove `drain` to stop at once");
            return None;
        }
        let wrong = self.is_reported(section.place, "timeout");
        let timeout = timeout.map(|given| to_duration(given.value));
        (!wrong).then_some(Drain::Until { program: value_of(&section.exec)?, timeout })
    }

    fn process(&mut self, fields: &JobFields) -> Option<Process> {
        let user = self.account(fields.user.as_ref(), "user", |host, name| host.has_user(name));
        let group = self.account(fields.group.as_ref(), "group", |host, name| host.has_group(name));
        let environment = self.job_environment(fields);
        Some(Process {
            user: user?,
            group: group?,
            cwd: value_of(&fields.cwd).filter(|cwd| !cwd.is_empty()),
            umask: value_of(&fields.umask),
            limits: value_of(&fields.limits).unwrap_or_default(),
            no_new_privileges: value_of(&fields.no_new_privileges)?,
            nice: value_of(&fields.nice).and_then(|nice| i8::try_from(nice).ok()),
            oom_score_adj: value_of(&fields.oom_score_adj).and_then(|adj| i16::try_from(adj).ok()),
            capabilities: value_of(&fields.capabilities),
            ..environment?
        })
    }

    /// A user or a group, which must exist (P9).
    pub(super) fn account(
        &mut self,
        given: Option<&Spanned<Principal>>,
        what: &str,
        exists: fn(&dyn Host, &str) -> bool,
    ) -> Option<Option<Principal>> {
        let Some(given) = given else { return Some(None) };
        if let Principal::Name(name) = &given.value
            && !exists(self.host, name)
        {
            let message = format!("unknown {what} `{name}`");
            let names = self.host.account_names(what);
            let help = match crate::suggest::nearest(name, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("create it in the image, or use a numeric id: {what}: 1000"),
            };
            self.error(given.place, message, &help);
            return None;
        }
        Some(Some(given.value.clone()))
    }
}
