//! The loop's part of a reload: have the configuration loaded, pass the plan to the core, and apply it outside of the
//! core (R1–R4).

use std::ops::ControlFlow;
use std::sync::Arc;

use containerpilot_core::Input;
use containerpilot_core::effect::Exit;
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Level, Plan};
use containerpilot_core::request::Request;
use containerpilot_core::variables::Overrides;

use super::{Decider, Runtime};
use crate::control::ControlServer;
use crate::messages::reload::{FinishedLoad, ReloadRequest};
use crate::runtime::reload::LoadResult;

impl<D: Decider> Runtime<D> {
    /// Starts a reload, or queues it after the running one.
    pub(super) fn reload(&mut self, request: ReloadRequest) {
        let overrides = self.environment_overrides();
        if let Some(error) = self.executor.reloads.request(request, &overrides) {
            self.log(Level::Error, &error);
        }
    }

    /// Passes a loaded plan to the core, and starts the next load if one is requested.
    pub(super) fn loaded(&mut self, loaded: FinishedLoad) -> ControlFlow<Exit> {
        let id = self.executor.queries.next_id();
        let Some(core) = self.core.core() else { return ControlFlow::Continue(()) };
        let LoadResult { entries, plan } = self.executor.reloads.loaded(core, loaded, id);
        for (level, message) in entries {
            self.log(level, &message);
        }
        if let Some((id, plan)) = plan {
            if plan.needs_clock() {
                // The last reading may be long ago.
                self.handle(self.clock.reading())?;
            }
            self.handle(Input::Request { id, request: Request::Reload(plan) })?;
        }
        self.start_next_load();
        ControlFlow::Continue(())
    }

    /// Gives up a load that has taken too long, and starts the next one if one is requested.
    pub(super) fn give_up_slow_load(&mut self) {
        let Some(error) = self.executor.reloads.give_up() else { return };
        self.log(Level::Error, &error);
        self.start_next_load();
    }

    fn start_next_load(&mut self) {
        let overrides = self.environment_overrides();
        if let Some(error) = self.executor.reloads.start_next(&overrides) {
            self.log(Level::Error, &error);
        }
    }

    /// The variables that `putenv` has set or unset.
    fn environment_overrides(&self) -> Arc<Overrides> {
        self.core.core().map(|core| Arc::clone(core.variables().overrides())).unwrap_or_default()
    }

    /// R3: effects refer to the new plan from now on. Pending results are renumbered, and everything outside of the
    /// core follows.
    pub(super) fn replanned(&mut self, plan: &Arc<Plan>, moves: &Moves) {
        let old = std::mem::replace(&mut self.plan, Arc::clone(plan));
        self.executor.replanned(&old, plan, moves);
        let results = std::mem::take(&mut self.results);
        self.results = results.into_iter().filter_map(|input| moves.input(input)).collect();
        self.recording.follow(&plan.record);
        self.follow_clock();
        self.follow_catalog();
        self.follow_watches();
        self.follow_telemetry();
        self.follow_export();
        if let Err(error) = ControlServer::follow(&mut self.control, &plan.control) {
            self.log(Level::Error, &format!("reload: {error}; keeping the old control socket"));
        }
        self.executor.spawner.set_socket(self.control.as_ref().map(ControlServer::path));
    }
}
