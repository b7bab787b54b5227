//! W9, W10: no job waits for an event that cannot happen, and the supervisor stops when all work is done.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Catalog, EventPattern, FirstTick, Job, Restarts, Trigger};
use containerpilot_core::{Core, JobStatus, Phase, State, StopReason, StopStage};

use super::oracle::{Check, Oracle};
use super::replicas::is_named;

impl Oracle<'_> {
    /// Returns true if an event can happen, if only the jobs in `startable` can start something. With `by_itself`, no
    /// shutdown and no command stops a job.
    fn can_happen(
        &self,
        event: &EventPattern,
        after: &[JobStatus],
        startable: &[bool],
        by_itself: bool,
    ) -> bool {
        let jobs = || {
            self.plan
                .jobs
                .iter()
                .zip(after)
                .zip(startable)
                .map(|((job, status), startable)| (job, status, *startable))
        };
        match &event.source {
            Source::Global => event.code != Code::Startup,
            Source::Signal(_) => true,
            Source::File(_) => false,
            Source::Lock(_) => false,
            Source::Watch(name) => self.plan.watches.iter().enumerate().any(|(nth, watch)| {
                let advertised =
                    |job: &Job| job.service.as_ref().is_some_and(|service| service.name == *name);
                watch.name == *name
                    && (self.plan.catalog != Catalog::Embedded
                        || self.watches[nth].will_change()
                        || jobs().any(|(job, status, startable)| {
                            advertised(job)
                                && (startable && !status.state.has_ended() || Self::will_start_again(status))
                        })
                        || self.plan.jobs.iter().enumerate().any(|(nth, job)| {
                            advertised(job) && self.action_may_start(nth, after, startable)
                        }))
            }),
            Source::Job(name) => {
                let mut named = (0..after.len()).filter(|nth| is_named(&self.plan.jobs[*nth], name));
                let can_send = |nth: usize| {
                    let is_stop = matches!(event.code, Code::Stopping | Code::Stopped);
                    let can_stop = !is_stop || !by_itself || startable[nth];
                    can_stop && self.can_send(nth, event.code, &after[nth], startable[nth])
                        || self.sends_if_started(nth, event.code)
                            && self.action_may_start(nth, after, startable)
                };
                if !self.needs_all(name, event.code) {
                    return named.any(can_send);
                }
                named.clone().any(can_send)
                    && named.all(|nth| can_send(nth) || self.replica_has(nth, event.code, after))
            }
        }
    }

    /// Returns true if a watch can change.
    pub(super) fn can_happen_at_watch(
        &self,
        source: &Source,
        after: &[JobStatus],
        startable: &[bool],
    ) -> bool {
        let event = EventPattern { source: source.clone(), code: Code::Healthy };
        self.can_happen(&event, after, startable, false)
    }

    /// Returns true if a job can send an event, depending on whether it can start something.
    fn can_send(&self, job: usize, code: Code, status: &JobStatus, startable: bool) -> bool {
        let planned = &self.plan.jobs[job];
        let up = status.stop_stage.is_none();
        let active = up || status.run.is_some() || status.state == State::Running;
        let can = match code {
            Code::ExitSuccess | Code::ExitFailed => planned.exec.is_some() && active && startable,
            Code::Healthy | Code::Unhealthy | Code::BecameHealthy | Code::BecameUnhealthy => {
                planned.health.is_some() && active && startable
            }
            Code::Ready => planned.ready.is_some() && active && startable,
            Code::CrashLoop => planned.start_limit.is_some() && planned.exec.is_some() && up && startable,
            Code::Stopping => status.stop_stage <= Some(StopStage::Requirers),
            Code::Stopped => true,
            Code::TimerExpired => up && self.may_give_up(job) && !self.jobs[job].has_begun,
            _ => false,
        };
        (can && !status.state.has_ended()) || Self::will_start_again(status)
    }

    /// Returns true if a job that is started can send an event.
    fn sends_if_started(&self, job: usize, code: Code) -> bool {
        let planned = &self.plan.jobs[job];
        match code {
            Code::ExitSuccess | Code::ExitFailed => planned.exec.is_some(),
            Code::Healthy | Code::Unhealthy | Code::BecameHealthy | Code::BecameUnhealthy => {
                planned.health.is_some()
            }
            Code::Ready => planned.ready.is_some(),
            Code::CrashLoop => planned.start_limit.is_some() && planned.exec.is_some(),
            Code::Stopping | Code::Stopped => true,
            _ => false,
        }
    }

    /// W5: returns true if a job that has not started gives up at its start timeout. The event that starts a schedule by time of
    /// day ends that, because its first time may be far away (W16); so does a start that is spaced (W14).
    pub(super) fn may_give_up(&self, job: usize) -> bool {
        let (when, model) = (&self.plan.jobs[job].when, &self.jobs[job]);
        let is_scheduled = when.cron().is_some() && model.triggered.is_some();
        let is_started = self.awaits_next_tick(job) || model.is_spaced;
        when.timeout.is_some() && model.runs == 0 && !model.resumed && !is_scheduled && !is_started
    }

    /// W14: returns true if a periodic action may wait for its next tick, because it was started again just after a run.
    fn awaits_next_tick(&self, job: usize) -> bool {
        let (planned, model) = (&self.plan.jobs[job], &self.jobs[job]);
        let is_periodic = planned.exec.action().is_some() && planned.when.is_periodic();
        is_periodic && model.ran_just_before && model.runs == 0
    }

    /// The jobs that are active, will be by themselves, or can be started by events of such jobs (W10).
    fn reachable(&self, after: &[JobStatus], by_itself: bool) -> Vec<bool> {
        let waits = |job: usize| {
            // A job with a start timeout gives up by itself.
            let waits = after[job].state == State::Waiting && after[job].stop_stage.is_none();
            waits && !self.may_give_up(job)
        };
        let mut startable: Vec<bool> = (0..after.len()).map(|job| !waits(job)).collect();
        loop {
            let more = (0..after.len())
                .find(|job| !startable[*job] && self.can_start(*job, after, &startable, by_itself));
            match more {
                Some(job) => startable[job] = true,
                None => return startable,
            }
        }
    }

    fn can_start(&self, job: usize, after: &[JobStatus], startable: &[bool], by_itself: bool) -> bool {
        if !self.requirements_possible(job, after, startable) {
            return false;
        }
        if after[job].deferred {
            return true;
        }
        let model = &self.jobs[job];
        let can_happen = |event: &EventPattern| self.can_happen(event, after, startable, by_itself);
        match &self.plan.jobs[job].when.trigger {
            Trigger::Never => false,
            Trigger::Interval { first: FirstTick::AtStartup, .. }
            | Trigger::Cron { after: None, .. }
            | Trigger::Manual => true,
            Trigger::Interval {
                first: FirstTick::AtEvent(event) | FirstTick::IntervalAfter(event), ..
            }
            | Trigger::Cron { after: Some(event), .. } => {
                model.triggered.is_some() || self.awaits_next_tick(job) || can_happen(event)
            }
            _ if self.was_triggered_once(job, after) => false,
            Trigger::Event { event, .. } => can_happen(event),
            Trigger::Any { conditions, .. } => conditions.iter().any(can_happen),
            Trigger::All { conditions, .. } => {
                let mut missing = conditions.iter().zip(&model.holds).filter(|(_, holds)| !**holds);
                let all_hold = model.holds.iter().all(|holds| *holds);
                let again = |event: &EventPattern| {
                    matches!(event.code, Code::Healthy | Code::BecameHealthy) && can_happen(event)
                };
                if all_hold {
                    conditions.iter().any(again)
                } else {
                    missing.all(|(event, _)| can_happen(event))
                }
            }
        }
    }

    /// W10: no job becomes unreachable without need. This is decided by the state just before, because other jobs may
    /// have waited for the event that a job becomes unreachable.
    pub(super) fn check_unreachable(&self, after: &[JobStatus]) -> Check {
        let gives_up = |job: usize| {
            let was = &self.previous[job];
            after[job].stop_reason == Some(StopReason::Unreachable)
                && was.generation == after[job].generation
                && was.stop_reason.is_none()
        };
        if !(0..after.len()).any(gives_up) {
            return Ok(());
        }
        let reachable = self.reachable(&self.previous, false);
        match (0..after.len()).find(|job| gives_up(*job) && reachable[*job]) {
            Some(job) => self.job_violation("W10", job, "it is marked unreachable, and is not"),
            None => Ok(()),
        }
    }

    /// W10: no job waits for an event that cannot happen.
    pub(super) fn check_reachability(&self, after: &[JobStatus], phase: Phase) -> Check {
        if phase != Phase::Running {
            return Ok(());
        }
        // During a reload any event may still happen.
        if self.is_reloading() || !after.iter().any(|status| status.state == State::Waiting) {
            return Ok(());
        }
        match self.reachable(after, false).iter().position(|reachable| !reachable) {
            Some(job) => self.job_violation("W10", job, "it waits for an event that cannot happen any more"),
            None => Ok(()),
        }
    }

    /// W10: the supervisor says exactly when nothing can happen any more by itself.
    pub(super) fn check_deadlock(&self, core: &Core, after: &[JobStatus]) -> Check {
        let working = self.plan.jobs.iter().any(does_work);
        let reachable = self.reachable(after, true);
        let mut open = self.plan.jobs.iter().zip(after).zip(reachable).filter(|((job, status), _)| {
            let complete = status.state.has_ended() && !Self::will_start_again(status);
            !complete && (!working || does_work(job)) && !job.role.is_secondary()
        });
        let running = core.phase() == Phase::Running && !self.is_reloading();
        let expected = running && open.clone().next().is_some() && open.all(|(_, reachable)| !reachable);
        if core.deadlock().is_some() == expected {
            return Ok(());
        }
        let what = if expected {
            "nothing can happen any more, and it is not said"
        } else {
            "something can still happen"
        };
        Err(self.violation("W10", what))
    }

    /// W10: the supervisor stops by itself when all work is done.
    pub(super) fn check_all_done(&self, after: &[JobStatus], phase: Phase) -> Check {
        if phase != Phase::Running || self.is_reloading() {
            return Ok(());
        }
        let working = self.plan.jobs.iter().any(does_work);
        let done = self.plan.jobs.iter().zip(after).all(|(job, status)| {
            let complete = status.state.has_ended() && !Self::will_start_again(status);
            // W17: a run of a user is finished before.
            let runs = !matches!(status.state, State::Waiting | State::Queued) && !status.state.has_ended();
            complete || (working && !does_work(job) && !(runs && job.when.is_manual()))
        });
        if done {
            Err(self.violation("W10", "all work is done, and the supervisor does not stop"))
        } else {
            Ok(())
        }
    }
}

