//! How a run ends (P3, P4, P5).

use alloc::format;
use alloc::string::String;

use crate::event::Code;
use crate::ids::{JobIx, RunId};
use crate::input::{ExitStatus, StartError, StartErrorKind};
use crate::plan::{Level, Role, Signal};
use crate::state::job::{Activity, StopStage, Transition};
use crate::state::journal::Origin;
use crate::state::run::LastExit;
use crate::state::supervisor::{Core, Phase};
use crate::time::{Time, fmt_duration};

impl Core {
    /// A process could not be started.
    pub(crate) fn start_failed(&mut self, run: RunId, why: &StartError) {
        let Some(job) = self.plan_state.runs.remove(&run) else { return };
        let status = why.kind.status();
        // A process that is ended by its stop signal has not failed.
        let expected = self.job(job).stop_stage() == Some(StopStage::Terminate);
        let level = match why.kind {
            _ if expected => Level::Info,
            StartErrorKind::Killed(_) => self.failure_level(job, status, Level::Info),
            _ => self.failure_level(job, status, Level::Error),
        };
        self.log(level, Some(job), format_args!("failed to start: {}", why.message));
        let now = self.now;
        let state = self.job_mut(job);
        (state.started_at, state.failure) = (Some(now), (!expected).then_some(status.code()));
        state.start_error = Some(why.message.clone());
        self.run_ended(job, LastExit { run, status, at: now, timed_out: false, out_of_memory: false });
    }

    /// The process of a run exited.
    pub(crate) fn exited(&mut self, run: RunId, status: ExitStatus, orphans: bool) {
        let Some(job) = self.plan_state.runs.remove(&run) else { return };
        if orphans {
            self.set_orphans_timer(run);
        }
        let state = self.job(job).run();
        let (timed_out, killed) = state.map_or((false, false), |run| (run.timed_out, run.killed));
        let (out_of_memory, memory) = self.attribute_oom_kill(status, killed);
        let exit = LastExit { run, status, at: self.now, timed_out, out_of_memory };
        let expected = self.set_failure(job, &exit);
        self.log_exit(job, &exit, &memory, expected);
        self.run_ended(job, exit);
    }

    /// Records whether a run has failed. A process that exits after its stop signal has not. Returns true if the exit
    /// was expected.
    pub(crate) fn set_failure(&mut self, job: JobIx, exit: &LastExit) -> bool {
        let expected = exit.is_success() || self.job(job).stop_stage() == Some(StopStage::Terminate);
        let state = self.job_mut(job);
        state.failure = if expected { None } else { Some(exit.status.code().max(1)) };
        state.start_error = None;
        expected
    }

    fn log_exit(&mut self, job: JobIx, exit: &LastExit, memory: &str, expected: bool) {
        let ran = fmt_duration(self.now.since(self.job(job).started_at.unwrap_or(Time::ZERO)));
        let message = format_args!("exited {} after {ran}{memory}", exit.status);
        if expected {
            return self.log(Level::Info, Some(job), message);
        }
        let level = if exit.out_of_memory { Level::Warn } else { Level::Info };
        let level = self.failure_level(job, exit.status, level);
        self.log_with_output(level, job, message);
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

    /// The level of a failure. A broken sensor fails every few seconds, so a failure that repeats is logged as debug.
    pub(crate) fn failure_level(&self, job: JobIx, status: ExitStatus, level: Level) -> Level {
        let is_sensor = matches!(self.planned(job).role, Role::Sensor(_));
        let repeats = self.job(job).last_exit.is_some_and(|last| last.status == status);
        if is_sensor && repeats { Level::Debug } else { level }
    }

    /// Sends the exit event of a run, and decides what the job does next.
    pub(crate) fn run_ended(&mut self, job: JobIx, exit: LastExit) {
        if self.job(job).pid().is_some() {
            self.set_pid(job, None);
        }
        let state = self.job_mut(job);
        state.last_exit = Some(exit);
        // The exit has the same cause as the run.
        let cause = state.cause_event().map(|event| event.id);
        self.current_event = cause;
        let code = if exit.is_success() { Code::ExitSuccess } else { Code::ExitFailed };
        self.send(Origin::Job(job), code, Some(exit.status));
        self.end_checks(job);
        match self.job(job).stop_stage() {
            Some(StopStage::Deregister | StopStage::Drain | StopStage::Terminate) => self.finish(job),
            Some(StopStage::Hooks) => {
                self.change(job, Transition::To(Activity::Waiting));
                self.enqueue_recheck(job);
            }
            None if self.phase == Phase::Running => self.run_again(job),
            None => self.run_again_during_shutdown(job),
        }
    }
}
