//! `logs`: the last lines that jobs wrote, and with --follow the new ones.
//!
//! The lines of one job are copied as they are. For several jobs, and for --timestamps and --since, the supervisor
//! sends the time of each line too: the kept lines of all jobs are sorted by it (X11), and new ones are printed as they
//! arrive.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Instant, SystemTime};

use containerpilot_api::percent_encoded;
use containerpilot_api::responses::Status;
use containerpilot_api::timestamps;
use containerpilot_api::timestamps::rfc3339;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::invalid_value;
use containerpilot_command_line::options::line_limit;
use containerpilot_command_line::options::parse_duration;
use containerpilot_command_line::output::write_stdout;

use super::client::{ByteStream, Client, DEFAULT_TIMEOUT};
use super::groups;
use containerpilot_core::sort_by;

/// How many jobs can be followed at once; each takes a connection and a thread.
const MAX_FOLLOWED: usize = 32;

pub(super) fn logs(args: &Arguments) -> Result<(), Failure> {
    let follow = args.is_on("follow");
    let limit = line_limit(args)?;
    let since = since(args, SystemTime::now())?;
    let client = Client::of(args);
    let words: Vec<String> = args.rest.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut names = groups::expanded(&client, &words)?;
    if names.is_empty() {
        let status: Status = client.get("/v3/status")?.json()?;
        let jobs = status.jobs.into_iter().filter(|job| job.role != "telemetry");
        // Jobs with the same name share their lines.
        let mut seen = BTreeSet::new();
        names = jobs.map(|job| job.name).filter(|name| seen.insert(name.clone())).collect();
    } else if names.len() < MAX_FOLLOWED {
        // A job with replicas has the lines of all of them (W20).
        let status: Status = client.get("/v3/status")?.json()?;
        let replicas = |name: &String| -> Vec<String> {
            let jobs = status.jobs_named(name).unwrap_or_default();
            let replicas = jobs.into_iter().filter(|job| job.replica_of.as_ref() == Some(name));
            let replicas: Vec<String> = replicas.map(|job| job.name.clone()).collect();
            if replicas.is_empty() { vec![name.clone()] } else { replicas }
        };
        names = names.iter().flat_map(replicas).collect();
    }
    let format = Format { times: args.is_on("timestamps"), names: names.len() != 1, since };
    let timed = format.times || format.names || format.since.is_some();
    let open = |name: &String| {
        let mut path = format!("/v3/jobs/{}/logs?follow={follow}&times={timed}", percent_encoded(name));
        if let Some(limit) = limit {
            path += &format!("&lines={limit}");
        }
        client.bytes(&path).map_err(Failure::from)
    };
    // The kept lines are sent at once; only new lines may take any time.
    let until = (!follow).then(|| Instant::now() + DEFAULT_TIMEOUT);
    if let [only] = names.as_slice()
        && !timed
    {
        return copy(open(only)?, until);
    }
    if follow && names.len() > MAX_FOLLOWED {
        return Err(Failure::Usage(format!(
            "`logs --follow` takes at most {MAX_FOLLOWED} jobs: name the ones to follow"
        )));
    }
    if !follow {
        let mut lines = Vec::new();
        for name in &names {
            let job: Arc<str> = name.as_str().into();
            read(open(name)?, until, |line| lines.push(Line::new(&job, line)))?;
        }
        return format.print_sorted(lines).map(drop);
    }
    let streams = names.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let (sender, received) = mpsc::channel();
    for (name, stream) in names.iter().zip(streams) {
        let (name, sender): (Arc<str>, Sender<Received>) = (name.as_str().into(), sender.clone());
        // The threads end with the command, which does not wait for them.
        std::thread::spawn(move || {
            // Sending fails only when the command ends.
            let end = read(stream, None, |line| drop(sender.send(Received::Line(Line::new(&name, line)))));
            drop(sender.send(Received::End(end)));
        });
    }
    drop(sender);
    follow_all(&format, names.len(), &received)
}

/// What a thread has read.
enum Received {
    Line(Line),
    End(Result<(), Failure>),
}

/// Prints the kept lines of all jobs, sorted by time, and then new lines as they arrive.
fn follow_all(format: &Format, jobs: usize, received: &Receiver<Received>) -> Result<(), Failure> {
    // The kept lines, until those of all jobs are there. An empty line, without a time, follows those of each job.
    let mut kept = Some(Vec::new());
    let mut complete = 0;
    let mut outcome = Ok(());
    for received in received {
        let mut new = Vec::new();
        match (received, &mut kept) {
            (Received::Line(line), Some(_)) if line.time.is_empty() && line.text == b"\n" => complete += 1,
            (Received::Line(line), Some(kept)) => kept.push(line),
            (Received::Line(line), None) => new.push(line),
            (Received::End(end), _) => {
                complete += 1;
                outcome = outcome.and(end);
            }
        }
        if complete >= jobs {
            new.splice(..0, kept.take().unwrap_or_default());
        }
        if !new.is_empty() && !format.print_sorted(new)? {
            return Ok(());
        }
    }
    outcome
}

