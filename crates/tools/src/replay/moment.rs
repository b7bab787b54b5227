//! The state at a time of a recording, as the commands of a running supervisor see it.

use std::sync::Arc;
use std::time::SystemTime;

use containerpilot_api::SubjectKind;
use containerpilot_api::responses::Status;
use containerpilot_command_line::failure::Failure;
use containerpilot_core::catalog::connectivity::{Known, Trouble};
use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{Catalog, Plan, Service};
use containerpilot_core::{Core, Effect, Input, Phase, Time};
use containerpilot_process::orphans::RunProcesses;
use containerpilot_recording::{Recording, Replay};
use containerpilot_views::answers;
use containerpilot_views::catalog::{CatalogKnowledge, CatalogReport, ConsulReport, DesiredServices};
use containerpilot_views::clock::WallClock;
use containerpilot_views::explanation::{Explained, explain};
use containerpilot_views::explanation_text::{ExplainAnswer, Explainer};
use containerpilot_views::lookup::{LookupError, Subject};
use containerpilot_views::snapshot::Snapshot;

use super::clock::Clock;
use super::player::play;

/// What was known of the catalog. The answers of Consul are not in a recording; the embedded catalog has what the core
/// has decided.
#[derive(Debug, Default)]
pub(super) struct RecordedCatalog {
    /// With the time of each change that was played.
    services: DesiredServices,
    is_consul: bool,
}

impl RecordedCatalog {
    /// Follows the effects of a step. `plan` is that of the core before the step.
    pub(super) fn follow(&mut self, plan: Arc<Plan>, now: Time, effects: &[Effect]) {
        let mut plan = plan;
        for effect in effects {
            match effect {
                Effect::Advertise { job, desired } => {
                    let service = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref());
                    if let Some(service) = service {
                        self.services.set(&service.id, *desired, Some(now));
                    }
                }
                Effect::PlanReplaced { plan: next, .. } => {
                    self.services.forget_absent();
                    plan = Arc::clone(next);
                }
                _ => {}
            }
        }
    }

    /// What is known in this state of the core. Since when is not known of what the recording began with.
    pub(super) fn complete(&mut self, core: &Core) {
        self.is_consul = matches!(core.plan().catalog, Catalog::Consul(_));
        for (nth, job) in core.plan().jobs.iter().enumerate() {
            if let Some(service) = &job.service {
                self.services.set(&service.id, core.status(JobIx::at(nth)).desired, None);
            }
        }
    }
}

impl CatalogKnowledge for RecordedCatalog {
    fn consul(&self) -> Option<ConsulReport> {
        self.is_consul.then(ConsulReport::default)
    }

    fn known(&self, service: &Service) -> Option<Known> {
        (!self.is_consul).then(|| self.services.known(service))
    }

    fn watch_trouble(&self, _: &str) -> Option<Trouble> {
        None
    }

    fn lock_trouble(&self, _: &str) -> Option<Trouble> {
        None
    }
}

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
