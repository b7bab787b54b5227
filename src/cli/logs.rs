//! `logs`: the last lines that jobs wrote, and with --follow the new ones.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

use super::client::{ByteStream, Client, DEFAULT_TIMEOUT};
use super::flags::Arguments;
use super::responses::Status;
use super::{Failure, line_limit, write_stdout};
use crate::net::percent_encoded;

/// How many jobs can be followed at once; each takes a connection and a thread.
const MAX_FOLLOWED: usize = 32;

pub(super) fn logs(args: &Arguments) -> Result<(), Failure> {
    let follow = args.is_on("follow");
    let limit = line_limit(args)?;
    let client = Client::of(args)?;
    let mut names: Vec<String> = args.rest.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        let status: Status = client.get("/v3/status")?.json()?;
        let jobs = status.jobs.into_iter().filter(|job| job.role != "telemetry");
        // Jobs with the same name share their lines.
        let mut seen = BTreeSet::new();
        names = jobs.map(|job| job.name).filter(|name| seen.insert(name.clone())).collect();
    }
    let open = |name: &String| {
        let mut path = format!("/v3/jobs/{}/logs?follow={follow}", percent_encoded(name));
        if let Some(limit) = limit {
            path += &format!("&lines={limit}");
        }
        client.bytes(&path).map_err(Failure::from)
    };
    // The kept lines are sent at once; only new lines may take any time.
    let until = (!follow).then(|| Instant::now() + DEFAULT_TIMEOUT);
    if let [only] = names.as_slice() {
        return copy(open(only)?, None, until);
    }
    if follow && names.len() > MAX_FOLLOWED {
        return Err(Failure::Usage(format!(
            "`logs --follow` takes at most {MAX_FOLLOWED} jobs: name the ones to follow"
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
                let result = copy(stream, Some(name), None);
                if let (Err(failure), Ok(mut first)) = (result, first.lock())
                    && first.is_ok()
                {
                    *first = Err(failure);
                }
            });
        }
    });
    first.into_inner().unwrap_or(Ok(()))
}

/// Copies a log to standard output. With a name, it is copied line by line with the name in front.
fn copy(mut stream: ByteStream, name: Option<&str>, until: Option<Instant>) -> Result<(), Failure> {
    let mut line = Vec::new();
    loop {
        let piece = stream.next(until)?;
        let end = piece.is_none();
        let Some(name) = name else {
            match piece {
                Some(piece) if write_stdout(piece)? => continue,
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
        if !write_stdout(&out)? || end {
            return Ok(());
        }
    }
}
