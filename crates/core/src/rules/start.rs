//! How a run starts (P3, P14, W6, W11, D4, H3). Its timeout is in `timeout.rs`, a failed start in `exit.rs`.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::effect::{DesiredService, Effect};
use crate::event::Code;
use crate::ids::{EventId, JobIx, RunId};
use crate::input::{StartError, StartErrorKind};
use crate::log_entry::{Fields, LogEvent};
use crate::plan::{Exec, Level};
use crate::state::job::{Activity, State, StopReason, Transition};
use crate::state::journal::{Event, Origin, Start};
use crate::state::phase::Phase;
use crate::state::run::{Cause, Run};
use crate::state::start_queue::NewProcess;
use crate::state::timers::JobTimer;
use crate::supervisor::Core;
use crate::time::fmt_duration;
use crate::variables::ProcessEnvironment;

/// P3: how long a new process may take to execute its program. The file system of the program or of its directory may
/// not answer, and other processes of its user may stop it.
const EXEC_TIMEOUT: Duration = Duration::from_secs(10);

impl Core {
    /// Starts a run of a job that has no process. Without an event, the cause is that of the previous run.
    pub(crate) fn start(&mut self, job: JobIx, event: Option<Event>) {
        let periodic = self.planned(job).when.is_periodic();
        let by_itself = event.is_some_and(|event| self.triggers_itself(job, &event));
        self.end_start_timeout(job);
        let state = self.job_mut(job);
        // What waited for the restart delay (W14) or a requirement (W18) is served by this run, too.
        state.pending.serve();
        (state.deferred, state.ticks.pending) = (None, false);
        if let Some(event) = event {
            state.cause = Some(Cause::Event(event));
            if !periodic {
                // W6, W8: each event starts the job with all its restarts and, unless it triggers itself, without
                // delay.
                state.restarts = 0;
                state.early_exits = if by_itself { state.early_exits } else { 0 };
            }
        }
        match &self.planned(job).exec {
            Exec::Program(_) => {}
            Exec::Action(_) => return self.start_action(job),
            Exec::Nothing => return self.start_without_process(job),
        }
        let run = self.new_run(job);
        if self.starts.request(NewProcess::Job(run), self.now) {
            self.create_process(job, run, self.environment(job));
        } else {
            let variables = self.shared_variables();
            self.change(job, Transition::To(Activity::Queued(run, Some(variables))));
        }
    }

    /// P14: drops a start that waits for its turn. Nothing has happened, so there is no event.
    pub(crate) fn leave_queue(&mut self, job: JobIx) {
        if let Some(run) = self.job(job).queued_run() {
            self.starts.withdraw(NewProcess::Job(run));
            self.plan_state.runs.remove(&run);
            self.change(job, Transition::To(Activity::Waiting));
        }
    }

    pub(crate) fn create_process(&mut self, job: JobIx, run: RunId, environment: ProcessEnvironment) {
        self.begin_run(job);
        let timeout = self.set_timer(job, EXEC_TIMEOUT, JobTimer::ExecTimeout);
        let overrides = Arc::clone(environment.jobs.overrides());
        self.change(job, Transition::To(Activity::Starting(Run::new(run, overrides, timeout))));
        self.effects.push(Effect::Spawn { job, run, environment });
    }

    /// A run begins, of a program, an action or nothing but checks.
    pub(crate) fn begin_run(&mut self, job: JobIx) {
        self.job_mut(job).has_run = true;
        self.exit_codes.has_worked |= self.is_work(job);
    }

