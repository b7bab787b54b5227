//! How a run ends (P3, P4, P5).

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::event::Code;
use crate::ids::{EventId, JobIx, RunId};
use crate::input::{ExitStatus, Remains, StartError, StartErrorKind};
use crate::log_entry::{Fields, LogEvent};
use crate::plan::{Level, Signal};
use crate::state::job::{Activity, Rest, Stage, StopStage, Transition};
use crate::state::journal::{Detail, Origin};
use crate::state::phase::Phase;
use crate::state::run::{LastExit, Run};
use crate::state::start_queue::NewProcess;
use crate::state::timers::JobTimer;
use crate::supervisor::Core;
use crate::time::{Time, fmt_duration};

/// Processes that exit with that of their job are not worth a word.
const REPORT_DELAY: Duration = Duration::from_millis(100);

impl Core {
    /// A process could not be started.
    pub(crate) fn start_failed(&mut self, run: RunId, why: &StartError) {
        let Some(job) = self.plan_state.runs.remove(&run) else { return };
        let status = why.kind.status();
        // A process that is ended by its stop signal has not failed.
        let expected = self.job(job).stop_stage() == Some(StopStage::Terminate);
        let level = match why.kind {
            _ if expected => Level::Info,
            StartErrorKind::Killed(_) => self.exit_failure_level(job, status, false),
            _ => self.failure_level(job, status),
        };
        let fields = Fields::from(Code::ExitFailed).status(status).cause(why.message.as_str());
        self.log(level, Some(job), fields, format_args!("failed to start: {}", why.message));
        let now = self.now;
        let state = self.job_mut(job);
        state.started_at = Some(now);
        state.set_failure((!expected).then_some(status.code()), false);
        state.start_error = Some(why.message.clone());
        let ended_by = self.end_reason(job, false);
        // W13: `successCodes` applies only to programs that ran.
        let exit = LastExit {
            ended_by,
            successful: false,
            ..LastExit::new(run, self.planned(job), status, now, None)
        };
        self.run_ended(job, exit);
    }

    /// The process of a run exited.
    pub(crate) fn exited(&mut self, run: RunId, status: ExitStatus, remains: &Remains) {
        let Some(job) = self.plan_state.runs.get(&run).copied() else { return };
        let is_outlived = *remains != Remains::Nothing && self.was_ended(job);
        if !is_outlived {
            self.plan_state.runs.remove(&run);
            if matches!(remains, Remains::Group(_)) {
                self.set_orphans_timer(run);
            }
        }
        let state = self.job(job).run();
        let (timed_out, killed) = state.map_or((false, false), |run| (run.timed_out, run.killed));
        let (out_of_memory, memory) = self.attribute_oom_kill(status, killed);
        let pid = self.job(job).pid();
        let (just_healthy, ended_by) = (self.healthy_before_exit(job), self.end_reason(job, timed_out));
        let exit = LastExit::new(run, self.planned(job), status, self.now, pid);
        let exit = LastExit { timed_out, out_of_memory, ended_by, just_healthy, ..exit };
        let expected = self.set_failure(job, &exit);
        self.log_exit(job, &exit, &memory, expected);
        if is_outlived {
            self.process_ended(job, exit);
            self.end_checks(job);
            self.outlive(job, remains);
        } else {
            self.run_ended(job, exit);
        }
    }

    /// Returns true if the supervisor has ended the current run, or would have soon. An exit by itself is followed by
    /// what the job does next, whatever is left of the run (P4).
    fn was_ended(&self, job: JobIx) -> bool {
        let state = self.job(job);
        state.is_past_hooks() || state.run().is_some_and(|run| run.stop_signal_at.is_some() || run.killed)
    }

    /// S14: waits for the other processes of a run.
    fn outlive(&mut self, job: JobIx, remains: &Remains) {
        let Some(run) = self.job_mut(job).run_mut().map(Run::outlived) else { return };
        let is_signalled = run.stop_signal_at.is_some() || run.killed;
        let names = match remains {
            Remains::Group(names) => Some(names.clone()),
            Remains::Unknown | Remains::Nothing => None,
        };
        let rest = Rest { names, has_daemons: false };
        self.change(job, Transition::To(Activity::Outlived(run, rest)));
        let timer = self.set_timer(job, REPORT_DELAY, JobTimer::Outlived);
        if let Some(run) = self.job_mut(job).run_mut() {
            run.timeout = Some(timer);
        }
        if self.job(job).is_past_hooks() {
            self.change_stage(job, Stage::Terminate);
        }
        if !is_signalled {
            self.begin_escalation(job);
        }
    }

    /// S14: logs the other processes of a run, if they do not exit together with its process.
    pub(crate) fn report_rest(&mut self, job: JobIx) {
        if let Some(run) = self.job_mut(job).run_mut() {
            run.timeout = None;
        }
        let names = self.job_mut(job).rest_mut().and_then(|rest| rest.names.take());
        if let Some(names) = names {
            let message =
                format_args!("waiting for the rest of its process group; at its exit that was {names}");
            self.log(Level::Info, Some(job), LogEvent::Orphans.fields(), message);
        }
    }

