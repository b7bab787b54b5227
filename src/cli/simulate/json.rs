//! The timeline for a program.

use containerpilot_config::json::Json;
use containerpilot_core::Time;
use containerpilot_simulation::expect::Verdict;
use containerpilot_simulation::timeline::{SimulationRun, Entry, View, What};

pub(super) fn story(course: &SimulationRun, verdicts: &[Verdict]) -> String {
    let good = course.abort.is_none() && verdicts.iter().all(|verdict| verdict.holds);
    let mut fields = vec![("ok", Json::Bool(good)), ("end", seconds(course.end))];
    if let Some(asked) = course.asked_to_stop {
        fields.push(("stoppedAt", seconds(asked)));
    }
    if let Some((at, code)) = course.exit {
        fields.push(("exit", Json::object([("at", seconds(at)), ("code", Json::whole(code))])));
    }
    let timeline = course.entries.iter().enumerate().map(|(nth, one)| entry(nth, one));
    fields.push(("timeline", Json::List(timeline.collect())));
    fields.push(("jobs", Json::List(course.jobs.iter().map(|name| job(course, name)).collect())));
    fields.push(("expectations", Json::List(verdicts.iter().map(verdict).collect())));
    Json::object(fields).pretty()
}

/// Seconds since the beginning, to the nanosecond.
fn seconds(at: Time) -> Json {
    let (whole, part) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
    let text = format!("{whole}.{part:09}");
    Json::Number(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

fn entry(nth: usize, entry: &Entry) -> Json {
    let mut fields = vec![
        ("id", Json::whole(nth)),
        ("at", seconds(entry.at)),
        ("source", Json::text(if entry.source.is_empty() { "global" } else { &entry.source })),
        ("what", Json::text(entry.what.word())),
    ];
    if let What::Sent(signal) = entry.what {
        fields.push(("signal", Json::whole(signal)));
    }
    if !entry.note.is_empty() {
        fields.push(("note", Json::text(&entry.note)));
    }
    if let Some(cause) = entry.cause {
        fields.push(("cause", Json::whole(cause)));
    }
    Json::object(fields)
}

fn lines(lines: &[String]) -> Json {
    Json::List(lines.iter().map(|line| Json::text(line)).collect())
}

fn job(course: &SimulationRun, name: &str) -> Json {
    let mut fields = vec![("name", Json::text(name))];
    if let Some(View { word, healthy, sentences, .. }) = course.last.get(name) {
        fields.push(("state", Json::text(word)));
        fields.push(("healthy", healthy.map_or(Json::Null, Json::Bool)));
        fields.push(("explanation", lines(sentences)));
    }
    if let Some(history) = course.histories.get(name) {
        fields.push(("runs", Json::whole(history.runs)));
        let phases = history.phases.iter().map(|(from, phase)| {
            Json::object([("from", seconds(*from)), ("phase", Json::text(phase.name()))])
        });
        fields.push(("phases", Json::List(phases.collect())));
    }
    Json::object(fields)
}

fn verdict(verdict: &Verdict) -> Json {
    let mut fields = vec![
        ("expected", Json::text(&verdict.expected)),
        ("ok", Json::Bool(verdict.holds)),
        ("happened", Json::text(&verdict.happened)),
        ("because", lines(&verdict.because)),
    ];
    if let Some(why) = &verdict.why {
        fields.push(("why", Json::text(why)));
    }
    Json::object(fields)
}