    /// W11: a job without `exec` only advertises and checks.
    fn start_without_process(&mut self, job: JobIx) {
        if self.phase != Phase::Running {
            // There is nothing to run for the shutdown (S3), and nothing is registered during one.
            return self.begin_stop(job, StopReason::Shutdown);
        }
        self.change(job, Transition::To(Activity::RunningWithoutProcess));
        self.begin_run(job);
        self.job_mut(job).started_at = Some(self.now);
        if self.planned(job).health.is_none() {
            let message = format_args!("nothing to run and nothing to check");
            self.log(Level::Info, Some(job), Code::Stopping, message);
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
        self.starts.end(NewProcess::Job(run));
        let job = self.plan_state.runs.get(&run).copied();
        let Some(job) = job.filter(|job| self.job(*job).state() == State::Starting) else { return };
        let Some(executed) = self.job_mut(job).run_mut().map(Run::executed) else { return };
        self.change(job, Transition::To(Activity::Running(executed, pid)));
        self.set_pid(job, Some(pid));
        self.job_mut(job).started_at = Some(self.now);
        self.record_start(job, run, pid);
        let fields = LogEvent::Started.fields().pid(Some(pid));
        let cause = self.cause_words(job);
        let at_startup = self.job(job).cause_event().is_some_and(|event| event.code == Code::Startup);
        // People need neither the source of a global event nor the code of a signal.
        let suffix = match &cause {
            Some(cause) if !at_startup => {
                let cause = cause.strip_prefix("global ").unwrap_or(cause);
                format!(", cause: {}", cause.strip_suffix(" signal").unwrap_or(cause))
            }
            _ => String::new(),
        };
        let fields = Fields { cause: cause.map(Into::into), ..fields };
        self.log(Level::Info, Some(job), fields, format_args!("started (pid {pid}){suffix}"));
        self.set_run_timeout(job);
        self.announce_early_readiness(job);
        self.begin_service(job);
    }

    /// X10: the start of a run is in the journal.
    fn record_start(&mut self, job: JobIx, run: RunId, pid: i32) {
        let state = self.job(job);
        let trigger = state.cause_event().map(|event| event.id);
        let tick = matches!(state.cause, Some(Cause::Tick(_)));
        let cron = self.planned(job).when.cron().is_some();
        let restarts = if self.planned(job).when.is_periodic() { 0 } else { state.restarts };
        let (after, at, origin) = (EventId(self.last_ids.event), self.now, Origin::Job(job));
        self.journal.write_start(Start { run, after, at, origin, pid, trigger, tick, cron, restarts });
    }

    /// P3: a process has not executed its program in time, as far as is known. The supervisor may have been too late to
    /// read what it has reported, so it is asked first.
    pub(crate) fn exec_timeout(&mut self, job: JobIx) {
        let Some(run) = self.job_mut(job).run_mut() else { return };
        run.timeout = None;
        let run = run.id;
        self.effects.push(Effect::InspectStart { run });
    }

    /// P14: a process could not execute its program, because it had no processor: it gets its time again.
    pub(crate) fn start_delayed(&mut self, run: RunId) {
        let job = self.plan_state.runs.get(&run).copied();
        let Some(job) = job.filter(|job| self.job(*job).state() == State::Starting) else { return };
        let timeout = self.set_timer(job, EXEC_TIMEOUT, JobTimer::ExecTimeout);
        if let Some(run) = self.job_mut(job).run_mut() {
            run.timeout = Some(timeout);
        }
    }

    /// P3: a process has not reached exec within its timeout.
    pub(crate) fn start_pending(&mut self, run: RunId) {
        let Some(job) = self.plan_state.runs.get(&run).copied() else { return };
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
        let program = self.planned(job).exec.program().map(|exec| exec.program.text());
        let message = format!("{}: {why}", program.unwrap_or_default());
        self.start_failed(run, &StartError { kind, message });
    }

    /// What a run was started by.
    pub(crate) fn cause_words(&self, job: JobIx) -> Option<String> {
        Some(match self.job(job).cause.as_ref()? {
            Cause::ByHand => "start by hand".into(),
            Cause::Tick(_) if self.planned(job).when.cron().is_some() => "cron".into(),
            Cause::Action(job) => format!("action of {}", self.origin_name(*job)),
            Cause::Tick(_) => "interval".into(),
            Cause::Event(event) => format!("{} {}", self.origin_name(event.origin), event.code),
        })
    }

    /// Has the action of a job performed.
    fn start_action(&mut self, job: JobIx) {
        let run = self.last_ids.new_run();
        self.change(job, Transition::To(Activity::Acting(run)));
        self.plan_state.actions.push_back(job);
    }
}
