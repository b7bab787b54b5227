//! `events`: the events and starts of runs that the supervisor keeps, and with --follow the new ones.

use std::collections::BTreeSet;
use std::time::Instant;

use containerpilot_api::responses::{Event, Start};
use containerpilot_api::timestamps;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::as_json;
use containerpilot_command_line::options::line_limit;
use containerpilot_command_line::output::write_stdout;
use containerpilot_text::screen::sanitized;

use super::client::{Client, DEFAULT_TIMEOUT, Message};

pub(super) fn events(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let limit = line_limit(args)?;
    let client = Client::of(args);
    let mut last_id = String::new();
    let mut kept = Vec::new();
    // The runs whose start was shown: the second stream repeats those after the last event.
    let mut runs = BTreeSet::new();
    let mut stream = client.messages("/v3/events?follow=false")?;
    // The kept events are sent at once; only new events may take any time.
    let until = Instant::now() + DEFAULT_TIMEOUT;
    while let Some(message) = stream.next(Some(until))? {
        match message.event.as_str() {
            "" => last_id.clone_from(&message.id),
            "start" => {
                runs.insert(run(&message));
            }
            _ => continue,
        }
        kept.push(message);
    }
    let skipped = limit.map_or(0, |limit| kept.len().saturating_sub(limit));
    for message in kept.iter().skip(skipped) {
        if !show(json, message)? {
            return Ok(());
        }
    }
    if !args.is_on("follow") {
        return Ok(());
    }
    let path =
        if last_id.is_empty() { "/v3/events".to_owned() } else { format!("/v3/events?since={last_id}") };
    let mut stream = client.messages(&path)?;
    while let Some(message) = stream.next(None)? {
        match message.event.as_str() {
            "end" => return Ok(()),
            "start" if !runs.insert(run(&message)) => {}
            "" | "start" if !show(json, &message)? => return Ok(()),
            "dropped" => {
                return Err(Failure::Failed(format!(
                    "this command read too slowly, and the supervisor dropped events: {}",
                    message.data
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The run that a message about a start names.
fn run(message: &Message) -> u64 {
    serde_json::from_slice::<Start>(message.data.as_bytes()).map_or(0, |start| start.run)
}

/// Prints an event or a start. Returns false if the reader of standard output has gone.
fn show(json: bool, message: &Message) -> Result<bool, Failure> {
    let line = match message.event.as_str() {
        _ if json => message.data.clone(),
        "start" => serde_json::from_slice(message.data.as_bytes())
            .map_or_else(|_| message.data.clone(), |start| start_line(&start)),
        _ => serde_json::from_slice(message.data.as_bytes())
            .map_or_else(|_| message.data.clone(), |event| line(&event)),
    };
    write_stdout(format!("{line}\n").as_bytes())
}

/// Time, number, event, exit status or outcome if there is one, and the number of the event that caused it. The event
/// that started a run is not called the cause of its end (X10).
fn line(event: &Event) -> String {
    let mut line = format!("{} {:>5}  {}", timestamps::to_millis(&event.time), event.id, event.name());
    if let Some(exit) = &event.exit {
        line += &format!(", {}", exit.short());
    }
    match (&event.outcome, &event.reason) {
        (Some(outcome), Some(reason)) => line += &format!(", {outcome}: {reason}"),
        (Some(outcome), None) if *outcome == event.code => {}
        (Some(outcome), None) => line += &format!(", {outcome}"),
        (None, _) => {}
    }
    if let Some(reason) = &event.ended_by {
        line += &format!(", ended by {reason}");
    }
    if let Some(cause) = event.cause {
        let word = if event.exit.is_some() { "run started by" } else { "caused by" };
        line += &format!("  ({word} {cause})");
    }
    sanitized(&line)
}

/// Time, job and process, and the number of the event that started the run.
fn start_line(start: &Start) -> String {
    let time = timestamps::to_millis(&start.time);
    let mut line = format!("{time} {:>5}  {} started, pid {}", "", start.source, start.pid);
    if start.restarts > 0 {
        line += &format!(", restart {}", start.restarts);
    }
    line += &match start.started_by {
        Some(event) => format!("  (by {event})"),
        None if start.tick && start.cron => "  (cron)".to_owned(),
        None if start.tick => "  (interval)".to_owned(),
        None => "  (by hand)".to_owned(),
    };
    sanitized(&line)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn x4_an_event_is_one_line_with_any_source_name() {
        let line = |event: Value| super::line(&serde_json::from_value(event).unwrap());
        let event = json!({ "id": 7, "time": "T", "source": "db", "code": "exitFailed", "cause": 6,
                            "exit": { "code": 137, "signal": "SIGKILL" } });
        assert_eq!(line(event), "T     7  db exitFailed, SIGKILL  (run started by 6)");
        let event = json!({ "id": 8, "time": "T", "source": "db", "code": "stopping", "cause": 6 });
        assert_eq!(line(event), "T     8  db stopping  (caused by 6)");
        let event = json!({ "id": 9, "time": "T", "source": "db", "code": "exitFailed", "cause": 6, "endedBy": "shutdown",
                            "exit": { "code": 143, "signal": "SIGTERM" } });
        assert_eq!(line(event), "T     9  db exitFailed, SIGTERM, ended by shutdown  (run started by 6)");
        let event = json!({ "id": 10, "time": "T", "source": "db", "code": "stopped", "outcome": "skipped", "reason": "why" });
        assert_eq!(line(event), "T    10  db stopped, skipped: why");
        let event = json!({ "id": 11, "time": "T", "source": "db", "code": "stopped", "outcome": "stopped" });
        assert_eq!(line(event), "T    11  db stopped");
        let event = json!({ "id": 1, "time": "T", "source": "global", "code": "startup", "cause": null, "exit": null });
        assert_eq!(line(event), "T     1  startup");
        let event = json!({ "id": 123_456, "time": "T", "source": "a\nb\u{1b}[2J", "code": "healthy" });
        assert_eq!(line(event), "T 123456  a\u{fffd}b\u{fffd}[2J healthy");
    }

    #[test]
    fn x10_the_start_of_a_run_is_one_line() {
        let line = |start: Value| super::start_line(&serde_json::from_value(start).unwrap());
        let start = json!({ "run": 3, "time": "T", "source": "db", "pid": 7, "startedBy": 6, "restarts": 0 });
        assert_eq!(line(start), "T        db started, pid 7  (by 6)");
        let start =
            json!({ "run": 3, "time": "T", "source": "db", "pid": 7, "startedBy": null, "restarts": 2 });
        assert_eq!(line(start), "T        db started, pid 7, restart 2  (by hand)");
        let start =
            json!({ "run": 3, "time": "T", "source": "db", "pid": 7, "startedBy": null, "tick": true });
        assert_eq!(line(start), "T        db started, pid 7  (interval)");
    }
}
