//! Jobs that wait for each other in a cycle.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{EventPattern, Job, RequiredSource, Trigger};

use crate::default_names::job_name;
use crate::validate::Checker;
use crate::validate::waits::{Wait, waits};

impl Checker<'_> {
    /// Reports jobs that wait for each other in a cycle.
    pub(super) fn cycles(&mut self) {
        let blocked = self.blocked();
        let mut visited: Vec<bool> = vec![false; self.pairs.len()];
        for start in 0..self.pairs.len() {
            let mut path = Vec::new();
            let mut at = start;
            // Follow the chain of waiting jobs up to a job that was visited before.
            let cycle = loop {
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
            if let Some(cycle) = cycle {
                self.report_cycle(&cycle);
            }
        }
    }

    fn report_cycle(&mut self, cycle: &[usize]) {
        let name = |nth: &usize| {
            self.pairs.get(*nth).and_then(|(fields, _)| job_name(fields)).unwrap_or("?".into()).into_owned()
        };
        let mut names: Vec<String> = cycle.iter().map(name).collect();
        names.extend(names.first().cloned());
        let Some((fields, _)) = cycle.first().and_then(|nth| self.pairs.get(*nth)) else { return };
        let required = fields.requires.as_ref().map(|given| given.key);
        let event = fields.when.as_ref().map(|when| {
            let source = when.value.object().and_then(|fields| fields.source.as_ref());
            source.map_or(when.key, |given| given.place)
        });
        let Some(place) = required.or(event) else { return };
        let (message, help) = if required.is_some() {
            let message = match names.as_slice() {
                [only, _] => format!("the job `{only}` requires itself, so it can never run"),
                _ => format!("these jobs wait for each other and can never run: {}", names.join(" → ")),
            };
            (message, "change `requires` or `when` of one of them")
        } else if let [only, _] = names.as_slice() {
            let message = format!("the job `{only}` waits for itself, so it can never run");
            (message, "remove `when` to run it at startup; use `restarts` to run it again after it exits")
        } else {
            let jobs = cycle.iter().filter_map(|nth| self.pairs.get(*nth)?.1);
            // One of them runs at the shutdown, which stops another one (S4).
            let when = if jobs.into_iter().any(|job| job.when.has_stop_event()) {
                "cannot run before the shutdown"
            } else {
                "can never run"
            };
            let message = format!("these jobs wait for each other and {when}: {}", names.join(" → "));
            (message, "change the event of one of them")
        };
        self.fault(place, message, help);
    }

    /// For each job that can never start because of another job: that other job.
    fn blocked(&self) -> Vec<Option<usize>> {
        let count = self.pairs.len();
        let mut startable = vec![false; count];
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut todo: Vec<usize> = (0..count).collect();
        for (nth, (fields, job)) in self.pairs.iter().enumerate() {
            let Some(job) = job else { continue };
            let events = waits(fields, job).into_iter().flat_map(|wait| self.waited_for(wait.event));
            for on in events.chain(self.required(job).flatten()) {
                if let Some(list) = waiting.get_mut(*on) {
                    list.push(nth);
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

    /// The jobs of which one must start before an event can be sent. A job that gives up (`when.timeout`) stops without a
    /// start.
    fn waited_for(&self, event: &EventPattern) -> &[usize] {
        let Source::Job(name) = &event.source else { return &[] };
        let jobs = self.names.jobs.get(name).map(Vec::as_slice).unwrap_or_default();
        let gives_up = |nth: &usize| {
            let job = self.pairs.get(*nth).and_then(|(_, job)| *job);
            job.is_none_or(|job| job.when.timeout.is_some())
        };
        match event.code {
            code if code.needs_a_run() => jobs,
            Code::Stopping | Code::Stopped if !jobs.iter().any(gives_up) => jobs,
            _ => &[],
        }
    }

    /// For each requirement of a job, the jobs of which one must start before it holds (W18).
    fn required<'a>(&'a self, job: &'a Job) -> impl Iterator<Item = &'a [usize]> {
        let names = job.requires.iter().filter_map(|requirement| match &requirement.source {
            RequiredSource::Job(name) => Some(name),
            RequiredSource::Watch(_) | RequiredSource::File(_) | RequiredSource::Lock(_) => None,
        });
        names.filter_map(|name| self.names.jobs.get(name)).map(Vec::as_slice)
    }

    /// A job that prevents this one from starting.
    fn obstacle(&self, nth: usize, startable: &[bool]) -> Option<usize> {
        let (fields, job) = self.pairs.get(nth)?;
        let job = (*job)?;
        let blocked_by = |on: &[usize]| {
            let free = on.is_empty() || on.iter().any(|on| startable.get(*on).copied().unwrap_or(true));
            if free { None } else { on.first().copied() }
        };
        if let Some(on) = self.required(job).find_map(&blocked_by) {
            return Some(on);
        }
        let blocker = |wait: &Wait<'_>| blocked_by(self.waited_for(wait.event));
        let waits = waits(fields, job);
        match &job.when.trigger {
            Trigger::Any { .. } => {
                let obstacles: Vec<_> = waits.iter().map(blocker).collect();
                if obstacles.iter().all(Option::is_some) {
                    obstacles.into_iter().next().flatten()
                } else {
                    None
                }
            }
            _ => waits.iter().find_map(blocker),
        }
    }
}
