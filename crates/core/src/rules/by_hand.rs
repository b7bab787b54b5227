//! Starts, stops, restarts and signals that a user or an action requests (X2, W19).

use alloc::format;
use alloc::vec::Vec;

use crate::effect::KillReason;
use crate::ids::JobIx;
use crate::plan::{Role, Signal};
use crate::request::{JobReply, Refusal, Reply};
use crate::state::job::{State, StopReason};
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::state::run::Cause;
use crate::supervisor::Core;

impl Core {
    pub(crate) fn has_job(&self, job: JobIx) -> bool {
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
            Reply::Refused(Refusal::ShuttingDown)
        } else if self.planned(job).role == Role::Telemetry {
            Reply::Refused(Refusal::TelemetryJob)
        } else {
            request(self, job)
        }
    }

    pub(crate) fn request_signal(&mut self, job: JobIx, signal: Signal) -> Reply {
        if !self.job(job).has_process() {
            return Reply::Refused(Refusal::NotRunning);
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
            return Reply::Refused(Refusal::Unmet(why));
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

    pub(crate) fn request_stop(&mut self, job: JobIx) -> Reply {
        if let Some(rolling) = &mut self.rolling_restart {
            rolling.leave(job);
        }
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

    /// What each of several jobs replies. Jobs that a reload has removed say nothing.
    pub(crate) fn job_replies(&self, replies: Vec<(JobIx, Reply)>) -> Vec<JobReply> {
        let replies = replies.into_iter().filter(|(job, _)| self.has_job(*job));
        let replies = replies.filter_map(|(job, reply)| {
            let result = match reply {
                Reply::Done(message) => Ok(message),
                Reply::Refused(why) => Err(why),
                Reply::Updated(_) | Reply::Reloaded(_) | Reply::Jobs(_) => return None,
            };
            Some(JobReply { job: self.planned(job).name.clone(), result })
        });
        replies.collect()
    }
}

pub(crate) fn no_such_job() -> Reply {
    Reply::Refused(Refusal::NoSuchJob)
}

fn replaced_by_reload() -> Reply {
    Reply::Done("a reload in progress replaces this job".into())
}
