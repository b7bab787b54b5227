//! Reload: another plan replaces the current one, and unchanged jobs keep running (R1–R4).
//!
//! 1. While the old plan is still current, every job that is not the same in the new plan is stopped like any other
//!    job, with its hooks. Jobs that have not stopped within the stop timeout are killed. Another request meanwhile
//!    replaces the plan that is waited for; all requests get the same answer (R4).
//! 2. When the last of them is complete and no event is queued, the [`PlanState`] is replaced in one instant, and
//!    everything that continues is moved into it. A [`JobIx`] is always an index of the current plan: effects before
//!    [`Effect::PlanReplaced`] use the old indices, effects after it the new ones.
//!
//! Then `startup` is sent to jobs that are new or changed, or were unreachable before they ever ran. They also get the
//! events that hold already and will not be sent again, such as `healthy` or an exit of another job. So a reload leads
//! to the same state as a start with the new plan, and a reload of the same plan does nothing.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::{Effect, KillReason};
use crate::event::{Code, Source};
use crate::ids::{EventId, JobIx};
use crate::inserted;
use crate::log_entry::LogEvent;
use crate::plan::diff::{JobChange, Moves, PlanDiff};
use crate::plan::{Level, Plan, Repeat};
use crate::request::{Refusal, Reply, RequestId};
use crate::state::dependency_graph::{SourceKey, Subscription};
use crate::state::job::StopReason;
use crate::state::journal::{Detail, Event, Origin};
use crate::state::longest_stop::hook_time;
use crate::state::phase::Phase;
use crate::state::timers::TimerKind;
use crate::supervisor::plan_state::{Parts, PlanState};
use crate::supervisor::{Core, PendingReload};
use crate::time::fmt_duration;

impl Core {
    /// Starts a reload. The plan has been validated (R2). What `scale` has set stays, where `replicas` is unchanged
    /// (W20).
    pub(crate) fn request_reload(&mut self, id: RequestId, plan: Box<Plan>) {
        let plan = Box::new(plan.with_scale_of(self.next_plan()));
        self.request_plan(id, plan, true);
    }

    /// Replaces the plan as soon as the jobs that it changes have stopped.
    pub(crate) fn request_plan(&mut self, id: RequestId, plan: Box<Plan>, renews_variables: bool) {
        if self.phase != Phase::Running {
            let reply = Reply::Refused(Refusal::ShuttingDown);
            return self.effects.push(Effect::Reply { id, reply });
        }
        if let Some(pending) = &mut self.reload {
            pending.plan = plan;
            pending.renews_variables |= renews_variables;
            pending.requests.push(id);
        } else {
            self.reload = Some(PendingReload { plan, renews_variables, requests: [id].into(), timer: None });
        }
        self.set_reload_timer();
    }

    fn set_reload_timer(&mut self) {
        let deadline = self.now + self.reload_limit();
        if let Some(pending) = self.reload.as_mut().filter(|pending| pending.timer.is_none()) {
            pending.timer = Some(self.timers.set(deadline, TimerKind::ReloadTimeout));
        }
    }

    /// How long a reload waits for the jobs that it stops: the time of hooks, which is their own (S15), and then the
    /// stop timeout.
    fn reload_limit(&self) -> Duration {
        hook_time(self.plan(), &self.plan_state.graph) + self.plan().stop_timeout
    }

    /// The time of the stops has passed: kills the jobs that the reload waits for.
    pub(crate) fn reload_timeout(&mut self) {
        let Some(pending) = &mut self.reload else { return };
        pending.timer = None;
        let timeout = self.reload_limit();
        for job in self.jobs_to_stop() {
            if !self.is_before_shutdown() {
                // The exit of one of them has shut the container down, which has its own timeout.
                return;
            }
            // A process that has not exited after SIGKILL gets no second one.
            let is_killed = self.job(job).run().is_some_and(|run| run.killed);
            if !self.job(job).has_ended() && !is_killed {
                let fields = self.killing(job, timeout);
                let timeout = fmt_duration(timeout);
                let message = format_args!("did not stop within {timeout} for the reload, sending SIGKILL");
                self.log(Level::Warn, Some(job), fields, message);
                self.kill(job, KillReason::StopTimeout);
            }
        }
    }

