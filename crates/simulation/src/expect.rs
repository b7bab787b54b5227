//! Compares expectations with what happened.

use std::time::Duration;

use containerpilot_config::duration::exact;
use containerpilot_core::Time;

use crate::moment::{EXIT, Moment};
use crate::scenario::{Bound, Claim, Expectation, ExpectedState, Scenario, Window};
use crate::timeline::{Entry, SimulationRun, View, What};

/// Whether an expectation holds, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The expectation.
    pub expected: String,
    /// True if it holds.
    pub holds: bool,
    /// What happened.
    pub happened: String,
    /// The causes, if it does not hold.
    pub because: Vec<String>,
    /// The `why` of the scenario.
    pub why: Option<String>,
}

/// The times at which expectations must see the state of a job.
pub fn probes(scenario: &Scenario) -> impl Iterator<Item = (Duration, String)> + '_ {
    scenario.expectations.iter().filter_map(|expectation| match &expectation.claim {
        Claim::State(job, _, at) => Some(((*at)?, job.clone())),
        Claim::See(moment, Window { before: Some(Bound::Time(at)), .. }, _) => {
            Some((*at, moment.source.clone()))
        }
        Claim::Exit(..) | Claim::See(..) | Claim::Never(..) | Claim::Follows(..) => None,
    })
}

/// Checks all expectations of a scenario.
#[must_use]
pub fn judge(scenario: &Scenario, run: &SimulationRun) -> Vec<Verdict> {
    scenario.expectations.iter().map(|expectation| Judge { run }.judge(expectation)).collect()
}

struct Judge<'a> {
    run: &'a SimulationRun,
}

/// Whether an expectation holds, what happened, and why.
type Outcome = (bool, String, Vec<String>);

