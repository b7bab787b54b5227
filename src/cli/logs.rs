//! `logs`: the last lines of jobs, and those to come.

use std::io::{ErrorKind, Write};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use super::answer::Look;
use super::client::{ByteStream, Client, DEFAULT_TIMEOUT, percent_encoded};
use super::flags::Arguments;
use super::{Failure, Lines};

/// More jobs than this are not followed at once: each is a connection of its own.
const MOST: usize = 32;

pub(super) fn logs(args: &Arguments) -> Result<(), Failure> {
    let follow = args.is_on("follow");
    let lines = Lines::of(args)?;
    let client = Client::of(args)?;
    let mut names: Vec<String> = args.rest.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        let status = client.get("/v3/status")?.json()?;
        let jobs = status.list("jobs").iter().filter(|job| job.text("role") != "telemetry");
        names = distinct(jobs);
    }
    let open = |name: &String| {
        let mut path = format!("/v3/jobs/{}/logs?follow={follow}", percent_encoded(name));
        if let Some(lines) = lines.0 {
            path += &format!("&lines={lines}");
        }
        client.bytes(&path).map_err(Failure::from)
    };
    // What is kept is there already; only what comes may take its time.
    let until = (!follow).then(|| Instant::now() + DEFAULT_TIMEOUT);
    if let [only] = names.as_slice() {
        return copy(open(only)?, None, until);
    }
    if follow && names.len() > MOST {
        return Err(Failure::Usage(format!(
            "at most {MOST} jobs can be followed at once: name those that matter"
        )));
    }
    if !follow {
        for name in &names {
            copy(open(name)?, Some(name), until)?;
        }
        return Ok(());
    }
    let streams = names.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let first = Mutex::new(Ok(()));
    std::thread::scope(|scope| {
        for (name, stream) in names.iter().zip(streams) {
            let first = &first;
            scope.spawn(move || {
                let ended = copy(stream, Some(name), None);
                if let (Err(failure), Ok(mut first)) = (ended, first.lock())
                    && first.is_ok()
                {
                    *first = Err(failure);
                }
            });
        }
    });
    first.into_inner().unwrap_or(Ok(()))
}

/// The names of all jobs; of several with one name, with the number that tells them apart.
fn distinct<'a>(jobs: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut seen = std::collections::BTreeMap::new();
    for job in jobs {
        let name = job.text("name");
        let count = seen.entry(name.to_owned()).or_insert(0_u32);
        *count += 1;
        names.push(if *count == 1 { name.to_owned() } else { format!("{name}:{count}") });
    }
    names
}

/// Copies lines to standard output, whole lines at a time, with the job's name before each if there are several.
fn copy(mut stream: ByteStream, name: Option<&str>, until: Option<Instant>) -> Result<(), Failure> {
    let mut line = Vec::new();
    loop {
        let piece = stream.next(until)?;
        let end = piece.is_none();
        let Some(name) = name else {
            match piece {
                Some(piece) if written(piece)? => continue,
                _ => return Ok(()),
            }
        };
        line.extend_from_slice(piece.unwrap_or_default());
        if end && !line.is_empty() && !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        let whole = memchr::memrchr(b'\n', &line).map_or(0, |at| at + 1);
        let mut out = Vec::new();
        for one in line.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b" | ");
            out.extend_from_slice(one);
        }
        line.drain(..whole);
        if !written(&out)? || end {
            return Ok(());
        }
    }
}

/// Whether anybody still reads.
fn written(bytes: &[u8]) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}
