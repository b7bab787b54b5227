//! Requests of users: start, stop, restart, signal (X2).

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use crate::effect::{Effect, KillReason};
use crate::ids::JobIx;
use crate::plan::{Role, Signal};
use crate::request::{Reply, Request, RequestId};
use crate::state::job::{State, StopReason};
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::state::run::Cause;
use crate::supervisor::Core;

/// The refusal of requests during a shutdown.
pub(crate) const SHUTTING_DOWN: &str = "the supervisor is shutting down";

impl Core {
    pub(crate) fn request(&mut self, id: RequestId, request: Request) {
        let reply = match request {
            // Answered when it is done.
            Request::Reload(plan) => return self.request_reload(id, plan),
            Request::RollingRestart(jobs) => return self.request_rolling_restart(id, jobs),
            Request::Scale(name, count) => match self.next_plan().scaled(&name, count) {
                Ok(plan) => return self.request_plan(id, Box::new(plan), false),
                Err(why) => Reply::Refused(why),
            },
            Request::Maintenance(on) => self.set_maintenance(on),
            Request::SetVariables(variables) => {
                self.set_variables(variables);
                Reply::Done("set".into())
            }
            Request::Several(requests) => self.several(requests),
            request => self.request_about_job(&request),
        };
        self.effects.push(Effect::Reply { id, reply });
    }

    fn request_about_job(&mut self, request: &Request) -> Reply {
        match request {
            Request::Start(job) => self.request_for_job(*job, Self::request_start),
            Request::Stop(job) => self.request_for_job(*job, Self::request_stop),
            Request::Restart(job) => self.request_for_job(*job, Self::request_restart),
            Request::Signal(job, signal) if self.has_job(*job) => self.request_signal(*job, *signal),
            _ => no_such_job(),
        }
    }

    fn several(&mut self, requests: Vec<Request>) -> Reply {
        let mut replies = Vec::new();
        for request in requests {
            if let Request::Start(job)
            | Request::Stop(job)
            | Request::Restart(job)
            | Request::Signal(job, _) = request
            {
                replies.push((job, self.request_about_job(&request)));
            }
        }
        self.combined(replies)
    }

    /// The replies of several jobs in one. It is refused if every job refuses: some jobs of a group may not run.
    pub(crate) fn combined(&self, replies: Vec<(JobIx, Reply)>) -> Reply {
        let refused = replies.iter().all(|(_, reply)| matches!(reply, Reply::Refused(_)));
        let words = replies.into_iter().filter(|(job, _)| self.has_job(*job)).filter_map(|(job, reply)| {
            let (Reply::Done(message) | Reply::Refused(message)) = reply else { return None };
            Some(format!("{}: {message}", self.planned(job).name))
        });
        let words = words.collect::<Vec<_>>().join("; ");
        if refused { Reply::Refused(words) } else { Reply::Done(words) }
    }

    fn has_job(&self, job: JobIx) -> bool {
        job.index() < self.plan_state.jobs.len()
    }

    pub(crate) fn request_for_job(
        &mut self,
        job: JobIx,
        request: impl Fn(&mut Self, JobIx) -> Reply,
    ) -> Reply {
        if !self.has_job(job) {
            no_such_job()
        } else if self.phase != Phase::Running {
            Reply::Refused(SHUTTING_DOWN.into())
        } else if self.planned(job).role == Role::Telemetry {
            Reply::Refused("the telemetry job is part of the supervisor".into())
        } else {
            request(self, job)
        }
    }

    pub(crate) fn request_signal(&mut self, job: JobIx, signal: Signal) -> Reply {
        if !self.job(job).has_process() {
            return Reply::Refused("not running".into());
        }
        self.send_signal(job, signal, KillReason::ByHand);
        Reply::Done(match self.job(job).pid() {
            Some(pid) => format!("sent {signal} to process group {pid}"),
            None if self.job(job).state() == State::Outlived => {
                format!("sent {signal} to the processes that are left of its run")
            }
            None => format!("sent {signal} to the process that is being started"),
        })
    }

