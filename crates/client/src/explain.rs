//! `explain`: why a job is in its current state (X5), or what is known about a watch, a rendered file or a lock (X9).
//! `containerpilot_core::report` builds the sentences.

use containerpilot_api::responses::{Explanation, Status};
use containerpilot_api::{SubjectKind, percent_encoded};
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::as_json;
use containerpilot_command_line::output::print;
use containerpilot_text::screen::sanitized;
use serde::Deserialize;

use super::client::{ApiResponse, Client};
use super::groups;

/// The part of an explanation of a watch, a file or a lock that is printed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Sentences {
    sentences: Vec<String>,
}

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
    let (kind, own_name) = name.split_once('.').unwrap_or_default();
    let others = [SubjectKind::Watch, SubjectKind::File, SubjectKind::Lock].into_iter();
    let mut others = others.filter(|other| other.word() == kind).map(|kind| (kind.plural(), own_name));
    let other = others.next().filter(|_| response.is_not_found());
    if let Some((path, name)) = other {
        response = client.get(&format!("/v3/{path}/{}/explain", percent_encoded(name)))?;
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
    if other.is_none() {
        return print_explanation(&response, json);
    }
    if json {
        return print(&format!("{}\n", response.text().trim_end()));
    }
    print_sentences(&response.json::<Sentences>()?.sentences)
}

fn print_explanation(response: &ApiResponse, json: bool) -> Result<(), Failure> {
    if json {
        return print(&format!("{}\n", response.text().trim_end()));
    }
    print_sentences(&response.json::<Explanation>()?.sentences)
}

fn print_sentences(sentences: &[String]) -> Result<(), Failure> {
    print(&sentences.iter().map(|line| sanitized(line) + "\n").collect::<String>())
}
