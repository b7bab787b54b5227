//! How a run starts, and its timeout (P3, P5, D4, W11).

use alloc::format;
use alloc::string::String;

use crate::effect::{DesiredService, Effect};
use crate::event::Code;
use crate::ids::{JobIx, RunId};
use crate::plan::{Level, Signal};
use crate::state::job::{Activity, State, StopReason, StopStage, Transition};
use crate::state::journal::Event;
use crate::state::run::{Cause, Run};
use crate::state::supervisor::{Core, Phase};

impl Core {
    /// Starts a run of a job that has no process. Without an event, the cause is that of the previous run.
    pub(crate) fn start(&mut self, job: JobIx, event: Option<Event>) {
        let periodic = self.planned(job).when.is_periodic();
        let (state, timers) = self.job_and_timers(job);
        let had_timeout = state.start_timeout.is_some();
        timers.cancel(&mut state.start_timeout);
        if let Some(event) = event {
            state.cause = Some(Cause::Event(event));
            if !periodic {
                // W6, W8: each event starts the job with all its restarts and without delay.
                (state.restarts, state.early_exits) = (0, 0);
            }
        }
        state.has_run = true;
        // Jobs that wait for its `timerExpired` may have become unreachable.
        self.plan_state.reachability_dirty |= had_timeout;
        if self.planned(job).exec.is_none() {
            return self.start_without_process(job);
        }
        let run = self.new_run(job);
        self.change(job, Transition::To(Activity::Starting(run)));
        let environment = self.environment(job);
        self.effects.push(Effect::Spawn { job, run, environment });
    }

    /// W11: a job without `exec` only advertises and checks.
    fn start_without_process(&mut self, job: JobIx) {
        if self.phase != Phase::Running {
            // There is nothing to run for the shutdown (S3), and nothing is registered during one.
            return self.begin_stop(job, StopReason::Shutdown);
        }
        self.change(job, Transition::To(Activity::RunningWithoutProcess));
        self.job_mut(job).started_at = Some(self.now);
        if self.planned(job).health.is_none() {
            self.log(Level::Info, Some(job), format_args!("nothing to run and nothing to check"));
            self.change(job, Transition::To(Activity::Waiting));
            return self.begin_stop(job, StopReason::NothingToRun);
        }
        self.begin_service(job);
    }

    /// D4, H3: the first registration and the first checks. A process whose stop signal was requested before it started
    /// gets neither.
    fn begin_service(&mut self, job: JobIx) {
        if self.job(job).is_past_hooks() {
            return;
        }
        if self.job(job).desired == DesiredService::Absent {
            self.advertise_initial_status(job);
        }
        self.begin_checks(job);
    }

    /// A process was started.
    pub(crate) fn started(&mut self, run: RunId, pid: i32) {
        let job = self.plan_state.runs.get(&run).copied();
        let Some(job) = job.filter(|job| self.job(*job).state() == State::Starting) else { return };
        self.change(job, Transition::To(Activity::Running(Run::new(run, pid))));
        self.set_pid(job, Some(pid));
        self.job_mut(job).started_at = Some(self.now);
        let cause = self.cause_suffix(job);
        self.log(Level::Info, Some(job), format_args!("started (pid {pid}){cause}"));
        let signals = core::mem::take(&mut self.job_mut(job).signals_at_start);
        let is_killed = signals.iter().any(|(signal, _)| *signal == Signal::KILL);
        for (signal, reason) in signals {
            self.send_signal(job, signal, reason);
        }
        if self.job(job).stop_stage() == Some(StopStage::Terminate) && !is_killed {
            // The stop started before the process had started, so the stop signal was sent only now.
            self.set_kill_timer(job);
        }
        self.set_run_timeout(job);
        self.begin_service(job);
    }

    fn cause_suffix(&self, job: JobIx) -> String {
        match &self.job(job).cause {
            Some(Cause::ByHand) => ", cause: start by hand".into(),
            Some(Cause::Event(event)) if event.code != Code::Startup => {
                format!(", cause: {} {}", self.origin_name(event.origin), event.code)
            }
            _ => String::new(),
        }
    }
}
