//! Stops and starts the jobs of a rolling restart (W20). `crate::rolling_restart` decides which one is next.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::Effect;
use crate::ids::JobIx;
use crate::log_entry::LogEvent;
use crate::plan::{Level, Role};
use crate::request::{Refusal, Reply, RequestId};
use crate::rolling_restart::RollingRestart;
use crate::state::job::State;
use crate::state::longest_stop::hook_time;
use crate::state::phase::Phase;
use crate::supervisor::Core;

/// How long a job may take to become healthy, in addition to its stop.
const LIMIT: Duration = Duration::from_secs(60);

impl Core {
    /// Starts a rolling restart. It is answered when it is done.
    pub(crate) fn request_rolling_restart(&mut self, id: RequestId, jobs: Vec<JobIx>) {
        let unknown = |job: &JobIx| job.index() >= self.plan_state.jobs.len();
        let refusal = if self.phase != Phase::Running {
            Some(Refusal::ShuttingDown)
        } else if self.rolling_restart.is_some() {
            Some(Refusal::RollingRestartInProgress)
        } else if self.maintenance {
            Some(Refusal::ChecksSuspended)
        } else if jobs.is_empty() || jobs.iter().any(unknown) {
            Some(Refusal::NoSuchJob)
        } else if jobs.iter().any(|job| self.planned(*job).role == Role::Telemetry) {
            Some(Refusal::TelemetryJob)
        } else {
            None
        };
        if let Some(why) = refusal {
            return self.effects.push(Effect::Reply { id, reply: Reply::Refused(why) });
        }
        self.rolling_restart = Some(Box::new(RollingRestart::new(id, jobs)));
    }

    /// Continues a rolling restart when no event is queued. Returns true if it has done something.
    pub(crate) fn continue_rolling_restart(&mut self) -> bool {
        let Some(rolling) = &self.rolling_restart else { return false };
        if let Some((job, generation)) = rolling.current() {
            let state = self.job(job);
            let name = &self.planned(job).name;
            if state.has_ended() && !state.stop().is_some_and(|stop| stop.then_start) {
                let why = Refusal::JobEnded(name.clone());
                self.end_rolling_restart(Some(why));
                return true;
            }
            let healthy = self.health_of(job).is_none_or(|health| health.healthy == Some(true));
            let is_back = state.generation.number >= generation && state.is_up();
            if !is_back || state.state() != State::Running || !healthy {
                return false;
            }
        }
        let (timers, Some(rolling)) = (&mut self.timers, &mut self.rolling_restart) else { return false };
        let Some(job) = rolling.next(timers) else {
            self.end_rolling_restart(None);
            return true;
        };
        self.request_restart(job);
        let state = self.job(job);
        let generation = state.generation.number + u64::from(!state.is_up());
        let until = self.now + self.rolling_limit();
        if let (timers, Some(rolling)) = (&mut self.timers, &mut self.rolling_restart) {
            rolling.restarting(job, generation, until, timers);
        }
        true
    }

    fn rolling_limit(&self) -> Duration {
        // Stop hooks have a time of their own (S15).
        let hooks = hook_time(self.plan(), &self.plan_state.graph);
        LIMIT + hooks + self.plan().stop_timeout * 2
    }

    /// The current job was not healthy in time.
    pub(crate) fn rolling_restart_timeout(&mut self) {
        let current = self.rolling_restart.as_ref().and_then(|rolling| rolling.current());
        let Some((job, _)) = current else { return };
        let state = if self.planned(job).health.is_some() { "healthy" } else { "running" };
        let (job, limit) = (self.planned(job).name.clone(), self.rolling_limit());
        self.end_rolling_restart(Some(Refusal::NotBack { job, state, limit }));
    }

    /// Ends a rolling restart and answers it; `why` if it is incomplete.
    pub(crate) fn end_rolling_restart(&mut self, why: Option<Refusal>) {
        let Some(rolling) = self.rolling_restart.take() else { return };
        let id = rolling.request();
        let jobs = &self.plan_state.plan.jobs;
        let (reply, words) = rolling.end(why, |job| &jobs[job.index()].name, &mut self.timers);
        let level = if matches!(reply, Reply::Refused(_)) { Level::Warn } else { Level::Info };
        self.log(level, None, LogEvent::Restarting, format_args!("{words}"));
        self.effects.push(Effect::Reply { id, reply });
    }
}
