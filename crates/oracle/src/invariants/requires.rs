//! W18, S10: a job starts by itself only when its requirements hold, a bound job stops when a source is gone, and a job that
//! others require stops after them.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Job, Repeat, RequiredSource, Restarts, Role};
use containerpilot_core::{JobStatus, Outcome, Phase, State, StopReason, StopStage};

use super::oracle::{Check, Oracle};
use super::replicas::is_named;

impl Oracle<'_> {
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.plan.jobs.iter().enumerate().filter(move |(_, job)| is_named(job, name)).map(|(nth, _)| nth)
    }

    fn is_there(&self, source: &RequiredSource, statuses: &[JobStatus]) -> bool {
        match source {
            // W20: of replicas, all must be there.
            RequiredSource::Job(name) if self.is_group(name) => {
                self.named(name).all(|job| self.job_is_there(job, statuses))
            }
            RequiredSource::Job(name) => self.named(name).any(|job| self.job_is_there(job, statuses)),
            RequiredSource::Watch(name) => {
                let mut watches = self.plan.watches.iter().zip(&self.watches);
                watches.any(|(watch, answers)| watch.name == *name && answers.is_healthy())
            }
            // These schedules have no files; see `files.rs`.
            RequiredSource::File(_) => false,
            RequiredSource::Lock(_) => false,
        }
    }

    fn job_is_there(&self, job: usize, statuses: &[JobStatus]) -> bool {
        let status = &statuses[job];
        let stays = self.shutdown.is_some() && status.stop_stage == Some(StopStage::Requirers);
        let serves = status.stop_stage.is_none() || stays;
        let planned = &self.plan.jobs[job];
        if planned.health.is_some() {
            serves && status.healthy == Some(true)
        } else if runs_once(planned) {
            status.state == State::Ended(Outcome::Complete)
        } else {
            serves && status.state == State::Running
        }
    }

    /// W18: never a process of a job started by itself while a requirement is missing, and never one of a bound job.
    pub(super) fn check_required(&self, job: usize, by_hand: bool, after: &[JobStatus]) -> Check {
        let missing = self.plan.jobs[job].requires.iter().find(|requirement| {
            let holds = |statuses: &[JobStatus]| self.is_there(&requirement.source, statuses);
            (!by_hand || requirement.bind) && !holds(&self.previous) && !holds(after)
        });
        match missing {
            Some(requirement) => {
                self.job_violation("W18", job, &format!("it is started without {}", requirement.source))
            }
            None => Ok(()),
        }
    }

    /// W18: of jobs that waited for requirements and start at the same time, one that also waited for all of another's is not started before
    /// that other one, if it is behind it in the configuration. A reload changes the numbers of jobs.
    pub(super) fn check_start_order(&mut self, job: usize) -> Check {
        let waited = self.before.get(job).is_some_and(|status| status.deferred);
        if !waited || self.reloading.done.is_some() {
            return Ok(());
        }
        let (jobs, requires) = (&self.plan.jobs, &self.plan.jobs[job].requires);
        let waits_for_all = |other: usize| {
            requires.iter().all(|one| jobs[other].requires.iter().any(|its| its.source == one.source))
        };
        let later = self.released.iter().find(|other| **other > job && waits_for_all(**other));
        if let Some(later) = later {
            return self.job_violation("W18", job, &format!("it is started after {}", jobs[*later].name));
        }
        self.released.push(job);
        Ok(())
    }

    /// Returns true if a source that a job is bound to is not there.
    pub(super) fn misses_bound_source(&self, job: usize, after: &[JobStatus]) -> bool {
        let mut requires = self.plan.jobs[job].requires.iter();
        requires.any(|one| one.bind && !self.is_there(&one.source, after))
    }

    /// W18: after a step, a job whose bound source is gone stops, and one whose requirements hold does not wait for them.
    pub(super) fn check_requirements(&self, job: usize, after: &[JobStatus], phase: Phase) -> Check {
        let (planned, status) = (&self.plan.jobs[job], &after[job]);
        if phase != Phase::Running || status.stop_stage.is_some() || planned.requires.is_empty() {
            return Ok(());
        }
        let mut bound = planned.requires.iter().filter(|requirement| requirement.bind);
        let runs = matches!(status.state, State::Starting | State::Running);
        if runs && let Some(gone) = bound.find(|requirement| self.is_gone(&requirement.source, after)) {
            return self.job_violation("W18", job, &format!("it runs on, and {} is gone", gone.source));
        }
        if status.deferred && planned.requires.iter().all(|one| self.is_there(&one.source, after)) {
            return self.job_violation("W18", job, "its requirements hold, and it is not started");
        }
        Ok(())
    }

    fn is_gone(&self, source: &RequiredSource, after: &[JobStatus]) -> bool {
        let job_is_gone = |job: usize| {
            let (planned, status) = (&self.plan.jobs[job], &after[job]);
            let runs = status.stop_stage.is_none() && status.state == State::Running;
            if planned.health.is_some() {
                !runs || status.healthy == Some(false)
            } else if runs_once(planned) {
                matches!(status.state, State::Ended(outcome) if outcome != Outcome::Complete)
            } else {
                !runs
            }
        };
        match source {
            RequiredSource::Job(name) if self.is_group(name) => self.named(name).any(job_is_gone),
            RequiredSource::Job(name) => self.named(name).all(job_is_gone),
            // A watch that a reload has changed has not answered yet.
            RequiredSource::Watch(name) => {
                let mut watches = self.plan.watches.iter().zip(&self.watches);
                watches.any(|(watch, answers)| watch.name == *name && answers.is_unhealthy())
            }
            RequiredSource::File(_) => false,
            RequiredSource::Lock(_) => true,
        }
    }

    /// Returns true if the requirements of a job hold, or can, if only the jobs in `startable` can start.
    pub(super) fn requirements_possible(&self, job: usize, after: &[JobStatus], startable: &[bool]) -> bool {
        self.plan.jobs[job].requires.iter().all(|requirement| {
            self.is_there(&requirement.source, after)
                || match &requirement.source {
                    RequiredSource::Job(name) => {
                        let can_come = |job: usize| {
                            let status = &after[job];
                            let completes = runs_once(&self.plan.jobs[job])
                                && self.plan.jobs[job].health.is_none()
                                && !status.state.has_ended()
                                && status.stop_reason == Some(StopReason::Completed);
                            let can_start = status.stop_stage.is_none() && startable[job];
                            Self::will_start_again(status)
                                || completes
                                || can_start
                                || self.action_may_start(job, after, startable)
                        };
                        match self.is_group(name) {
                            true => {
                                self.named(name).all(|job| can_come(job) || self.job_is_there(job, after))
                            }
                            false => self.named(name).any(can_come),
                        }
                    }
                    RequiredSource::Watch(name) => {
                        let source = Source::Watch(name.clone());
                        self.can_happen_at_watch(&source, after, startable)
                    }
                    RequiredSource::File(_) => false,
                    RequiredSource::Lock(_) => false,
                }
        })
    }

    /// S10: the stop signal of a job comes after the jobs that require it, or are in its `stopAfter`, have ended.
    pub(super) fn check_stop_order(&self, job: usize, after: &[JobStatus]) -> Check {
        let event = |job: usize| self.jobs[job].stopping.map(|(_, event)| event);
        // A job that stopped already when the shutdown began did not wait for jobs that did not stop then, or have no process.
        let was_alone = |other: usize| {
            let shutdown = self.shutdown.map(|(_, event)| event);
            let is_idle = after[other].state == State::Waiting;
            event(job) < shutdown && (is_idle || event(other).is_none_or(|other| Some(other) > event(job)))
        };
        let first = self.stops_before(job).find(|other| {
            let waits = self.may_wait_for(*other, job, &mut Vec::new());
            !after[*other].state.has_ended() && !waits && !was_alone(*other)
        });
        match first {
            Some(other) => {
                self.job_violation("S10", job, &format!("it is stopped before {}", self.name(other)))
            }
            None => Ok(()),
        }
    }

    /// The jobs that end before a job is stopped.
    fn stops_before(&self, job: usize) -> impl Iterator<Item = usize> + '_ {
        let planned = &self.plan.jobs[job];
        (0..self.plan.jobs.len()).filter(move |other| {
            let requirer = &self.plan.jobs[*other];
            let requires = requirer
                .requires
                .iter()
                .any(|one| matches!(&one.source, RequiredSource::Job(name) if is_named(planned, name)));
            *other != job && (requires || planned.stop_after.iter().any(|name| is_named(requirer, name)))
        })
    }

    /// Returns true if the stop of one job may have to wait for another one, by any rule: then it is a ring that is broken.
    pub(super) fn may_wait_for(&self, from: usize, target: usize, seen: &mut Vec<usize>) -> bool {
        if seen.contains(&from) {
            return false;
        }
        seen.push(from);
        let planned = &self.plan.jobs[from];
        let hooks = self.plan.jobs.iter().enumerate().filter(|(_, hook)| {
            hook.when.patterns().iter().any(|event| {
                event.code == Code::Stopping
                    && matches!(&event.source, Source::Job(name) if is_named(planned, name))
            })
        });
        let waits_for = planned.when.patterns().iter().filter(|event| event.code.is_stop_event());
        let sources = waits_for.filter_map(|event| match &event.source {
            Source::Job(name) => Some(self.named(name)),
            _ => None,
        });
        let mut next: Vec<usize> = self.stops_before(from).chain(hooks.map(|(nth, _)| nth)).collect();
        next.extend(sources.flatten());
        if planned.role == Role::Coprocess {
            // C6
            let jobs = self.plan.jobs.iter().enumerate();
            next.extend(jobs.filter(|(_, job)| job.role != Role::Coprocess).map(|(nth, _)| nth));
        }
        next.into_iter().any(|next| next == target || self.may_wait_for(next, target, seen))
    }
}

/// Returns true if a job without checks counts as there only when it has succeeded.
fn runs_once(job: &Job) -> bool {
    job.when.repeat() == Repeat::Once && !job.when.is_periodic() && job.restarts != Restarts::Unlimited
}