impl Judge<'_> {
    fn judge(&self, expectation: &Expectation) -> Verdict {
        let (holds, happened, because) = match &expectation.claim {
            Claim::See(moment, window, None) => self.see(moment, window),
            Claim::See(moment, window, Some(times)) => self.count(moment, window, *times),
            Claim::Never(moment, window) => self.never(moment, window),
            Claim::Follows(moment, within, of, window) => self.follows(moment, *within, of, window),
            Claim::State(job, is, at) => self.state(job, *is, *at),
            Claim::Exit(code, window) => self.exit(*code, window),
        };
        Verdict {
            expected: expectation.claim.to_string(),
            holds,
            happened,
            because: if holds { Vec::new() } else { because },
            why: expectation.why.clone(),
        }
    }

    /// What happened before the simulation stopped the supervisor.
    fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.run.entries.iter().enumerate().take(self.run.counted)
    }

    fn all(&self, moment: &Moment) -> Vec<(usize, &Entry)> {
        // The exit always counts, although it follows the shutdown at the end.
        if *moment == Moment::global(EXIT) {
            return self.run.entries.iter().enumerate().filter(|(_, entry)| entry.is(moment)).collect();
        }
        self.entries().filter(|(_, entry)| entry.is(moment)).collect()
    }

    fn first(&self, moment: &Moment) -> Option<(usize, &Entry)> {
        self.all(moment).into_iter().next()
    }

    /// The index of a moment that bounds a window, wherever it is.
    fn bound(&self, moment: &Moment) -> Option<usize> {
        self.run.entries.iter().position(|entry| entry.is(moment))
    }

    /// Returns true if an entry lies after the start of a window. Entries of the same instant count by their order.
    fn is_after(&self, place: (usize, &Entry), bound: &Bound) -> bool {
        match bound {
            Bound::Time(at) => place.1.at >= Time::ZERO + *at,
            Bound::Moment(moment) => self.bound(moment).is_some_and(|first| first < place.0),
        }
    }

    fn is_before(&self, place: (usize, &Entry), bound: &Bound) -> bool {
        match bound {
            Bound::Time(at) => place.1.at < Time::ZERO + *at,
            Bound::Moment(moment) => self.bound(moment).is_none_or(|first| place.0 < first),
        }
    }

    fn is_in(&self, place: (usize, &Entry), window: &Window) -> bool {
        window.after.as_ref().is_none_or(|bound| self.is_after(place, bound))
            && window.before.as_ref().is_none_or(|bound| self.is_before(place, bound))
    }

    fn see(&self, moment: &Moment, window: &Window) -> Outcome {
        match self.first(moment) {
            Some(first) if self.is_in(first, window) => (true, happened_at(first.1), Vec::new()),
            Some(first) => {
                let mut happened = happened_at(first.1);
                for bound in [&window.after, &window.before].into_iter().flatten() {
                    if let Bound::Moment(other) = bound {
                        happened += &match self.first(other) {
                            Some((_, entry)) => format!(", and {other} at {}", moment_of(entry.at)),
                            None => format!(", and {other} never"),
                        };
                    }
                }
                let because = match (&window.before, moment.source.as_str()) {
                    (Some(Bound::Time(at)), source) => {
                        let view = self.run.views.get(&(Time::ZERO + *at, source.to_owned()));
                        view.map(|view| sentences_at(Time::ZERO + *at, view)).unwrap_or_default()
                    }
                    _ => self.causes(first.0),
                };
                (false, happened, because)
            }
            None => (false, "it never happened".to_owned(), self.why_not(moment)),
        }
    }

    fn count(&self, moment: &Moment, window: &Window, times: u64) -> Outcome {
        let all: Vec<_> = self.all(moment).into_iter().filter(|place| self.is_in(*place, window)).collect();
        let count = all.len() as u64;
        let happened = match (all.first(), all.last()) {
            (None, _) | (_, None) => "it never happened".to_owned(),
            (Some((_, only)), _) if count == 1 => format!("it happened once, at {}", moment_of(only.at)),
            (Some((_, first)), Some((_, last))) => format!(
                "it happened {count} times, first at {} and last at {}",
                moment_of(first.at),
                moment_of(last.at)
            ),
        };
        let because = match all.get(usize::try_from(times).unwrap_or(usize::MAX)) {
            // The first that is too many.
            Some((place, _)) => self.causes(*place),
            None => self.why_not(moment),
        };
        (count == times, happened, because)
    }

    fn never(&self, moment: &Moment, window: &Window) -> Outcome {
        let found = self.all(moment).into_iter().find(|place| self.is_in(*place, window));
        match found {
            None => (true, "it did not happen".to_owned(), Vec::new()),
            Some((place, entry)) => (false, happened_at(entry), self.causes(place)),
        }
    }

    fn follows(&self, moment: &Moment, within: Duration, of: &Moment, window: &Window) -> Outcome {
        let entries = &self.run.entries;
        let over = self.run.exit.map_or(self.run.end, |(at, _)| at);
        let each: Vec<usize> = (0..entries.len())
            .filter(|place| {
                entries.get(*place).is_some_and(|entry| entry.is(of) && self.is_in((*place, entry), window))
            })
            .collect();
        let mut longest: Option<Duration> = None;
        for place in &each {
            let Some(from) = entries.get(*place) else { continue };
            let next = entries.iter().skip(place + 1).find(|entry| entry.is(moment));
            let took = next.map(|entry| entry.at.since(from.at));
            match took {
                Some(took) if took <= within => longest = longest.max(Some(took)),
                Some(took) => {
                    let happened = format!("after {of} at {} it took {}", moment_of(from.at), exact(took));
                    return (false, happened, self.causes(*place));
                }
                // The simulation ended before the time had passed.
                None if from.at + within > over && self.run.exit.is_none() => {}
                None => {
                    let happened = format!("it never happened after {of} at {}", moment_of(from.at));
                    return (false, happened, self.why_not(moment));
                }
            }
        }
        match longest {
            Some(longest) => (true, format!("it took {} at most", exact(longest)), Vec::new()),
            None => (false, format!("{of} never happened"), self.why_not(of)),
        }
    }

    fn state(&self, job: &str, is: ExpectedState, at: Option<Duration>) -> Outcome {
        let moment = at.map_or(self.run.end, |at| Time::ZERO + at);
        let view = match at {
            None => self.run.last.get(job),
            Some(_) if self.run.exit.is_some_and(|(left, _)| left < moment) => self.run.last.get(job),
            Some(_) => self.run.views.get(&(moment, job.to_owned())),
        };
        let Some(view) = view else {
            return (false, format!("there is no job {job} at {}", moment_of(moment)), Vec::new());
        };
        let holds = match is {
            ExpectedState::Healthy => view.word == "running" && view.healthy == Some(true),
            ExpectedState::Unhealthy => view.word == "running" && view.healthy == Some(false),
            other => view.word == other.to_string(),
        };
        let health = match (view.word, view.healthy) {
            ("running", Some(true)) => " and healthy",
            ("running", Some(false)) => " and unhealthy",
            _ => "",
        };
        let happened = format!("at {} it is {}{health}", moment_of(moment), view.word);
        (holds, happened, view.sentences.clone())
    }

    fn exit(&self, code: u8, window: &Window) -> Outcome {
        let exit = self.all(&Moment::global(EXIT)).into_iter().next();
        let (Some(exit), Some((at, found))) = (exit, self.run.exit) else {
            return (false, "it did not exit".to_owned(), Vec::new());
        };
        let holds = found == code && self.is_in(exit, window);
        let mut happened = format!("it exited with {found} at {}", moment_of(at));
        if let Some(asked) = self.run.stop_requested_at {
            happened += &format!(", after SIGTERM at {}, the end of the simulation", moment_of(asked));
        }
        (holds, happened, Vec::new())
    }

    /// The chain of causes of an entry, the nearest first.
    fn causes(&self, place: usize) -> Vec<String> {
        let entries = &self.run.entries;
        let mut lines = Vec::new();
        let mut effect = entries.get(place);
        while let Some(current) = effect
            && let Some(entry) = current.cause.and_then(|place| entries.get(place))
            && lines.len() < 8
        {
            let known = entry.note.is_empty() || entry.what == What::Request;
            let note = if known { String::new() } else { format!(" ({})", entry.note) };
            let at = moment_of(entry.at);
            // What started a run is not the cause of its end (X10).
            lines.push(match (current.what, entry.what) {
                (_, What::Starts) => format!("its run started{note} at {at}"),
                (What::Starts, _) => format!("started by {}{note} at {at}", entry.name()),
                _ => format!("because of {}{note} at {at}", entry.name()),
            });
            effect = Some(entry);
        }
        lines
    }

    /// Why a moment did not happen: the state of its source at the end.
    fn why_not(&self, moment: &Moment) -> Vec<String> {
        match self.run.last.get(&moment.source) {
            Some(view) => sentences_at(self.run.end, view),
            None => Vec::new(),
        }
    }
}

fn happened_at(entry: &Entry) -> String {
    let note = if entry.note.is_empty() { String::new() } else { format!(" ({})", entry.note) };
    format!("it happened at {}{note}", moment_of(entry.at))
}

/// The explanation of a view, with its time.
fn sentences_at(at: Time, view: &View) -> Vec<String> {
    let mut lines = view.sentences.clone();
    if let Some(first) = lines.first_mut() {
        *first = format!("at {}: {first}", moment_of(at));
    }
    lines
}

/// The time since the start.
#[must_use]
pub fn moment_of(at: Time) -> String {
    exact(at.since(Time::ZERO))
}
