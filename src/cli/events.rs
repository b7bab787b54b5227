//! `events`: what has happened, and what happens.

use std::io::{ErrorKind, Write};
use std::time::Instant;

use serde_json::Value;

use super::answer::{self, Look};
use super::client::{Client, DEFAULT_TIMEOUT, Message};
use super::flags::Arguments;
use super::terminal::visible;
use super::{Failure, Lines, as_json};

pub(super) fn events(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let lines = Lines::of(args)?;
    let client = Client::of(args)?;
    let mut since = String::new();
    let mut remembered = Vec::new();
    let mut stream = client.messages("/v3/events?follow=false")?;
    // What is remembered is there already; only what comes may take its time.
    let until = Instant::now() + DEFAULT_TIMEOUT;
    while let Some(message) = stream.next(Some(until))? {
        if message.event.is_empty() {
            since.clone_from(&message.id);
            remembered.push(message);
        }
    }
    let skipped = lines.0.map_or(0, |lines| remembered.len().saturating_sub(lines));
    for message in remembered.iter().skip(skipped) {
        if !show(json, message)? {
            return Ok(());
        }
    }
    if !args.is_on("follow") {
        return Ok(());
    }
    let path = if since.is_empty() { "/v3/events".to_owned() } else { format!("/v3/events?since={since}") };
    let mut stream = client.messages(&path)?;
    while let Some(message) = stream.next(None)? {
        match message.event.as_str() {
            "end" => return Ok(()),
            "" if !show(json, &message)? => return Ok(()),
            "dropped" => {
                return Err(Failure::Failed(format!(
                    "events were not read fast enough, so some are missing from here on {}",
                    message.data
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Prints an event; false when nobody reads any more.
fn show(json: bool, message: &Message) -> Result<bool, Failure> {
    let line = match serde_json::from_str::<Value>(&message.data) {
        Ok(event) if !json => line(&event),
        _ => message.data.clone(),
    };
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// An event in a line: when, its number, what, how a process ended, and the number of what caused it.
fn line(event: &Value) -> String {
    let id = event.whole("id").unwrap_or_default();
    let mut line = format!("{} {id:>5}  {}", answer::moment(event.text("time")), answer::event(event));
    if let Some(exit) = event.part("exit") {
        line += &format!(", {}", answer::exit(exit));
    }
    if let Some(cause) = event.whole("cause") {
        line += &format!("  (because of {cause})");
    }
    visible(&line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::line;

    #[test]
    fn x4_an_event_is_one_line_whatever_is_in_it() {
        let mut event = json!({ "id": 7, "time": "T", "source": "db", "code": "exitFailed", "cause": 6,
                                "exit": { "code": 137, "signal": "SIGKILL" } });
        assert_eq!(line(&event), "T     7  db exitFailed, SIGKILL  (because of 6)");
        event = json!({ "id": 1, "time": "T", "source": "global", "code": "startup", "cause": null, "exit": null });
        assert_eq!(line(&event), "T     1  startup");
        event = json!({ "id": 123_456, "time": "T", "source": "a\nb\u{1b}[2J", "code": "healthy" });
        assert_eq!(line(&event), "T 123456  a\u{fffd}b\u{fffd}[2J healthy");
    }
}