/// A line of a job.
struct Line {
    job: Arc<str>,
    /// In RFC 3339 with a fixed width, so that times can be compared as text; empty for a message of the supervisor.
    time: String,
    /// With its newline.
    text: Vec<u8>,
}

impl Line {
    /// Splits the time and the text of a line.
    fn new(job: &Arc<str>, line: &[u8]) -> Self {
        let job = Arc::clone(job);
        let at = line.iter().position(|byte| *byte == b' ').unwrap_or(0);
        let (time, text) = line.split_at(at);
        match std::str::from_utf8(time) {
            Ok(time) if timestamps::is_timestamp(time) => {
                Self { job, time: time.to_owned(), text: text.get(1..).unwrap_or_default().to_vec() }
            }
            _ => Self { job, time: String::new(), text: line.to_vec() },
        }
    }
}

/// How lines are printed.
struct Format {
    times: bool,
    names: bool,
    /// Only lines from this time on.
    since: Option<String>,
}

impl Format {
    /// Prints lines in the order of their times. Returns false if the reader of standard output has gone.
    fn print_sorted(&self, mut lines: Vec<Line>) -> Result<bool, Failure> {
        sort_by(&mut lines, |a, b| a.time.cmp(&b.time));
        let mut out = Vec::new();
        for line in &lines {
            if self.since.as_ref().is_some_and(|since| !line.time.is_empty() && line.time < *since) {
                continue;
            }
            if self.times && !line.time.is_empty() {
                out.extend_from_slice(timestamps::to_millis(&line.time).as_bytes());
                out.push(b' ');
            }
            if self.names {
                out.extend_from_slice(line.job.as_bytes());
                out.extend_from_slice(b" | ");
            }
            out.extend_from_slice(&line.text);
        }
        write_stdout(&out)
    }
}

/// The value of --since as a time.
fn since(args: &Arguments, now: SystemTime) -> Result<Option<String>, Failure> {
    let Some(text) = args.value("since") else { return Ok(None) };
    let time = match timestamps::parse(text) {
        Some(time) => time,
        None => {
            let wrong = |_| {
                let why = "neither a duration such as 5m nor a time such as 2026-11-15T08:00:00Z";
                invalid_value("since", text, why)
            };
            let ago = parse_duration("since", text).map_err(wrong)?;
            now.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH)
        }
    };
    Ok(Some(rfc3339(time)))
}

/// Copies a log to standard output.
fn copy(mut stream: ByteStream, until: Option<Instant>) -> Result<(), Failure> {
    while let Some(piece) = stream.next(until)? {
        if !write_stdout(piece)? {
            break;
        }
    }
    Ok(())
}

/// Reads a log line by line. Each line has its newline.
fn read(mut stream: ByteStream, until: Option<Instant>, mut each: impl FnMut(&[u8])) -> Result<(), Failure> {
    let mut rest = Vec::new();
    loop {
        let piece = stream.next(until)?;
        let end = piece.is_none();
        rest.extend_from_slice(piece.unwrap_or_default());
        if end && !rest.is_empty() && !rest.ends_with(b"\n") {
            rest.push(b'\n');
        }
        let whole = memchr::memrchr(b'\n', &rest).map_or(0, |at| at + 1);
        rest.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n').for_each(&mut each);
        rest.drain(..whole);
        if end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x11_since_is_a_duration_or_a_time() {
        let now = timestamps::parse("2026-11-15T08:00:00Z").unwrap();
        let since = |text: &str| {
            let args = containerpilot_command_line::flags::parse(
                containerpilot_command_line::table::LOGS.flags,
                &["-since", text],
            )
            .unwrap();
            super::since(&args, now).map(Option::unwrap).map_err(|failure| failure.to_string())
        };
        assert_eq!(since("5m").unwrap(), "2026-11-15T07:55:00.000000000Z");
        assert_eq!(since("90").unwrap(), "2026-11-15T07:58:30.000000000Z");
        assert_eq!(since("2026-11-15T09:00:00.5+02:00").unwrap(), "2026-11-15T07:00:00.500000000Z");
        for wrong in ["", "yesterday", "-5m", "2026-11-15", "2026-13-15T08:00:00Z"] {
            assert!(since(wrong).unwrap_err().contains("neither a duration such as 5m"), "{wrong}");
        }
    }

    #[test]
    fn x11_a_line_has_a_time_and_a_text() {
        let line = Line::new(&"a".into(), b"2026-11-15T07:55:00.000000000Z x y\n");
        assert_eq!((line.time.as_str(), line.text), ("2026-11-15T07:55:00.000000000Z", b"x y\n".to_vec()));
        let line = Line::new(&"a".into(), b"containerpilot: too slow\n");
        assert_eq!((line.time.as_str(), line.text), ("", b"containerpilot: too slow\n".to_vec()));
    }
}
