//! The state at a time of a recording, as the commands of a running supervisor see it.

use std::time::SystemTime;

use containerpilot_api::SubjectKind;
use containerpilot_api::responses::Status;
use containerpilot_command_line::failure::Failure;
use containerpilot_core::{Core, Input, Phase, Time};
use containerpilot_process::orphans::RunProcesses;
use containerpilot_recording::{Recording, Replay};
use containerpilot_views::answers;
use containerpilot_views::catalog::CatalogReport;
use containerpilot_views::clock::WallClock;
use containerpilot_views::explanation::{Explained, explain};
use containerpilot_views::explanation_text::{ExplainAnswer, Explainer};
use containerpilot_views::lookup::{LookupError, Subject};
use containerpilot_views::snapshot::Snapshot;

use super::catalog::RecordedCatalog;
use super::clock::Clock;
use super::player::play;

/// The state at a time.
pub(super) struct Moment {
    pub(super) core: Core,
    catalog: RecordedCatalog,
    now: Time,
    clock: WallClock,
    version: String,
    /// What the user should know about the time that was asked for.
    pub(super) note: Option<String>,
}

impl Moment {
    pub(super) fn new(recording: &Recording<'_>, clock: &Clock, at: SystemTime) -> Result<Self, Failure> {
        let (mut replay, mut last, mut later) = (Replay::new(recording), None, None);
        let mut catalog = RecordedCatalog::default();
        while later.is_none() {
            let step = play(&mut replay, clock, |core, now, input, effects| {
                if clock.at(now) > at {
                    later = Some(core.clone());
                } else {
                    last = Some(now);
                    let plan = core.shared_plan();
                    core.step(now, input, effects);
                    catalog.follow(plan, now, effects);
                }
            })?;
            if step.is_none() {
                break;
            }
        }
        let note = match last.map(|last| clock.at(last)) {
            Some(last) if later.is_none() && last < at => {
                Some(format!("note: this is the last state in the recording, of {}", clock.text(last)))
            }
            _ => None,
        };
        let Some((mut core, last)) = later.or_else(|| replay.core().cloned()).zip(last) else {
            let begin = clock.text(clock.start());
            return Err(Failure::Failed(format!("the recording begins later, at {begin}")));
        };
        // As before every answer of a supervisor: what has passed since then counts.
        let now = last + at.duration_since(clock.at(last)).unwrap_or_default();
        if core.phase() != Phase::Exited {
            let (plan, mut effects) = (core.shared_plan(), Vec::new());
            core.step(now, Input::Tick, &mut effects);
            catalog.follow(plan, now, &effects);
        }
        catalog.complete(&core);
        let (clock, version) = (WallClock(clock.zero(now)), recording.version.to_owned());
        Ok(Self { core, catalog, now, clock, version, note })
    }

    /// The answer of `GET /v3/status`.
    pub(super) fn answer(&self) -> String {
        answers::line(&self.state())
    }

    fn state(&self) -> Status {
        let catalog = CatalogReport::new(&self.catalog, self.core.plan());
        let snapshot = Snapshot::new(&self.core, self.clock, catalog, RunProcesses::default());
        answers::status(&snapshot, &self.version)
    }
}

impl Explainer for Moment {
    type Error = Failure;

    fn explain(&mut self, kind: SubjectKind, name: &str) -> Result<ExplainAnswer, Failure> {
        let subject = Subject { kind, name: name.to_owned() };
        Ok(match explain(&self.core, &self.catalog, &subject, None) {
            Ok(subject) => {
                let explained = Explained { subject, now: self.now, clock: self.clock };
                ExplainAnswer::Explained(answers::explanation(explained, Vec::new()).into_bytes())
            }
            Err(error @ LookupError::NotFound(_)) => ExplainAnswer::NotFound(error.words(kind, name)),
            Err(error) => ExplainAnswer::NotOne(error.words(kind, name)),
        })
    }

    fn status(&mut self) -> Result<Status, Failure> {
        Ok(self.state())
    }

    fn failed(&self, reason: String) -> Failure {
        Failure::Failed(reason)
    }
}