    /// Refuses a pending reload, because the supervisor shuts down.
    pub(crate) fn refuse_reload(&mut self) {
        let Some(mut pending) = self.reload.take() else { return };
        self.timers.cancel(&mut pending.timer);
        for id in pending.requests {
            let reply = Reply::Refused(Refusal::ShuttingDown);
            self.effects.push(Effect::Reply { id, reply });
        }
    }

    /// The jobs that must be complete before the pending plan replaces the current one: the changed and removed ones,
    /// and those that are unreachable and get a new generation, because the old one must have ended (E3).
    fn jobs_to_stop(&self) -> Vec<JobIx> {
        let Some(pending) = &self.reload else { return Vec::new() };
        let mut jobs = self.diff(pending).replaced();
        if !jobs.is_empty() || self.renews(pending) {
            let unreachable = |job: &JobIx| self.job(*job).stop_reason() == Some(StopReason::Unreachable);
            jobs.extend(self.all_jobs().filter(unreachable));
        }
        jobs
    }

    /// Returns true if a reload has more to do than to restart jobs: another plan, or a file that is tried again, and
    /// with it the jobs that require it.
    fn renews(&self, pending: &PendingReload) -> bool {
        *pending.plan != *self.plan()
            || (pending.renews_variables && self.plan_state.parts.files.has_failed())
    }

    /// Continues a reload: stops what is replaced, and replaces the plan when that is complete. Returns true if
    /// something follows. Only called when no event is queued.
    pub(crate) fn continue_reload(&mut self) -> bool {
        let jobs = self.jobs_to_stop();
        let up: Vec<JobIx> = jobs.iter().copied().filter(|job| self.job(*job).is_up()).collect();
        let up = self.in_stop_order(up);
        for job in &up {
            self.begin_stop(*job, StopReason::Reload);
        }
        if !up.is_empty() {
            // It may have fired for jobs that stopped earlier: their hooks and actions can change one more job.
            self.set_reload_timer();
            return true;
        }
        if jobs.iter().any(|job| !self.job(*job).has_ended()) {
            return false;
        }
        self.finish_reload();
        true
    }

    fn finish_reload(&mut self) {
        let Some(mut pending) = self.reload.take() else { return };
        self.timers.cancel(&mut pending.timer);
        let diff = self.diff(&pending);
        let changes = diff.changes(self.plan(), &pending.plan);
        // Reloading the same plan does not retry unreachable jobs.
        if self.renews(&pending) || !changes.restarted.is_empty() {
            let tries_again = pending.renews_variables;
            self.replace_plan(*pending.plan, &diff);
            if tries_again {
                self.tell(|Parts { files, watches, .. }, context| files.try_failed_again(watches, context));
            }
        }
        for id in pending.requests {
            self.effects.push(Effect::Reply { id, reply: Reply::Reloaded(changes.clone()) });
        }
    }

    /// Of the jobs that a reload has changed, only those that were started are restarted. The others wait for their
    /// condition.
    pub(crate) fn name_waiting_jobs(&self, effects: &mut [Effect]) {
        for effect in effects {
            let Effect::Reply { reply: Reply::Reloaded(changes), .. } = effect else { continue };
            let started = self.all_jobs().filter(|job| self.job(*job).was_started());
            let started: BTreeSet<&str> = inserted(started.map(|job| self.planned(job).name.as_str()));
            let changed = core::mem::take(&mut changes.restarted);
            (changes.restarted, changes.waiting) =
                changed.into_iter().partition(|name| started.contains(name.as_str()));
        }
    }

