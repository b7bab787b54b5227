//! How a run starts (P3, W6, W11, D4, H3). Its timeout is in `timeout.rs`, a failed start in `exit.rs`.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::effect::{DesiredService, Effect};
use crate::event::Code;
use crate::ids::{JobIx, RunId};
use crate::input::{StartError, StartErrorKind};
use crate::plan::Level;
use crate::state::job::{Activity, State, StopReason, Transition};
use crate::state::journal::Event;
use crate::state::run::{Cause, Run};
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::JobTimer;
use crate::time::fmt_duration;

/// P3: how long a new process may take to execute its program. The file system of the program or of its directory may
/// not answer, and other processes of its user may stop it.
const EXEC_TIMEOUT: Duration = Duration::from_secs(10);

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
        let timeout = self.set_timer(job, EXEC_TIMEOUT, JobTimer::ExecTimeout);
        self.change(job, Transition::To(Activity::Starting(Run::new(run, timeout))));
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

    /// The process of a run has executed its program.
    pub(crate) fn started(&mut self, run: RunId, pid: i32) {
        let job = self.plan_state.runs.get(&run).copied();
        let Some(job) = job.filter(|job| self.job(*job).state() == State::Starting) else { return };
        let Some(run) = self.job_mut(job).run_mut().map(Run::executed) else { return };
        self.change(job, Transition::To(Activity::Running(run, pid)));
        self.set_pid(job, Some(pid));
        self.job_mut(job).started_at = Some(self.now);
        let cause = self.cause_suffix(job);
        self.log(Level::Info, Some(job), format_args!("started (pid {pid}){cause}"));
        self.set_run_timeout(job);
        self.begin_service(job);
    }

    /// P3: a process has not executed its program in time.
    pub(crate) fn exec_timeout(&mut self, job: JobIx) {
        let Some(run) = self.job_mut(job).run_mut() else { return };
        run.timeout = None;
        let timeout = fmt_duration(EXEC_TIMEOUT);
        let why = format_args!("did not reach exec within {timeout}, sent SIGKILL");
        self.cancel_start(job, StartErrorKind::Other, why);
    }

    /// Gives up a start. Nothing is waited for: the process may be in a state in which SIGKILL does not end it.
    pub(crate) fn cancel_start(&mut self, job: JobIx, kind: StartErrorKind, why: fmt::Arguments<'_>) {
        let Some(run) = self.job(job).run_id().filter(|_| self.job(job).state() == State::Starting) else {
            return;
        };
        self.effects.push(Effect::CancelStart { run });
        let program = self.planned(job).exec.as_ref().map(|exec| exec.program.text());
        let message = format!("{}: {why}", program.unwrap_or_default());
        self.start_failed(run, &StartError { kind, message });
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
