//! The loop's part of a reload: have the configuration loaded, pass the plan to the core, and apply it outside of the core
//! (R1–R4).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use containerpilot_core::Input;
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Level, Plan};
use containerpilot_core::request::Request;

use super::{Decider, Runtime, StartupError};
use crate::control::Control;
use crate::runtime::query::QueryHandle;
use crate::runtime::reload::{LoadResult, Loaded, ReloadRequest};
use crate::telemetry::Telemetry;

impl<D: Decider> Runtime<D> {
    /// Starts a reload, or queues it after the running one.
    pub(super) fn reload(&mut self, request: ReloadRequest) {
        let overrides = self.environment_overrides();
        if let Some(error) = self.executor.reloads.request(request, &overrides) {
            self.log(Level::Error, &error);
        }
    }

    /// Passes a loaded plan to the core, and starts the next load if one is requested.
    pub(super) fn loaded(&mut self, loaded: Loaded) -> ControlFlow<u8> {
        let id = self.executor.queries.next_id();
        let LoadResult { entries, plan } = self.executor.reloads.loaded(&self.plan, loaded, id);
        for (level, message) in entries {
            self.log(level, &message);
        }
        if let Some((id, plan)) = plan {
            self.handle(Input::Request { id, request: Request::Reload(plan) })?;
        }
        let overrides = self.environment_overrides();
        if let Some(error) = self.executor.reloads.start_next(&overrides) {
            self.log(Level::Error, &error);
        }
        ControlFlow::Continue(())
    }

    /// The variables that `putenv` has set or unset.
    fn environment_overrides(&self) -> BTreeMap<String, Option<String>> {
        self.core.core().map(|core| core.variables().set_by_putenv().clone()).unwrap_or_default()
    }

    /// R3: effects refer to the new plan from now on. Pending results are renumbered, and everything outside of the core
    /// follows.
    pub(super) fn replanned(&mut self, plan: &Arc<Plan>, moves: &Moves) {
        let old = std::mem::replace(&mut self.plan, Arc::clone(plan));
        self.executor.replanned(&old, plan, moves);
        let results = std::mem::take(&mut self.results);
        self.results = results.into_iter().filter_map(|input| moves.input(input)).collect();
        self.follow_catalog();
        self.follow_telemetry();
        if let Err(error) = Control::follow(&mut self.control, &plan.control) {
            self.log(Level::Error, &format!("reload: {error}; keeping the old control socket"));
        }
    }

    fn follow_telemetry(&mut self) {
        let current = self.telemetry.take();
        let wanted = self.plan.telemetry.clone();
        if current.is_none() && wanted.is_none() {
            return;
        }
        let (metrics, queries) = (self.metrics.clone(), QueryHandle::new(self.receiver.sender()));
        match self.net() {
            Ok(net) => self.telemetry = Telemetry::follow(current, wanted.as_ref(), net, metrics, queries),
            Err(error) => {
                let error = StartupError::Network(error);
                self.log(Level::Error, &format!("cannot serve telemetry: {error}"));
            }
        }
    }
}
