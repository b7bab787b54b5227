//! Gives queued events to the jobs that wait for them (E2), and decides in which order: coprocesses first; at the
//! startup, the schedules of periodic jobs come next. `supervisor/events.rs` queues events.

use alloc::format;
use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::Fields;
use crate::plan::{Level, Role};
use crate::state::dependency_graph::Subscription;
use crate::state::journal::Event;
use crate::supervisor::Core;

impl Core {
    /// Dispatches every queued event, up to one that starts an action or ends the container.
    pub(crate) fn dispatch_events(&mut self) {
        while self.plan_state.actions.is_empty()
            && self.shutdown_due.is_none()
            && let Some(event) = self.queue.pop_front()
        {
            self.current_event = Some(event.id);
            self.dispatch(event);
        }
        self.current_event = None;
    }

    fn dispatch(&mut self, event: Event) {
        self.log_event(&event);
        let is_startup = event.code == Code::Startup;
        let only_for = if is_startup { self.plan_state.startup_only_for.clone() } else { None };
        let sees = |job: JobIx| only_for.as_ref().is_none_or(|jobs| jobs.contains(&job));
        let subscribers = self.subscribers(&event).into_iter();
        let is_coprocess = |one: &Subscription| self.planned(one.job).role == Role::Coprocess;
        let (coprocesses, others): (Vec<_>, Vec<_>) =
            subscribers.filter(|one| sees(one.job)).partition(is_coprocess);
        for subscription in coprocesses {
            self.matched(subscription, event);
        }
        // The schedules of periodic jobs start at startup, too (W4, W15).
        if is_startup {
            for job in self.all_jobs().filter(|job| sees(*job)) {
                if self.planned(job).when.ticks_from_startup() {
                    self.first_tick(job, event);
                }
            }
        }
        for subscription in others {
            self.matched(subscription, event);
        }
        for job in only_for.unwrap_or_default() {
            self.send_events_that_hold(job, event);
        }
        if is_startup {
            self.plan_state.startup_only_for = None;
        }
    }

    fn log_event(&mut self, event: &Event) {
        // Formatting costs more than the rest of a step, so it is skipped where the level is not written.
        if self.plan().logging.level > Level::Debug {
            return;
        }
        let mut message = format!("event {} {}", self.origin_name(event.origin), event.code);
        let mut fields = Fields::from(event.code);
        if let Some(cause) = event.cause.and_then(|cause| self.journal.event(cause)) {
            let word = if event.exit().is_some() { "run started by" } else { "cause:" };
            let cause = format!("{} {}", self.origin_name(cause.origin), cause.code);
            message += &format!(", {word} {cause}");
            fields = fields.cause(cause);
        }
        self.log(Level::Debug, None, fields, format_args!("{message}"));
    }
}
