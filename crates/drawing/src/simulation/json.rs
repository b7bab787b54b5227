//! `simulate --format json`

use containerpilot_core::Time;
use containerpilot_simulation::expect::Verdict;
use containerpilot_simulation::timeline::{SimulationRun, What};
use containerpilot_text::json::pretty_json;
use serde::{Serialize, Serializer};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    end: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    timeline: Vec<Entry<'a>>,
    jobs: Vec<Job<'a>>,
    expectations: Vec<Expectation<'a>>,
}

#[derive(Serialize)]
struct Exit {
    at: Seconds,
    code: u8,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: usize,
    at: Seconds,
    source: &'a str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<u8>,
    #[serde(skip_serializing_if = "str::is_empty")]
    note: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<usize>,
}

#[derive(Serialize)]
struct Job<'a> {
    name: &'a str,
    #[serde(flatten)]
    state: Option<State<'a>>,
    #[serde(flatten)]
    history: Option<History<'a>>,
}

/// How a job is at the end.
#[derive(Serialize)]
struct State<'a> {
    state: &'a str,
    healthy: Option<bool>,
    explanation: &'a [String],
}

#[derive(Serialize)]
struct History<'a> {
    runs: u64,
    phases: Vec<Phase<'a>>,
}

#[derive(Serialize)]
struct Phase<'a> {
    from: Seconds,
    phase: &'a str,
}

#[derive(Serialize)]
struct Expectation<'a> {
    expected: &'a str,
    ok: bool,
    happened: &'a str,
    because: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// Virtual time in seconds, exact to the nanosecond.
struct Seconds(Time);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const SECOND: u64 = 1_000_000_000;
        let nanos = self.0.as_nanos();
        match nanos % SECOND {
            0 => serializer.serialize_u64(nanos / SECOND),
            _ => serializer.serialize_f64(nanos as f64 / SECOND as f64),
        }
    }
}

pub fn timeline(run: &SimulationRun, verdicts: &[Verdict]) -> String {
    pretty_json(&Answer {
        ok: run.abort.is_none() && verdicts.iter().all(|verdict| verdict.holds),
        end: Seconds(run.end),
        stopped_at: run.stop_requested_at.map(Seconds),
        exit: run.exit.map(|(at, code)| Exit { at: Seconds(at), code }),
        timeline: entries(run),
        jobs: run.jobs.iter().map(|name| job(run, name)).collect(),
        expectations: verdicts.iter().map(expectation).collect(),
    })
}

fn entries(run: &SimulationRun) -> Vec<Entry<'_>> {
    let entries = run.entries.iter().enumerate();
    entries
        .map(|(id, entry)| Entry {
            id,
            at: Seconds(entry.at),
            source: if entry.source.is_empty() { "global" } else { &entry.source },
            what: entry.what.word(),
            signal: if let What::Sent(signal) = entry.what { Some(signal) } else { None },
            note: &entry.note,
            cause: entry.cause,
        })
        .collect()
}

fn job<'a>(run: &'a SimulationRun, name: &'a str) -> Job<'a> {
    Job {
        name,
        state: run.last.get(name).map(|view| State {
            state: view.word,
            healthy: view.healthy,
            explanation: &view.sentences,
        }),
        history: run.histories.get(name).map(|lane| {
            let phase = |(from, phase): &(Time, containerpilot_simulation::timeline::JobPhase)| Phase {
                from: Seconds(*from),
                phase: phase.name(),
            };
            History { runs: lane.runs, phases: lane.phases.iter().map(phase).collect() }
        }),
    }
}

fn expectation(verdict: &Verdict) -> Expectation<'_> {
    Expectation {
        expected: &verdict.expected,
        ok: verdict.holds,
        happened: &verdict.happened,
        because: &verdict.because,
        why: verdict.why.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_times_are_exact_and_whole_seconds_have_no_fraction() {
        let json = |nanos| serde_json::to_string(&Seconds(Time::from_nanos(nanos))).unwrap();
        assert_eq!(json(5_000_000_000), "5");
        assert_eq!(json(1_500_000_000), "1.5");
        assert_eq!(json(86_400_123_456_789), "86400.123456789");
    }
}
