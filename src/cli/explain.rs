//! `explain`: why a job is in its current state (X5), or what a watch knows (X9). `containerpilot_core::report` builds the
//! sentences.

use super::client::{Client, Response};
use super::flags::Arguments;
use super::responses::{Explanation, Status, WatchExplanation};
use super::terminal::sanitized;
use super::{Failure, as_json, groups, print};
use crate::net::percent_encoded;

pub(super) fn explain(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let name = args.rest.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let client = Client::of(args);
    for name in groups::expanded(&client, &[&name])? {
        one(&client, &name, json)?;
    }
    Ok(())
}

fn one(client: &Client, name: &str, json: bool) -> Result<(), Failure> {
    let mut response = client.get(&format!("/v3/jobs/{}/explain", percent_encoded(name)))?;
    let watch = name.strip_prefix("watch.").filter(|_| response.is_not_found());
    if let Some(watch) = watch {
        response = client.get(&format!("/v3/watches/{}/explain", percent_encoded(watch)))?;
    }
    if response.is_conflict() {
        // It may be a job with replicas (W20).
        let status: Status = client.get("/v3/status")?.json()?;
        let replicas = status.jobs.iter().filter(|job| job.replica_of.as_deref() == Some(name));
        let replicas: Vec<&str> = replicas.map(|job| job.name.as_str()).collect();
        for replica in &replicas {
            let path = format!("/v3/jobs/{}/explain", percent_encoded(replica));
            print_explanation(&client.get(&path)?.success()?, json)?;
        }
        if !replicas.is_empty() {
            return Ok(());
        }
    }
    let response = response.success()?;
    if watch.is_none() {
        return print_explanation(&response, json);
    }
    if json {
        return print(&format!("{}\n", response.text().trim_end()));
    }
    print_sentences(&response.json::<WatchExplanation>()?.sentences)
}

fn print_explanation(response: &Response, json: bool) -> Result<(), Failure> {
    if json {
        return print(&format!("{}\n", response.text().trim_end()));
    }
    print_sentences(&response.json::<Explanation>()?.sentences)
}

fn print_sentences(sentences: &[String]) -> Result<(), Failure> {
    print(&sentences.iter().map(|line| sanitized(line) + "\n").collect::<String>())
}
