//! Which events have come and still hold, which jobs they are for, and whether a job causes its own (E2, W14, W20).
//!
//! A job that waits for an event of a group waits for that event of its replicas. For most events, that of any replica
//! counts. Some count only when they hold for all of them: then the event of the last replica is the one that counts.

use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::JobIx;
use crate::plan::Repeat;
use crate::sort_by;
use crate::state::dependency_graph::{NameId, SourceKey, Subscription};
use crate::state::job::{State, StopReason, StopStage};
use crate::state::journal::{Event, Origin};
use crate::state::run::LastExit;
use crate::supervisor::Core;
use crate::supervisor::plan_state::PlanState;

impl Core {
    /// Returns true if this event of a source counts only when it holds for all replicas.
    pub(crate) fn needs_all_replicas(&self, source: NameId, code: Code) -> bool {
        code.needs_all_replicas() && self.plan_state.graph.is_group(source)
    }

    /// Returns true if a job's nth pattern is an event that counts only when it holds for all replicas.
    pub(crate) fn waits_for_all_replicas(&self, job: JobIx, nth: usize, code: Code) -> bool {
        let key = self.plan_state.graph.keys(job).get(nth);
        matches!(key, Some(SourceKey::Name(id)) if self.needs_all_replicas(*id, code))
    }

    /// The jobs that subscribe to an event. Conditions that it clears come before those that it sets.
    pub(crate) fn subscribers(&self, event: &Event) -> Vec<Subscription> {
        let graph = &self.plan_state.graph;
        let mut all = graph.subscribers(event.origin, event.code).to_vec();
        let of_group = graph.group_subscribers(event.origin, event.code);
        if of_group.is_empty() {
            return all;
        }
        let holds = !event.code.needs_all_replicas()
            || graph.group_of(event.origin).is_some_and(|group| {
                // Of several replicas with the same event in the queue, the last one counts.
                let is_last = !self.queue.iter().any(|other| {
                    other.code == event.code
                        && other.origin != event.origin
                        && graph.group_of(other.origin) == Some(group)
                });
                is_last && graph.jobs_named(group).iter().all(|job| self.event_holds(*job, event.code, true))
            });
        let own = all.len();
        for one in of_group {
            // A job that waits for any event of a replica and of its group runs once for it.
            let is_counted = || all.iter().take(own).any(|other| other.job == one.job && !other.clears);
            if one.clears || (holds && (self.planned(one.job).when.needs_all() || !is_counted())) {
                all.push(*one);
            }
        }
        sort_by(&mut all, |one, other| other.clears.cmp(&one.clears));
        all
    }

    /// The source of a job's nth pattern, if its event has come and still holds.
    pub(crate) fn source_that_holds(&self, job: JobIx, nth: usize, code: Code, once: bool) -> Option<Origin> {
        let PlanState { graph, parts, .. } = &self.plan_state;
        match graph.origin_of_pattern(job, nth)? {
            Origin::Job(_) => {
                let mut sources = graph.jobs_of_pattern(job, nth).iter().copied();
                if self.waits_for_all_replicas(job, nth, code) {
                    let all = sources.clone().all(|source| self.event_holds(source, code, true));
                    return sources.next().filter(|_| all).map(Origin::Job);
                }
                sources.find(|source| self.event_holds(*source, code, once)).map(Origin::Job)
            }
            origin @ Origin::Watch(watch) => parts.watches.event_holds(watch, code).then_some(origin),
            origin @ Origin::File(file) => parts.files.event_holds(file, code).then_some(origin),
            origin @ Origin::Lock(lock) => parts.locks.event_holds(lock, code).then_some(origin),
            Origin::Global if code == Code::EnterMaintenance && self.maintenance => Some(Origin::Global),
            Origin::Global | Origin::Signal(_) | Origin::Removed(_) => None,
        }
    }

    /// Returns true if an event of a continuing job has come and still describes its state.
    pub(crate) fn event_holds(&self, source: JobIx, code: Code, once: bool) -> bool {
        let state = self.job(source);
        // A source that starts with the same `startup` has sent nothing yet.
        if self.plan_state.startup_only_for.as_ref().is_some_and(|starting| starting.contains(&source)) {
            return false;
        }
        // The last exit of this generation, unless a run is in progress, which will send its own.
        let exited = |success: bool| {
            (once || state.has_ended())
                && (state.has_run && !state.is_active() && self.planned(source).exec.is_some())
                && state.last_exit.as_ref().map(LastExit::is_success) == Some(success)
        };
        let healthy = self.is_healthy(source);
        match code {
            Code::Healthy | Code::BecameHealthy => healthy == Some(true),
            Code::Unhealthy | Code::BecameUnhealthy => healthy == Some(false),
            // E3: a notice from before the job is running has not become an event yet.
            Code::Ready => {
                state.state() == State::Running && state.run().is_some_and(|run| run.readiness().is_ready())
            }
            Code::ExitSuccess => exited(true),
            Code::ExitFailed => exited(false),
            Code::CrashLoop => state.stop_reason() == Some(StopReason::CrashLoop),
            Code::Stopping => state.stop_stage() > Some(StopStage::Requirers),
            Code::Stopped => state.has_ended(),
            Code::TimerExpired => state.stop_reason() == Some(StopReason::StartTimeout),
            _ => false,
        }
    }

    /// W14: returns true if an event that starts a job follows from the job's own events, directly or through other
    /// jobs that run at every event. A job sends stop events only once.
    pub(crate) fn triggers_itself(&self, job: JobIx, event: &Event) -> bool {
        let each = self.planned(job).when.repeat() == Repeat::Each && !event.code.is_stop_event();
        // An action can start what it waits for again, also for a job that waits once.
        if !each && self.planned(job).exec.action().is_none() {
            return false;
        }
        let graph = &self.plan_state.graph;
        match (event.origin, event.code) {
            (Origin::Job(source), _) => graph.leads_to(job, source),
            (Origin::Global, Code::EnterMaintenance | Code::ExitMaintenance) => {
                let mut sources = graph.maintainers(event.code == Code::EnterMaintenance).iter();
                sources.any(|source| graph.leads_to(job, *source))
            }
            _ => false,
        }
    }

    /// W14: returns true if the action of a job can lead to a start of the job.
    pub(crate) fn starts_itself(&self, job: JobIx) -> bool {
        self.planned(job).exec.action().is_some() && self.plan_state.graph.is_in_ring(job)
    }

    /// Returns true if a job with `once` has been triggered. A stop hook is triggered once per generation of the job it
    /// waits for, so that it runs again after that job was restarted by hand.
    pub(crate) fn was_triggered_once(&self, job: JobIx) -> bool {
        let Some(triggered_at) = self.job(job).triggered_at else { return false };
        if self.planned(job).when.repeat() != Repeat::Once {
            return false;
        }
        let mut sources = self.stop_event_sources(job).flat_map(|id| self.plan_state.graph.jobs_named(id));
        !sources
            .any(|source| self.job(*source).generation.serial > triggered_at || self.may_start_again(*source))
    }

    /// The names whose stop events a job waits for.
    pub(crate) fn stop_event_sources(&self, job: JobIx) -> impl Iterator<Item = NameId> + '_ {
        let patterns = self.planned(job).when.patterns().iter().zip(self.plan_state.graph.keys(job));
        patterns.filter_map(|(event, key)| match key {
            SourceKey::Name(id) if event.code.is_stop_event() => Some(*id),
            _ => None,
        })
    }
}
