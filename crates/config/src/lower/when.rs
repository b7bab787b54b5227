//! Triggers: W1 to W6, W12 and W15 to W17.

use std::collections::BTreeSet;
use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::inserted;
use containerpilot_core::plan::{EventPattern, FirstTick, Job, Repeat, Signal, Trigger, When};

use super::Lower;
use super::requires::resolve_requirements;
use crate::decode::{Section, Spanned};
use crate::diagnostics::{Place, Severity};
use crate::fields::{ConditionFields, ConfigFields, JobFields, WhenFields};
use crate::limits::SHORTEST_TIME;
use crate::values::{Either, EventName, EventOrFlag, Queue, to_duration};

impl Lower<'_> {
    /// The trigger of a job. A source that is the name of a watch is resolved later, when all names are known.
    pub(super) fn when(&mut self, job: &JobFields) -> Option<When> {
        let Some(given) = &job.when else { return Some(When::at_startup()) };
        let fields = match &given.value {
            Either::Text(_) => return Some(When { trigger: Trigger::Manual, timeout: None }),
            Either::Object(fields) => fields,
        };
        self.only_one_trigger(fields)?;
        if let (Some(zone), None) = (&fields.timezone, &fields.cron) {
            if !self.is_reported(fields.place, "cron") {
                self.error(zone.key, "`timezone` needs `cron`", "add for example cron: \"0 3 * * *\"");
            }
            return None;
        }
        let timeout =
            fields.timeout.as_ref().map(|timeout| timeout.value).filter(|time| *time > 0).map(to_duration);
        let trigger = if let Some(interval) = &fields.interval {
            self.queue(fields, None)?;
            let every = self.interval(interval)?;
            let Some(event) = self.schedule_event(fields, "interval")? else {
                return Some(When { trigger: Trigger::every(every), timeout: None });
            };
            Trigger::Interval { every, first: FirstTick::AtEvent(event) }
        } else if let Some(cron) = &fields.cron {
            self.queue(fields, None)?;
            let cron = self.cron(&cron.value, fields.timezone.as_ref())?;
            let Some(event) = self.schedule_event(fields, "cron")? else {
                return Some(When { trigger: Trigger::Cron { cron, after: None }, timeout: None });
            };
            Trigger::Cron { cron, after: Some(event) }
        } else if let Some(all) = &fields.all {
            self.without_effect("source", fields.source.as_ref(), "`all`");
            let (conditions, repeat) = (self.conditions(all)?, self.repeat(fields)?);
            Trigger::All { conditions, repeat }
        } else if let Some(any) = &fields.any {
            self.without_effect("source", fields.source.as_ref(), "`any`");
            let (conditions, repeat) = (self.conditions(any)?, self.repeat(fields)?);
            Trigger::Any { conditions, repeat }
        } else {
            self.event_trigger(fields)?
        };
        let mut when = When { trigger, timeout };
        self.queue(fields, Some(&mut when))?;
        Some(when)
    }

    /// W21: `queue`, the events of an `each` that count.
    fn queue(&mut self, fields: &WhenFields, when: Option<&mut When>) -> Option<()> {
        let Some(given) = &fields.queue else { return Some(()) };
        let repeat = when.and_then(|when| match &mut when.trigger {
            Trigger::Event { repeat, .. } | Trigger::All { repeat, .. } | Trigger::Any { repeat, .. } => {
                Some(repeat)
            }
            Trigger::Interval { .. } | Trigger::Cron { .. } | Trigger::Manual | Trigger::Never => None,
        });
        match repeat.filter(|repeat| **repeat == Repeat::Each) {
            Some(repeat) => {
                if given.value == Queue::All {
                    *repeat = Repeat::EachQueued;
                }
                Some(())
            }
            None => {
                let message = "`queue` belongs beside `each`: it says which events during a run count";
                self.error(given.key, message, "remove it, or write `each`");
                None
            }
        }
    }

    /// `once`, `each`, `event`, `all` and `any` exclude each other (W2), and so do `interval` and `cron`. An event that comes
    /// once may start a schedule (W16).
    fn only_one_trigger(&mut self, fields: &WhenFields) -> Option<()> {
        let together = fields.all.is_some() || fields.any.is_some();
        let repeats = |given: &Option<Spanned<EventOrFlag>>| {
            given.as_ref().filter(|_| !together).map(|given| given.key)
        };
        let schedules = [
            ("interval", fields.interval.as_ref().map(|given| given.key)),
            ("cron", fields.cron.as_ref().map(|given| given.key)),
        ];
        let schedule = schedules.iter().find(|(_, place)| place.is_some());
        if let (Some((schedule, _)), Some(each)) = (schedule, repeats(&fields.each)) {
            let message = format!(
                "`{schedule}` cannot be combined with `each`: each event would start one more schedule"
            );
            self.error(
                each,
                message,
                &format!("use `once` to start the schedule at the first event, or remove `{schedule}`"),
            );
            return None;
        }
        // `once` and `event` of a source start a schedule.
        let starts = |place: Option<Place>| place.filter(|_| schedule.is_none() || fields.source.is_none());
        let [interval, cron] = schedules;
        let triggers = [
            interval,
            cron,
            ("once", starts(repeats(&fields.once))),
            ("each", repeats(&fields.each)),
            ("event", starts(fields.event.as_ref().map(|given| given.key))),
            ("all", fields.all.as_ref().map(|given| given.key)),
            ("any", fields.any.as_ref().map(|given| given.key)),
        ];
        let mut given = triggers.iter().filter_map(|(key, place)| place.map(|place| (*key, place)));
        let (Some((first, _)), Some((second, place))) = (given.next(), given.next()) else { return Some(()) };
        let message = format!("`when` has both `{first}` and `{second}`, but only one is allowed");
        let help = match second {
            "once" | "event" if schedule.is_some() => {
                "remove one of them, or add `source`: the event of a source starts the schedule"
            }
            _ => "remove one of them, or write two jobs",
        };
        self.error(place, message, help);
        None
    }

    /// Warns about a key that is ignored beside another one, as in 3.8.
    fn without_effect<T>(&mut self, key: &str, given: Option<&Spanned<T>>, beside: &str) {
        if let Some(given) = given.filter(|given| given.written) {
            let message = format!("`{key}` has no effect with {beside}");
            self.report(Severity::Warning, given.key, message, "remove it");
        }
    }

    /// W16: the event that starts a schedule, or `None` if the schedule starts at startup.
    fn schedule_event(&mut self, fields: &WhenFields, schedule: &str) -> Option<Option<EventPattern>> {
        if fields.once.is_none() && fields.event.is_none() {
            self.without_effect("source", fields.source.as_ref(), &format!("`{schedule}`"));
            self.without_effect("timeout", fields.timeout.as_ref(), &format!("`{schedule}`"));
            return Some(None);
        }
        let place = fields
            .once
            .as_ref()
            .map(|given| given.place)
            .or(fields.event.as_ref().map(|given| given.place))?;
        match self.event_trigger(fields)? {
            Trigger::Event { event, .. } if event.code.is_stop_event() => {
                let message = format!("`{}` cannot start a schedule: a stop hook runs once", event.code);
                self.error(place, message, &format!("remove `{schedule}`"));
                None
            }
            Trigger::Event { event, .. } => Some(Some(event)),
            _ => {
                self.error(place, "this event is never sent", "");
                None
            }
        }
    }

    fn interval(&mut self, interval: &Spanned<i64>) -> Option<Duration> {
        if interval.value < SHORTEST_TIME {
            self.error(interval.place, "`interval` must be at least 1ms", "for example: 5 or \"500ms\"");
            return None;
        }
        Some(to_duration(interval.value))
    }

    fn event_trigger(&mut self, fields: &WhenFields) -> Option<Trigger> {
        if let Some(source) = &fields.source
            && let Some(signal) = self.signal_source(source)?
        {
            let signal_source = format!("the source {}", source.value);
            self.without_effect("once", fields.once.as_ref(), &signal_source);
            self.without_effect("each", fields.each.as_ref(), &signal_source);
            self.without_effect("event", fields.event.as_ref(), &signal_source);
            let event = EventPattern { source: Source::Signal(signal), code: Code::Signal };
            return Some(Trigger::Event { event, repeat: Repeat::Each });
        }
        let named = |given: &Option<Spanned<EventOrFlag>>, repeat| match given {
            Some(Spanned { value: EventOrFlag::Event(name), .. }) => Ok(Some((*name, repeat))),
            Some(Spanned { value: EventOrFlag::Flag(_), place, .. }) => Err(*place),
            None => Ok(None),
        };
        let by_event = fields.event.as_ref().map(|event| (event.value, Repeat::Once));
        let found = named(&fields.once, Repeat::Once)
            .and_then(|once| Ok(once.or(named(&fields.each, Repeat::Each)?)))
            .map(|found| found.or(by_event));
        match found {
            Ok(Some((EventName::Code(code), repeat))) => {
                let source = source_named(fields.source.as_ref().map_or("", |given| &given.value));
                Some(Trigger::Event { event: EventPattern { source, code }, repeat })
            }
            Ok(_) => Some(Trigger::Never),
            Err(place) => {
                let key = if fields.once.is_some() { "once" } else { "each" };
                let message = format!("`{key}` must be the name of an event, not a boolean");
                self.error(place, message, &format!("for example: {key}: \"exitSuccess\""));
                None
            }
        }
    }

    /// The signal that a source names (W3, S8). The outer `None` is an error. A signal that nothing can wait for is no source,
    /// as in 3.8, and is reported with the other sources that do not exist.
    fn signal_source(&mut self, source: &Spanned<String>) -> Option<Option<Signal>> {
        let named = Signal::from_full_name(&source.value).filter(|signal| signal.can_be_received());
        let Some(signal) = named else { return Some(None) };
        if !self.stop_on.signals.contains(&signal) {
            return Some(Some(signal));
        }
        if !self.stop_on.written {
            return Some(None);
        }
        let message = format!("{signal} is in `stopOn`, so no job can wait for it");
        let help = format!(
            "remove it from `stopOn`, or write when: {{ once: \"shutdown\" }}, which {signal} causes"
        );
        self.error(source.place, message, &help);
        None
    }

    fn conditions(&mut self, given: &Spanned<Vec<ConditionFields>>) -> Option<Vec<EventPattern>> {
        if given.value.is_empty() {
            self.error(
                given.place,
                "the list of conditions is empty",
                "add a condition, or remove it to run the job at startup",
            );
            return None;
        }
        given.value.iter().map(|condition| self.condition(condition)).collect()
    }

    fn condition(&mut self, fields: &ConditionFields) -> Option<EventPattern> {
        if let Some(source) = &fields.source
            && let Some(signal) = self.signal_source(source)?
        {
            self.without_effect("event", fields.event.as_ref(), &format!("the source {signal}"));
            return Some(EventPattern { source: Source::Signal(signal), code: Code::Signal });
        }
        let source = fields.source.as_ref().map_or("", |given| &given.value);
        match fields.event.as_ref().map(|given| (given.value, given.place)) {
            Some((EventName::Code(code), _)) => Some(EventPattern { source: source_named(source), code }),
            Some((EventName::NeverSent(_), place)) => {
                self.error(place, "this event is never sent", "");
                None
            }
            None => {
                let at = fields.place.first_byte();
                self.required(&ConditionFields::INFO, fields.place, at, "event");
                None
            }
        }
    }

    /// Whether a job with `all` or `any` runs once or each time (W12).
    fn repeat(&mut self, fields: &WhenFields) -> Option<Repeat> {
        let flag = |given: &Option<Spanned<EventOrFlag>>| match given {
            Some(Spanned { value: EventOrFlag::Flag(flag), .. }) => Ok(Some(*flag)),
            Some(Spanned { value: EventOrFlag::Event(_), place, .. }) => Err(*place),
            None => Ok(None),
        };
        match (flag(&fields.once), flag(&fields.each)) {
            (Ok(Some(true)), Ok(Some(true))) => {
                let place = fields.each.as_ref().map_or(fields.place.first_byte(), |given| given.key);
                self.error(place, "`once` and `each` cannot both be true", "remove one of them");
                None
            }
            (Ok(once), Ok(each)) => {
                Some(if each == Some(true) || once == Some(false) { Repeat::Each } else { Repeat::Once })
            }
            (Err(place), _) | (_, Err(place)) => {
                let message = "with `all` or `any` this must be true or false: the events are in the list";
                self.error(place, message, "write each: true to run the job every time");
                None
            }
        }
    }
}