/// Returns true if a job does work: of its own (W10), or after the stop of another job (S13).
pub(super) fn does_work(job: &Job) -> bool {
    let after_stop = |event: &EventPattern| {
        matches!(event.source, Source::Job(_)) && matches!(event.code, Code::Stopping | Code::Stopped)
    };
    let works = is_server(job) || job.restarts != Restarts::Limited(0);
    let works = works && job.when.patterns().iter().any(after_stop);
    !job.role.is_secondary() && !job.when.is_manual() && (!only_reacts(job) || works)
}

/// Returns true if a job is not expected to end by itself (S13).
pub(super) fn is_server(job: &Job) -> bool {
    job.restarts == Restarts::Unlimited || job.health.is_some() || job.service.is_some()
}

/// Returns true if a job reacts to signals, maintenance and stop events only.
pub(super) fn only_reacts(job: &Job) -> bool {
    let only_reacts = |event: &EventPattern| {
        matches!(event.source, Source::Signal(_))
            || matches!(
                event.code,
                Code::EnterMaintenance
                    | Code::ExitMaintenance
                    | Code::Stopping
                    | Code::Stopped
                    | Code::Shutdown
            )
    };
    let patterns = job.when.patterns();
    !patterns.is_empty() && patterns.iter().all(only_reacts)
}
