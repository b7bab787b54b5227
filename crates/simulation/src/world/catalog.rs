//! The catalog: one that accepts every change at once, or a fake Consul agent for each service.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::reconcile::Settings;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{JobIx, WatchIx};
use containerpilot_core::input::{Answer, Input, Instance};
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Catalog, Job, Plan, Service, Status};

use super::agent::{FakeAgent, earliest};
use super::script::{Script, WatchScript};
use super::{Scheduled, World};

/// The service of one job in the catalog.
pub(super) struct CatalogSlot {
    agent: Option<FakeAgent>,
    /// The status that watches and the timeline know of.
    status: Option<Status>,
    /// When the agent was last called, as a number that only grows.
    called: u64,
    /// Where it is in the agenda.
    due: Option<Due>,
}

/// When an agent does something, and its rank among those of the same instant.
type Due = (Time, u64);

/// The agents that will do something, in order. Each has the index of its slot; those of removed jobs come last.
pub(super) type Agenda = BTreeSet<(Due, usize)>;

impl CatalogSlot {
    /// When the agent does something, or the status changes because the TTL expires.
    fn next(&self) -> Option<Time> {
        let agent = self.agent.as_ref()?;
        let expires = if self.status == Some(Status::Critical) { None } else { agent.expires() };
        earliest(agent.next(), expires)
    }
}

/// A service has another status in the catalog, or has left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogChange {
    /// The job whose service it is.
    pub job: JobIx,
    /// The new status.
    pub status: Option<Status>,
}

pub(super) fn slots<S: Script>(plan: &Plan, script: &S) -> Vec<CatalogSlot> {
    let agent = |(nth, job): (usize, &Job)| {
        Some(FakeAgent::new(Settings::of(job)?, script.agent(plan, JobIx::at(nth))?))
    };
    plan.jobs
        .iter()
        .enumerate()
        .map(|job| CatalogSlot { agent: agent(job), status: None, called: 0, due: None })
        .collect()
}

impl<S: Script> World<S> {
    pub(super) fn advertise(&mut self, job: JobIx, desired: DesiredService) {
        if desired != DesiredService::Absent {
            self.cancel_confirmation(job);
        }
        let now = self.now;
        let Some(slot) = self.slots.get_mut(job.index()) else { return };
        if let Some(agent) = &mut slot.agent {
            agent.set_desired(now, desired);
            self.called(job.index());
            return;
        }
        let (known, status) = match desired {
            DesiredService::Absent => (slot.status, None),
            DesiredService::Present(status) => (None, Some(status)),
        };
        if known != status {
            self.changes.push(CatalogChange { job, status });
        }
        slot.status = status;
        self.answer_watches_of(job, now);
        if desired == DesiredService::Absent
            && let Some(after) = self.script.confirms_deregistration_after(job)
        {
            self.confirm_deregistration(job, after);
        }
    }

    fn confirm_deregistration(&mut self, job: JobIx, after: Duration) {
        let slot = self.schedule(after, Scheduled::Input(Input::Deregistered { job }));
        self.pending_confirmations.insert(job, slot);
    }

    fn cancel_confirmation(&mut self, job: JobIx) {
        if let Some(slot) = self.pending_confirmations.remove(&job) {
            self.queue.remove(slot);
        }
    }

    pub(super) fn heartbeat(&mut self, job: JobIx) {
        let Some(slot) = self.slots.get_mut(job.index()) else { return };
        if let Some(agent) = &mut slot.agent {
            agent.heartbeat(self.now);
            self.called(job.index());
        }
    }

    fn slot(&mut self, nth: usize) -> Option<&mut CatalogSlot> {
        let count = self.slots.len();
        if nth < count { self.slots.get_mut(nth) } else { self.retired.get_mut(nth - count) }
    }

    /// An agent was called.
    fn called(&mut self, nth: usize) {
        let calls = self.calls;
        if let Some(slot) = self.slot(nth) {
            slot.called = calls;
        }
        self.calls += 1;
        self.reschedule(nth);
    }

    /// Puts a service into the agenda at the time at which something happens to it next.
    fn reschedule(&mut self, nth: usize) {
        let is_shuffled = self.queue.is_shuffled();
        let Some(slot) = self.slot(nth) else { return };
        let due = slot.next().map(|at| (at, if is_shuffled { 0 } else { slot.called }));
        let before = std::mem::replace(&mut slot.due, due);
        let Some(agenda) = &mut self.agenda else { return };
        if let Some(before) = before.filter(|before| Some(*before) != due) {
            agenda.remove(&(before, nth));
        }
        agenda.extend(due.map(|due| (due, nth)));
    }

    /// The agents of all services, those of removed jobs included.
    pub fn agents(&mut self) -> impl Iterator<Item = &mut FakeAgent> {
        self.agenda = None;
        self.slots.iter_mut().chain(&mut self.retired).filter_map(|slot| slot.agent.as_mut())
    }

    /// The agent that does something next, and when. At the same instant the agent that was called first comes first;
    /// in a shuffled world, the one of the first job.
    #[must_use]
    pub fn next_agent(&mut self) -> Option<(Time, usize)> {
        if self.agenda.is_none() {
            self.agenda = Some(Agenda::new());
            (0..self.slots.len() + self.retired.len()).for_each(|nth| self.reschedule(nth));
        }
        self.agenda.as_ref()?.first().map(|((at, _), nth)| (*at, *nth))
    }

