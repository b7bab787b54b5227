//! What `explain` prints: why something is in its current state, or what is known about it.

use containerpilot_api::SubjectKind;
use containerpilot_api::job_names::is_group;
use containerpilot_api::responses::Status;
use containerpilot_text::screen::sanitized;
use serde::Deserialize;

/// Answers `explain`: a supervisor, or a recording of one.
pub trait Explainer {
    type Error;

    /// The answer of `GET /v3/jobs/NAME/explain`, or the same for watches, files and locks.
    fn explain(&mut self, kind: SubjectKind, name: &str) -> Result<ExplainAnswer, Self::Error>;

    /// The state of everything.
    fn status(&mut self) -> Result<Status, Self::Error>;

    /// The error with this reason, such as that a name means nothing.
    fn failed(&self, reason: String) -> Self::Error;
}

/// Why something is in its current state.
#[derive(Debug)]
pub enum ExplainAnswer {
    /// A line of JSON.
    Explained(Vec<u8>),
    /// Nothing has this name. The reason is a sentence.
    NotFound(String),
    /// The name does not identify one thing. The reason is a sentence.
    NotOne(String),
}

/// The part of an explanation that is printed as text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Sentences {
    sentences: Vec<String>,
}

/// What is printed for a name: of a job, of `watch.NAME`, `file.NAME` or `lock.NAME`, of a job with replicas (W20), or
/// of a group (W22).
pub fn printed<E: Explainer>(explainer: &mut E, name: &str, json: bool) -> Result<String, E::Error> {
    if !is_group(name) {
        return one(explainer, name, json);
    }
    let members = explainer.status()?.expanded(&[name]);
    let members = members.map_err(|error| explainer.failed(error.to_string()))?;
    members.iter().map(|member| one(explainer, member, json)).collect()
}

fn one<E: Explainer>(explainer: &mut E, name: &str, json: bool) -> Result<String, E::Error> {
    let mut answer = explainer.explain(SubjectKind::Job, name)?;
    let (prefix, own_name) = name.split_once('.').unwrap_or_default();
    let mut others = [SubjectKind::Watch, SubjectKind::File, SubjectKind::Lock].into_iter();
    if let ExplainAnswer::NotFound(_) = answer
        && let Some(kind) = others.find(|kind| kind.word() == prefix)
    {
        answer = explainer.explain(kind, own_name)?;
    }
    match answer {
        ExplainAnswer::Explained(response) => text(explainer, &response, json),
        ExplainAnswer::NotFound(reason) => Err(explainer.failed(reason)),
        ExplainAnswer::NotOne(reason) => {
            // It may be a job with replicas.
            let status = explainer.status()?;
            let replicas = status.jobs.iter().filter(|job| job.replica_of.as_deref() == Some(name));
            let mut all = String::new();
            for replica in replicas {
                match explainer.explain(SubjectKind::Job, &replica.name)? {
                    ExplainAnswer::Explained(response) => all += &text(explainer, &response, json)?,
                    ExplainAnswer::NotFound(reason) | ExplainAnswer::NotOne(reason) => {
                        return Err(explainer.failed(reason));
                    }
                }
            }
            if all.is_empty() { Err(explainer.failed(reason)) } else { Ok(all) }
        }
    }
}

fn text<E: Explainer>(explainer: &E, response: &[u8], json: bool) -> Result<String, E::Error> {
    if json {
        return Ok(format!("{}\n", String::from_utf8_lossy(response).trim_end()));
    }
    let sentences = serde_json::from_slice::<Sentences>(response)
        .map_err(|error| explainer.failed(format!("unexpected response from the supervisor: {error}")))?;
    Ok(sentences.sentences.iter().map(|line| sanitized(line) + "\n").collect())
}
