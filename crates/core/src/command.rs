//! Commands: what somebody asks of the supervisor while it runs, and what it answers (X1, X2, D8).
//!
//! Every command is answered exactly once, in the step it is told in, or, if it has to wait for the startup, in the
//! step of the startup. The answer says what was begun; it does not wait for a process to end.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::core::{Core, Phase};
use crate::effect::{Effect, Purpose};
use crate::ids::JobIx;
use crate::job::{Aim, Ending, State};
use crate::plan::Signal;

/// The number of a request, given by whoever asks; the answer carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something that is asked of the supervisor.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Maintenance is to begin or to end (D8). The answer is `Updated`.
    Maintenance(bool),
    /// A job is to run now, whatever it waits for.
    Start(JobIx),
    /// A job is to stop, and to stay so until it is started by hand.
    Stop(JobIx),
    /// A job is to stop if it runs, and to run anew.
    Restart(JobIx),
    /// A signal is to go to the process group of a job.
    Signal(JobIx, Signal),
    /// Variables of every process that is started from now on (P7); nothing and the empty string unset one.
    SetVariables(Vec<(String, Option<String>)>),
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is as it was asked for, and whether it was something else before.
    Updated(bool),
    /// It was done, in words.
    Done(String),
    /// It cannot be done, in words.
    Refused(String),
}

impl Core {
    /// Does what is asked, and answers.
    pub(crate) fn command(&mut self, id: RequestId, command: Command) {
        let answer = self.obey(command);
        self.effects.push(Effect::Reply { id, answer });
    }

    fn obey(&mut self, command: Command) -> Answer {
        match command {
            Command::Maintenance(on) => self.set_maintenance(on),
            Command::SetVariables(variables) => {
                self.set_variables(variables);
                Answer::Done("set".into())
            }
            Command::Start(job) | Command::Stop(job) | Command::Restart(job) | Command::Signal(job, _)
                if job.index() >= self.jobs.len() =>
            {
                Answer::Refused("there is no such job".into())
            }
            Command::Signal(job, signal) => self.signal_by_hand(job, signal),
            Command::Start(_) | Command::Stop(_) | Command::Restart(_) if self.phase != Phase::Running => {
                Answer::Refused("the supervisor is stopping".into())
            }
            Command::Start(job) => self.start_by_hand(job),
            Command::Stop(job) => self.stop_by_hand(job),
            Command::Restart(job) => self.restart_by_hand(job),
        }
    }

    fn signal_by_hand(&mut self, job: JobIx, signal: Signal) -> Answer {
        match (self.job(job).run, self.job(job).pid) {
            (Some(run), Some(pid)) => {
                self.effects.push(Effect::Kill { run, signal, purpose: Purpose::ByHand });
                Answer::Done(format!("signal {} was sent to process group {pid}", signal.0))
            }
            _ => Answer::Refused("it has no process".into()),
        }
    }

    fn start_by_hand(&mut self, job: JobIx) -> Answer {
        let state = self.job(job);
        match (state.state(), state.aim()) {
            (State::Complete, _) => Answer::Refused("it is complete".into()),
            (State::Waiting | State::Delaying, Aim::Up) => {
                self.job_mut(job).triggered = true;
                self.start(job, None);
                Answer::Done("started".into())
            }
            (State::Starting | State::Running, Aim::Up) => Answer::Done(match state.pid {
                Some(pid) => format!("it runs already as pid {pid}"),
                None => "it runs already".into(),
            }),
            _ => Answer::Refused("it is stopping".into()),
        }
    }

    fn stop_by_hand(&mut self, job: JobIx) -> Answer {
        if self.job(job).state() == State::Complete {
            return Answer::Done("it does not run".into());
        }
        self.begin_stop(job, Ending::ByHand);
        Answer::Done("stopping".into())
    }

    fn restart_by_hand(&mut self, job: JobIx) -> Answer {
        match self.job(job).state() {
            State::Waiting | State::Delaying if self.job(job).is_up() => self.start_by_hand(job),
            _ => Answer::Refused("it cannot be restarted".into()),
        }
    }
}
