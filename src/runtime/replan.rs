//! What the loop does about a reload: it has the configuration loaded, gives the plan to the core, and lets everything
//! outside the core follow (R1–R4).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use containerpilot_core::Input;
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Level, Plan};
use containerpilot_core::request::Request;
use std::collections::BTreeMap;

use super::{Decide, Runtime, SETTLING};
use crate::control::Control;
use crate::runtime::query::QueryHandle;
use crate::runtime::reload::{Asker, Loaded, Step};
use crate::telemetry::Telemetry;

impl<D: Decide> Runtime<D> {
    /// Somebody wants a reload.
    #[inline(never)]
    pub(super) fn reload(&mut self, asker: Asker) {
        let set = self.set_by_hand();
        if let Some(message) = self.executor.reloads.ask(asker, &set) {
            self.executor.logs.entry(Level::Error, None, &message);
        }
    }

    /// A configuration was loaded: the core is given its plan, and the next who wait are served.
    pub(super) fn loaded(&mut self, loaded: Loaded) -> ControlFlow<u8> {
        self.will_have_settled();
        let id = self.executor.queries.number();
        let Step { entries, plan } = self.executor.reloads.loaded(&self.plan, loaded, id);
        for (level, message) in entries {
            self.executor.logs.entry(level, None, &message);
        }
        if let Some((id, plan)) = plan {
            self.tell(Input::Request { id, request: Request::Reload(plan) })?;
        }
        let set = self.set_by_hand();
        if let Some(message) = self.executor.reloads.proceed(&set) {
            self.executor.logs.entry(Level::Error, None, &message);
        }
        ControlFlow::Continue(())
    }

    /// What a reload has needed is given back when all that follows from it has happened.
    fn will_have_settled(&mut self) {
        self.spent_until = Some(Instant::now() + SETTLING);
    }

    /// The variables that were set by hand.
    fn set_by_hand(&self) -> BTreeMap<String, Option<String>> {
        self.core.core().map(|core| core.variables().set_by_hand().clone()).unwrap_or_default()
    }

    /// R3: from here on effects speak of another plan. What is under way is readdressed, and everything outside the core
    /// follows.
    #[inline(never)]
    pub(super) fn replanned(&mut self, plan: &Arc<Plan>, moves: &Moves) {
        self.will_have_settled();
        let old = std::mem::replace(&mut self.plan, Arc::clone(plan));
        self.executor.replanned(&old, plan, moves);
        let answers = std::mem::take(&mut self.answers);
        self.answers = answers.into_iter().filter_map(|input| moves.input(input)).collect();
        self.adopt_catalog();
        self.follow_telemetry();
        if let Err(why) = Control::follow(&mut self.control, &plan.control) {
            self.executor.logs.entry(Level::Error, None, &format!("reload: {why}; it stays as it is"));
        }
    }

    fn follow_telemetry(&mut self) {
        let now = self.telemetry.take();
        let wanted = self.plan.telemetry.clone();
        if now.is_none() && wanted.is_none() {
            return;
        }
        let (metrics, desk) = (self.metrics.clone(), QueryHandle::new(self.receiver.sender()));
        match self.net() {
            Ok(net) => self.telemetry = Telemetry::follow(now, wanted.as_ref(), net, metrics, desk),
            Err(error) => {
                let message =
                    format!("telemetry cannot be served: the network's thread cannot begin: {error}");
                self.executor.logs.entry(Level::Error, None, &message);
            }
        }
    }
}
