//! `explain`: why a job is in its current state (X5), or what is known about a watch, a rendered file or a lock (X9).
//! `containerpilot_core::report` builds the sentences.

use containerpilot_api::responses::Status;
use containerpilot_api::{SubjectKind, percent_encoded};
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::as_json;
use containerpilot_command_line::output::print;
use containerpilot_views::explanation_text::{ExplainAnswer, Explainer, printed};

use super::client::Client;

pub(super) fn explain(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let name = args.rest.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    print(&printed(&mut Client::of(args), &name, json)?)
}

impl Explainer for Client {
    type Error = Failure;

    fn explain(&mut self, kind: SubjectKind, name: &str) -> Result<ExplainAnswer, Failure> {
        let response = self.get(&format!("/v3/{}/{}/explain", kind.plural(), percent_encoded(name)))?;
        Ok(match () {
            () if response.is_not_found() => ExplainAnswer::NotFound(response.reason()),
            () if response.is_conflict() => ExplainAnswer::NotOne(response.reason()),
            () => ExplainAnswer::Explained(response.success()?.body),
        })
    }

    fn status(&mut self) -> Result<Status, Failure> {
        self.get("/v3/status")?.json()
    }

    fn failed(&self, reason: String) -> Failure {
        Failure::Failed(reason)
    }
}