    /// Replaces the plan, moves everything that continues, and sends `startup` to the jobs that start.
    fn replace_plan(&mut self, plan: Plan, diff: &PlanDiff) {
        let mut old = core::mem::replace(&mut self.plan_state, PlanState::new(plan));
        let address =
            |plan: &Plan| plan.telemetry.as_ref().map(|telemetry| (telemetry.address, telemetry.port));
        if address(&old.plan) != address(&self.plan_state.plan) {
            self.telemetry_error = Some("telemetry does not listen yet".into());
        }
        let starting = self.move_jobs(&mut old, diff);
        let old_parts = core::mem::take(&mut old.parts);
        let new_files = self.tell(|parts, context| parts.continue_from(old_parts, &diff.moves, context));
        self.timers.follow(&diff.moves);
        self.tell(|parts, context| parts.locks.renew_timers(context));
        self.plan_state.continue_from(&old, &diff.moves);
        self.move_sources(&old, &diff.moves);
        self.clear_unknown_conditions(&diff.moves, &starting);
        let plan = Arc::clone(&self.plan_state.plan);
        self.effects.push(Effect::PlanReplaced { plan, moves: diff.moves.clone() });
        self.log(Level::Info, None, LogEvent::Reloaded, format_args!("reloaded"));
        self.explain_why_it_runs();
        for job in &starting {
            self.advertise_initial_status(*job);
            self.set_start_timeout(*job);
            self.renew_hooks(*job);
        }
        for (index, change) in diff.jobs.iter().enumerate() {
            if let JobChange::Adjusted(from) = change
                && !starting.contains(&JobIx::at(index))
            {
                self.adjust(JobIx::at(index), &old.plan.jobs[from.index()]);
            }
        }
        self.tell(|Parts { files, watches, .. }, context| files.begin_new(new_files, watches, context));
        if let Some(rolling) = &mut self.rolling_restart {
            rolling.follow(&diff.moves);
        }
        self.send_group_events_that_hold(&starting);
        for job in self.all_jobs() {
            self.enqueue_recheck(job);
        }
        if !starting.is_empty() {
            self.plan_state.startup_only_for = Some(starting);
            self.send(Origin::Global, Code::Startup);
        }
        self.tell(|parts, context| parts.locks.acquire_local(context));
    }

    /// Moves the state of unchanged jobs. Returns the jobs that start: new and changed ones, and unchanged ones that
    /// were unreachable before they ever ran.
    fn move_jobs(&mut self, old: &mut PlanState, diff: &PlanDiff) -> Vec<JobIx> {
        let after = EventId(self.last_ids.event);
        let mut starting = Vec::new();
        for (index, change) in diff.jobs.iter().enumerate() {
            if let JobChange::Kept(from) | JobChange::Adjusted(from) = change {
                let before = &mut old.jobs[from.index()];
                if before.stop_reason() != Some(StopReason::Unreachable) {
                    core::mem::swap(&mut self.plan_state.jobs[index], before);
                    self.plan_state.health.keep(JobIx::at(index), &mut old.health, *from);
                    continue;
                }
            }
            starting.push(JobIx::at(index));
            let serial = self.next_generation_serial();
            let state = &mut self.plan_state;
            match change {
                JobChange::Started => state.jobs[index].generation.serial = serial,
                JobChange::Restarted(from) | JobChange::Kept(from) | JobChange::Adjusted(from) => {
                    let planned = &state.plan.jobs[index];
                    state.jobs[index] = old.jobs[from.index()].next_generation(planned, serial, after);
                    let health = old.health.take(*from);
                    state.health.begin_generation(JobIx::at(index), planned, health);
                }
            }
        }
        starting
    }

    /// Translates the sources of recorded events. The names of removed sources are kept as long as an event refers to
    /// them.
    fn move_sources(&mut self, old: &PlanState, moves: &Moves) {
        let removed_before = core::mem::take(&mut self.removed_sources);
        let removed = &mut self.removed_sources;
        let mut moved = |origin: &mut Origin| {
            let name = match *origin {
                Origin::Job(job) if let Some(to) = moves.job(job) => return *origin = Origin::Job(to),
                Origin::Watch(watch) if let Some(to) = moves.watch(watch) => {
                    return *origin = Origin::Watch(to);
                }
                Origin::File(file) if let Some(to) = moves.file(file) => return *origin = Origin::File(to),
                Origin::Lock(lock) if let Some(to) = moves.lock(lock) => {
                    return *origin = Origin::Lock(to);
                }
                Origin::Lock(lock) => {
                    old.plan.locks.get(lock.index()).map(|lock| format!("lock.{}", lock.name))
                }
                Origin::Job(job) => old.plan.jobs.get(job.index()).map(|job| job.name.clone()),
                Origin::File(file) => {
                    old.plan.files.get(file.index()).map(|file| format!("file.{}", file.name))
                }
                Origin::Watch(watch) => {
                    old.plan.watches.get(watch.index()).map(|watch| format!("watch.{}", watch.name))
                }
                Origin::Removed(index) => removed_before.get(index as usize).cloned(),
                Origin::Global | Origin::Signal(_) => return,
            };
            let name: String = name.unwrap_or_default();
            let index = removed.iter().position(|other| *other == name).unwrap_or(removed.len());
            if index == removed.len() {
                removed.push(name);
            }
            *origin = Origin::Removed(u32::try_from(index).unwrap_or(u32::MAX));
        };
        let of_jobs = self.plan_state.jobs.iter_mut().flat_map(|job| job.origins_mut());
        for origin in self.journal.origins_mut().chain(of_jobs) {
            moved(origin);
        }
        for ((mut origin, code), count) in core::mem::take(&mut self.event_counts) {
            moved(&mut origin);
            if !matches!(origin, Origin::Removed(_)) {
                self.event_counts.insert((origin, code), count);
            }
        }
    }