/// The source with a name, as far as the name alone determines it (E1).
pub(crate) fn source_named(name: &str) -> Source {
    match name {
        "" | "global" => Source::Global,
        _ => match (name.strip_prefix("watch."), name.strip_prefix("lock.")) {
            (Some(watch), _) => Source::Watch(watch.to_owned()),
            (None, Some(lock)) => Source::Lock(lock.to_owned()),
            (None, None) => Source::Job(name.to_owned()),
        },
    }
}

/// Resolves a source that is the name of a watch but not of a job to the watch (E1).
pub(super) fn resolve_sources(jobs: &mut [Option<Job>], fields: &ConfigFields) {
    let named: BTreeSet<String> = inserted(jobs.iter().flatten().map(|job| job.name.clone()));
    let watches = fields.watches.iter().flat_map(|given| &given.value);
    let watched: BTreeSet<&String> =
        inserted(watches.filter_map(|watch| watch.name.as_ref()).map(|given| &given.value));
    let resolve = |event: &mut EventPattern| {
        if let Source::Job(name) = &mut event.source
            && !named.contains(name)
            && watched.contains(name)
        {
            event.source = Source::Watch(std::mem::take(name));
        } else if let Source::Job(name) = &mut event.source
            && !named.contains(name)
            && let Some(file) = name.strip_prefix("file.")
        {
            event.source = Source::File(file.to_owned());
        }
    };
    for job in jobs.iter_mut().flatten() {
        resolve_requirements(job, |name| named.contains(name), |name| watched.contains(&name.to_owned()));
        match &mut job.when.trigger {
            Trigger::Event { event, .. } => resolve(event),
            Trigger::All { conditions, .. } | Trigger::Any { conditions, .. } => {
                conditions.iter_mut().for_each(resolve)
            }
            Trigger::Interval { first: FirstTick::AtEvent(event), .. }
            | Trigger::Cron { after: Some(event), .. } => resolve(event),
            Trigger::Interval { .. } | Trigger::Cron { .. } | Trigger::Manual | Trigger::Never => {}
        }
    }
}