    /// Starts a job now, with all its restarts, regardless of what it waits for.
    pub(crate) fn request_start(&mut self, job: JobIx) -> Reply {
        if self.is_replaced_by_reload(job) {
            return replaced_by_reload();
        }
        let starts = self.job(job).has_ended() || (self.job(job).is_up() && !self.job(job).is_active());
        if let Some(why) = self.missing_bound_words(job).filter(|_| starts) {
            return Reply::Refused(why);
        }
        let missing = self.missing_words(job);
        let starting =
            if missing.is_empty() { "starting".into() } else { format!("starting, although {missing}") };
        match (self.job(job).state(), self.job(job).is_up()) {
            (State::Ended(_), _) => {
                self.begin_generation(job);
                self.start_by_hand(job);
                Reply::Done(starting)
            }
            (State::Waiting | State::Delaying, true) => {
                self.start_by_hand(job);
                Reply::Done(starting)
            }
            (State::Queued | State::Starting | State::Running, true) => {
                Reply::Done(match self.job(job).pid() {
                    Some(pid) => format!("already running (pid {pid})"),
                    None => "already starting".into(),
                })
            }
            (State::Outlived, true) => {
                Reply::Done("already running: processes of its last run are left".into())
            }
            (_, false) => {
                let by = self.acting.map(Origin::Job);
                if let Some(stop) = self.job_mut(job).stop_mut() {
                    (stop.then_start, stop.reason, stop.by) = (true, StopReason::ByHand, by);
                }
                // Its hooks may be done already: a job that starts again waits for less.
                self.enqueue_recheck(job);
                Reply::Done("stopping, will start again".into())
            }
        }
    }

    /// Starts a job for a user or an action.
    fn start_by_hand(&mut self, job: JobIx) {
        let by = self.acting.map(Origin::Job);
        self.start_by(job, by.map_or(Cause::ByHand, Cause::Action));
    }

    /// Starts a job, not because of an event.
    pub(crate) fn start_by(&mut self, job: JobIx, cause: Cause) {
        let newest_generation = self.last_ids.generation;
        let periodic = self.planned(job).when.is_periodic();
        // W14: in a ring of actions, a periodic one runs once at a time, and then at its ticks.
        let is_again = self.acting.is_some() && self.job(job).started_at == Some(self.now);
        if periodic && is_again && self.starts_itself(job) {
            return self.await_first_tick(job);
        }
        let state = self.job_mut(job);
        state.ticks.off_schedule = true;
        // W14: a user may start it however often it was started before.
        state.starts.clear();
        let is_first = !state.has_run;
        state.triggered_at = Some(newest_generation);
        state.cause = Some(cause);
        if !periodic {
            state.restarts = 0;
            if self.starts_itself(job) {
                return self.start_spaced(job);
            }
            self.job_mut(job).early_exits = 0;
        } else if is_first {
            // The first run starts the ticks; a run between two ticks is not counted.
            self.begin_ticks(job);
        }
        self.count_start(job);
        self.start(job, None);
    }

    pub(crate) fn request_stop(&mut self, job: JobIx) -> Reply {
        self.leave_rolling_restart(job);
        if self.job(job).has_ended() {
            return Reply::Done("not running".into());
        }
        if let Some(stop) = self.job_mut(job).stop_mut() {
            stop.then_start = false;
            if stop.reason == StopReason::SourceGone {
                stop.reason = StopReason::ByHand;
            }
            return Reply::Done("already stopping".into());
        }
        // A job that an action has stopped does not keep the supervisor running.
        let by_action = self.acting.is_some();
        self.begin_stop(job, if by_action { StopReason::ByAction } else { StopReason::ByHand });
        Reply::Done(if self.job(job).has_process() { "stopping" } else { "stopped" }.into())
    }

    /// Stops a job and starts its next generation. A job that does not run is only started.
    pub(crate) fn request_restart(&mut self, job: JobIx) -> Reply {
        if self.is_replaced_by_reload(job) {
            return replaced_by_reload();
        }
        let state = self.job(job);
        if !state.is_up() || matches!(state.state(), State::Waiting | State::Queued | State::Delaying) {
            return self.request_start(job);
        }
        self.begin_stop_then(job, StopReason::ByHand, true);
        Reply::Done("stopping, will start again".into())
    }
}

fn no_such_job() -> Reply {
    Reply::Refused("no such job".into())
}

fn replaced_by_reload() -> Reply {
    Reply::Done("a reload in progress replaces this job".into())
}