    /// W12: clears the `healthy` conditions of continuing jobs whose watch has changed, because its health is unknown.
    fn clear_unknown_conditions(&mut self, moves: &Moves, starting: &[JobIx]) {
        for job in self.all_jobs().filter(|job| !starting.contains(job)) {
            let patterns = self.planned(job).when.patterns().iter().zip(self.plan_state.graph.keys(job));
            let unknown: Vec<bool> = patterns
                .map(|(event, key)| {
                    let known = match key {
                        SourceKey::Watch(watch) => moves.watches.contains(&Some(*watch)),
                        SourceKey::Lock(lock) => moves.locks.contains(&Some(*lock)),
                        _ => false,
                    };
                    let is_outside = matches!(event.source, Source::Watch(_) | Source::Lock(_));
                    event.code.ended_by().is_some() && is_outside && !known
                })
                .collect();
            for (holds, unknown) in self.job_mut(job).conditions.iter_mut().zip(unknown) {
                *holds &= !unknown;
            }
        }
    }

    /// Sends a job that starts after a reload the events that hold already and will not be sent again.
    pub(crate) fn send_events_that_hold(&mut self, job: JobIx, startup: Event) {
        let when = &self.planned(job).when;
        let (once, needs_all) = (when.repeat() == Repeat::Once, when.needs_all());
        let patterns = when.patterns();
        // An event that `any` lists twice starts the job once.
        let is_repeated =
            |nth: usize| patterns.iter().take(nth).any(|other| patterns.get(nth) == Some(other));
        let codes = patterns.iter().map(|event| event.code).enumerate();
        let codes: Vec<(usize, Code)> = codes.filter(|(nth, _)| needs_all || !is_repeated(*nth)).collect();
        for (condition, code) in codes {
            if let Some(origin) = self.source_that_holds(job, condition, code, once) {
                let event = Event { origin, code, ..startup };
                self.matched(Subscription { job, condition, clears: false }, event);
            }
        }
    }

    /// After a reload: an event of a group may hold now, because a replica for which it did not is gone.
    fn send_group_events_that_hold(&mut self, starting: &[JobIx]) {
        for job in self.all_jobs().filter(|job| !starting.contains(job)) {
            let when = &self.planned(job).when;
            let codes: Vec<(usize, Code)> =
                when.patterns().iter().map(|event| event.code).enumerate().collect();
            for (condition, code) in codes {
                let holds = self.job(job).conditions.get(condition) == Some(&true)
                    || self.job(job).triggered_at.is_some();
                // An event of a replica that is queued decides it.
                let is_queued = self.queue.iter().any(|event| {
                    let mut of_group =
                        self.plan_state.graph.group_subscribers(event.origin, event.code).iter();
                    event.code == code && of_group.any(|one| (one.job, one.condition) == (job, condition))
                });
                if holds || is_queued || !self.waits_for_all_replicas(job, condition, code) {
                    continue;
                }
                if let Some(origin) = self.source_that_holds(job, condition, code, true) {
                    let id = EventId(self.last_ids.event);
                    let event = Event { id, cause: None, at: self.now, origin, code, detail: Detail::None };
                    self.matched(Subscription { job, condition, clears: false }, event);
                }
            }
        }
    }
}
