//! `events`: the events that the supervisor keeps, and with --follow the new ones.

use std::time::Instant;

use super::client::{Client, DEFAULT_TIMEOUT, Message};
use super::flags::Arguments;
use super::responses::Event;
use super::terminal::sanitized;
use super::{Failure, as_json, line_limit, timestamps, write_stdout};

pub(super) fn events(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let limit = line_limit(args)?;
    let client = Client::of(args)?;
    let mut last_id = String::new();
    let mut kept = Vec::new();
    let mut stream = client.messages("/v3/events?follow=false")?;
    // The kept events are sent at once; only new events may take any time.
    let until = Instant::now() + DEFAULT_TIMEOUT;
    while let Some(message) = stream.next(Some(until))? {
        if message.event.is_empty() {
            last_id.clone_from(&message.id);
            kept.push(message);
        }
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
            "" if !show(json, &message)? => return Ok(()),
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

/// Prints an event. Returns false if the reader of standard output has gone.
fn show(json: bool, message: &Message) -> Result<bool, Failure> {
    let line = match serde_json::from_str::<Event>(&message.data) {
        Ok(event) if !json => line(&event),
        _ => message.data.clone(),
    };
    write_stdout(format!("{line}\n").as_bytes())
}

/// Time, number, event, exit status if there is one, and the number of the event that caused it.
fn line(event: &Event) -> String {
    let mut line = format!("{} {:>5}  {}", timestamps::to_millis(&event.time), event.id, event.name());
    if let Some(exit) = &event.exit {
        line += &format!(", {}", exit.short());
    }
    if let Some(cause) = event.cause {
        line += &format!("  (caused by {cause})");
    }
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
        assert_eq!(line(event), "T     7  db exitFailed, SIGKILL  (caused by 6)");
        let event = json!({ "id": 1, "time": "T", "source": "global", "code": "startup", "cause": null, "exit": null });
        assert_eq!(line(event), "T     1  startup");
        let event = json!({ "id": 123_456, "time": "T", "source": "a\nb\u{1b}[2J", "code": "healthy" });
        assert_eq!(line(event), "T 123456  a\u{fffd}b\u{fffd}[2J healthy");
    }
}