    /// The agent with an index that [`World::next_agent`] returned.
    #[must_use]
    pub fn agent(&self, nth: usize) -> Option<&FakeAgent> {
        self.slots.iter().chain(&self.retired).nth(nth)?.agent.as_ref()
    }

    /// Runs the agent's step at the time that [`World::next_agent`] returned. Returns true if that led to an input.
    pub fn step_agent(&mut self, nth: usize, at: Time) -> bool {
        let count = self.slots.len();
        let Some(slot) = self.slot(nth) else { return false };
        let Some(agent) = &mut slot.agent else { return false };
        if agent.next().is_some_and(|next| next <= at) {
            agent.step(at);
        }
        let (deregistered, status) = (agent.take_deregistered(), agent.update_to(at.max(agent.now())));
        let changed = std::mem::replace(&mut slot.status, status) != status;
        self.called(nth);
        if nth >= count {
            return false;
        }
        let job = JobIx::at(nth);
        if changed {
            self.changes.push(CatalogChange { job, status });
            self.answer_watches_of(job, at);
        }
        if deregistered {
            self.now = self.now.max(at);
            self.confirm_deregistration(job, Duration::ZERO);
        }
        deregistered
    }

    /// The catalog loses the service of a job. Returns true if it had it.
    pub fn forget_service(&mut self, job: JobIx) -> bool {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(job.index()) else { return false };
        if let Some(agent) = &mut slot.agent {
            agent.lose_entry();
        }
        let known = slot.status.take().is_some();
        self.reschedule(job.index());
        if known {
            self.answer_watches_of(job, now);
        }
        known
    }

    /// The changes of the catalog since the last call.
    pub fn take_changes(&mut self) -> Vec<CatalogChange> {
        std::mem::take(&mut self.changes)
    }

    /// Services move with their jobs. Agents of removed jobs finish the deregistration. If the plan has another kind of
    /// catalog, services that are registered stay in the old one.
    pub(super) fn move_slots(&mut self, before: &Plan, moves: &Moves) {
        let plan = Arc::clone(&self.plan);
        let same = (before.catalog == Catalog::Embedded) == (plan.catalog == Catalog::Embedded);
        let old = std::mem::replace(&mut self.slots, slots(&plan, &self.script));
        self.agenda = None;
        for (mut slot, to) in old.into_iter().zip(&moves.jobs) {
            let place = to.map(JobIx::index);
            let settings = place.and_then(|to| Settings::of(plan.jobs.get(to)?));
            let settings = settings.filter(|_| same || slot.status.is_some());
            let (Some(settings), Some(place)) = (settings, place) else {
                self.retired.push(slot);
                continue;
            };
            if let Some(agent) = slot.agent.as_mut().filter(|agent| agent.settings() != settings) {
                agent.redefine(self.now, settings);
            }
            if let Some(new) = self.slots.get_mut(place) {
                *new = slot;
            }
        }
        for nth in 0..plan.watches.len() {
            self.answer_watch(WatchIx::at(nth), self.now);
        }
    }

    /// Answers the watches that see the service of a job (D2).
    fn answer_watches_of(&mut self, job: JobIx, at: Time) {
        let plan = Arc::clone(&self.plan);
        let service = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref());
        if let Some(service) = service {
            self.answer_watches(&service.name, at);
        }
    }

    pub(super) fn answer_watches(&mut self, name: &str, at: Time) {
        let plan = Arc::clone(&self.plan);
        for (nth, _) in plan.watches.iter().enumerate().filter(|(_, watch)| watch.name == name) {
            self.answer_watch(WatchIx::at(nth), at);
        }
    }

    /// Sends a watch what it sees.
    fn answer_watch(&mut self, watch: WatchIx, at: Time) {
        let answer = match self.script.watch(&self.plan, watch, at) {
            WatchScript::Catalog => Answer::Instances(self.passing(watch)),
            WatchScript::Answer(answer) => answer,
            WatchScript::NoAnswer => return,
            WatchScript::AnswerAt(later) => {
                let Some(watch) = self.plan.watches.get(watch.index()) else { return };
                let scheduled = |item: &Scheduled<S::Event>| matches!(item, Scheduled::Watch(name) if *name == watch.name);
                if !self.queue.at(later).any(scheduled) {
                    self.queue.add(later, Scheduled::Watch(watch.name.clone()));
                }
                return;
            }
        };
        self.queue.add_in_order(at, Scheduled::Input(Input::Watched { watch, answer: Ok(answer) }));
    }

    fn passing(&self, watch: WatchIx) -> Vec<Instance> {
        let Some(watch) = self.plan.watches.get(watch.index()) else { return Vec::new() };
        let services = self.plan.jobs.iter().zip(&self.slots);
        let services = services.filter(|(_, slot)| slot.status == Some(Status::Passing));
        let services = services.filter_map(|(job, _)| job.service.as_ref());
        services.filter(|service| watch.sees(service)).map(Service::instance).collect()
    }
}
