//! Events on their way: queued, written down, and handed to those who wait for them (E2, W2, W7, W12).

use alloc::format;
use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::{EventId, JobIx};
use crate::input::ExitStatus;
use crate::plan::{Level, Role, Trigger};
use crate::state::dependency_graph::{Subscription, is_stop_event};
use crate::state::job::State;
use crate::state::journal::{Event, Origin};
use crate::state::supervisor::{Core, Phase};

impl Core {
    /// Queues an event. What is being handled is its cause.
    pub(crate) fn send(&mut self, origin: Origin, code: Code, exit: Option<ExitStatus>) {
        self.next_event += 1;
        let event =
            Event { id: EventId(self.next_event), cause: self.handling, at: self.now, origin, code, exit };
        self.journal.write(event);
        *self.counts.entry((origin, code)).or_default() += 1;
        self.queue.push_back(event);
    }

    /// Handles everything that is queued.
    #[inline(never)]
    pub(crate) fn drain_events(&mut self) {
        while let Some(event) = self.queue.pop_front() {
            self.handling = Some(event.id);
            self.dispatch(event);
        }
        self.handling = None;
    }

    fn dispatch(&mut self, event: Event) {
        self.log_event(&event);
        let audience = if event.code == Code::Startup { self.audience.clone() } else { None };
        let sees = |job: JobIx| audience.as_ref().is_none_or(|audience| audience.contains(&job));
        let subscribers = self.graph.subscribers(self.graph.key_of(event.origin), event.code);
        let subscribers = subscribers.iter().copied().filter(|one| sees(one.job));
        let is_first = |one: &Subscription| self.planned(one.job).role == Role::Coprocess;
        let (first, then): (Vec<_>, Vec<_>) = subscribers.partition(is_first);
        for Subscription { job, condition, undoes } in first {
            self.matched(job, condition, undoes, event);
        }
        // Periodic jobs run at startup, too (W4), and are started with all the others.
        if event.code == Code::Startup {
            for job in self.all_jobs() {
                if matches!(self.planned(job).when.trigger, Trigger::Interval(_)) && sees(job) {
                    self.first_turn(job, event);
                }
            }
        }
        for Subscription { job, condition, undoes } in then {
            self.matched(job, condition, undoes, event);
        }
        for job in audience.unwrap_or_default() {
            self.tell_what_holds(job, event);
        }
        if event.code == Code::Startup {
            self.audience = None;
        }
    }

    /// A job sees an event that it waits for.
    pub(crate) fn matched(&mut self, job: JobIx, condition: usize, undoes: bool, event: Event) {
        let lasting = matches!(self.planned(job).when.trigger, Trigger::All { .. });
        if lasting {
            let held = self.job(job).holds.iter().all(|holds| *holds);
            if let Some(holds) = self.job_mut(job).holds.get_mut(condition) {
                *holds = !undoes;
            }
            let holds = self.job(job).holds.iter().all(|holds| *holds);
            if held || !holds {
                return;
            }
        }
        self.trigger(job, event);
    }

    fn trigger(&mut self, job: JobIx, event: Event) {
        let spent = self.is_spent(job);
        let late = self.phase == Phase::Stopping;
        let state = self.job(job);
        if !state.is_up() || spent || self.phase == Phase::Killing {
            return;
        }
        // S3: during a shutdown only what belongs to it still runs, and once.
        if late && (!is_stop_event(event.code) || state.ran_at_shutdown) {
            return;
        }
        let busy = state.state();
        let generations = self.generations;
        let state = self.job_mut(job);
        state.triggered = true;
        state.triggered_after = generations;
        state.ran_at_shutdown |= late;
        match busy {
            // An event that comes between two runs need not wait, and takes no restart from anybody.
            State::Waiting | State::Delaying => self.start(job, Some(event)),
            State::Starting | State::Running => self.job_mut(job).pending_event = Some(event),
            State::Complete => {}
        }
    }

    fn log_event(&mut self, event: &Event) {
        // Spelling it out costs more than everything else in a step.
        if self.plan.logging.level > Level::Debug {
            return;
        }
        let mut message = format!("event {} {}", self.origin_name(event.origin), event.code);
        if let Some(cause) = event.cause.and_then(|cause| self.journal.event(cause)) {
            message += &format!(", because of {} {}", self.origin_name(cause.origin), cause.code);
        }
        self.log(Level::Debug, None, format_args!("{message}"));
    }
}