    /// S14: nothing is left of a run whose process has exited.
    pub(crate) fn outlived_run_ended(&mut self, job: JobIx, run: RunId) {
        self.plan_state.runs.remove(&run);
        self.continue_after_run(job);
    }

    /// Records whether a run has failed. A process that exits after its stop signal has not. Returns true if the exit
    /// was expected.
    pub(crate) fn set_failure(&mut self, job: JobIx, exit: &LastExit) -> bool {
        let expected = exit.is_success() || self.job(job).stop_stage() == Some(StopStage::Terminate);
        let state = self.job_mut(job);
        state
            .set_failure(if expected { None } else { Some(exit.status.code().max(1)) }, exit.was_unhealthy());
        state.start_error = None;
        expected
    }

    fn log_exit(&mut self, job: JobIx, exit: &LastExit, memory: &str, expected: bool) {
        let ran = self.now.since(self.job(job).started_at.unwrap_or(Time::ZERO));
        let event = if exit.is_success() { Code::ExitSuccess } else { Code::ExitFailed };
        let fields = Fields::from(event).pid(self.job(job).pid()).status(exit.status).duration(ran);
        let fields = match exit {
            LastExit { ended_by: Some(reason), .. } => fields.cause(reason.name()),
            LastExit { out_of_memory: true, .. } => fields.cause("out of memory"),
            _ => fields,
        };
        let (ran, health) = (fmt_duration(ran), exit.suspicion());
        let message = format_args!("exited {} after {ran}{memory}{health}", exit.status);
        if expected {
            return self.log(Level::Info, Some(job), fields, message);
        }
        let level = self.exit_failure_level(job, exit.status, exit.out_of_memory);
        self.log_with_output(level, job, fields, message);
    }

    /// Decides whether the OOM killer has caused an exit: the process exited on a SIGKILL that the supervisor has not
    /// sent, or with the code by which a shell reports one. Returns that with a suffix for the log message.
    fn attribute_oom_kill(&mut self, status: ExitStatus, killed: bool) -> (bool, String) {
        let suspicious = match status {
            ExitStatus::Signal(signal) => signal == Signal::KILL && !killed,
            ExitStatus::Code(code) => code == ExitStatus::Signal(Signal::KILL).code(),
        };
        match (if suspicious { self.oom_kills } else { Some(0) }, status) {
            (Some(0), _) | (None, ExitStatus::Code(_)) => (false, String::new()),
            (None, ExitStatus::Signal(_)) => {
                (false, " (not sent by the supervisor, possibly out of memory)".into())
            }
            (Some(count), _) => {
                // The others may explain other exits.
                self.oom_kills = Some(count - 1);
                let processes = if count == 1 { "a process" } else { "processes" };
                (true, format!(" (out of memory: the kernel killed {processes} of this container)"))
            }
        }
    }

    /// Sends the exit event of a run, and decides what the job does next.
    pub(crate) fn run_ended(&mut self, job: JobIx, exit: LastExit) {
        // X10: what follows from an exit by itself is caused by the exit; what follows from a stop is not.
        let by_itself = exit.ended_by.is_none() && self.job(job).is_up();
        let current_event = self.current_event;
        self.process_ended(job, exit);
        if by_itself {
            self.current_event = Some(EventId(self.last_ids.event));
        }
        self.end_checks(job);
        self.continue_after_run(job);
        self.current_event = current_event;
    }

    /// Records the exit of a process and sends its event.
    fn process_ended(&mut self, job: JobIx, exit: LastExit) {
        self.starts.end(NewProcess::Job(exit.run));
        if self.job(job).pid().is_some() {
            self.set_pid(job, None);
        }
        let state = self.job_mut(job);
        state.last_exit = Some(exit);
        state.runs.count(&exit, state.failed_runs > 0);
        // X10: the exit, and only that, names the event that started the run.
        let started_by = state.cause_event().map(|event| event.id);
        let current_event = core::mem::replace(&mut self.current_event, started_by);
        let code = if exit.is_success() { Code::ExitSuccess } else { Code::ExitFailed };
        self.send_with(Origin::Job(job), code, Detail::Exit { status: exit.status, ended_by: exit.ended_by });
        self.current_event = current_event;
    }

    /// Decides what a job does next whose run has ended.
    fn continue_after_run(&mut self, job: JobIx) {
        match self.job(job).stop_stage() {
            Some(StopStage::Deregister | StopStage::Drain | StopStage::Terminate) => self.finish(job),
            Some(StopStage::Requirers | StopStage::Hooks) => {
                self.change(job, Transition::To(Activity::Waiting));
                self.enqueue_recheck(job);
            }
            None if self.phase == Phase::Running => self.run_again(job),
            None => self.run_again_during_shutdown(job),
        }
    }
}
