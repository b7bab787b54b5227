//! Commands: what somebody asks of the supervisor while it runs, and what it answers (X1, X2, D8).
//!
//! Every command is answered exactly once, in the step it is told in, or, if it has to wait for the startup, in the
//! step of the startup; a reload, when it is done. The answer says what was begun; it does not wait for a process to end.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::effect::{Effect, Purpose};
use crate::ids::{EventId, JobIx};
use crate::plan::{Plan, Role, Signal, Trigger};
use crate::rules::reload::Changes;
use crate::state::dependency_graph::{Key, does_work, is_stop_event};
use crate::state::job::{Aim, Ending, State};
use crate::state::supervisor::{Core, Phase};

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
    /// Another plan takes the place of the present one (R1–R4). The answer is `Reloaded`, when that is done.
    Reload(Box<Plan>),
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
    /// Another plan is in force.
    Reloaded(Changes),
    /// It cannot be done, in words.
    Refused(String),
}

impl Core {
    /// Does what is asked, and answers.
    #[inline(never)]
    pub(crate) fn command(&mut self, id: RequestId, command: Command) {
        let answer = match command {
            // That is answered when it is done.
            Command::Reload(plan) => return self.reload(id, plan),
            command => self.obey(command),
        };
        self.effects.push(Effect::Reply { id, answer });
    }

    fn obey(&mut self, command: Command) -> Answer {
        match command {
            Command::Maintenance(on) => self.set_maintenance(on),
            Command::Reload(_) => Answer::Refused("a reload is answered when it is done".into()),
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
            Command::Start(job) | Command::Stop(job) | Command::Restart(job)
                if self.planned(job).role == Role::Telemetry =>
            {
                Answer::Refused("it is the supervisor's own".into())
            }
            Command::Start(job) | Command::Restart(job) if self.is_replaced(job) => {
                Answer::Done("a reload is under way, and sees to it".into())
            }
            Command::Start(job) => self.start_by_hand(job),
            Command::Stop(job) => self.stop_by_hand(job),
            Command::Restart(job) => self.restart_by_hand(job),
        }
    }

    fn signal_by_hand(&mut self, job: JobIx, signal: Signal) -> Answer {
        match (self.job(job).run, self.job(job).pid) {
            (Some(run), Some(pid)) => {
                self.send_signal(job, run, signal, Purpose::ByHand);
                Answer::Done(format!("signal {} was sent to process group {pid}", signal.0))
            }
            _ => Answer::Refused("it has no process".into()),
        }
    }

    /// A job runs now, with all its restarts, whatever it waits for. One that is complete begins a new life.
    fn start_by_hand(&mut self, job: JobIx) -> Answer {
        match (self.job(job).state(), self.job(job).aim()) {
            (State::Complete, _) => {
                self.revive(job);
                self.run_by_hand(job);
                Answer::Done("it is started".into())
            }
            (State::Waiting | State::Delaying, Aim::Up) => {
                self.run_by_hand(job);
                Answer::Done("it is started".into())
            }
            (State::Starting | State::Running, Aim::Up) => Answer::Done(match self.job(job).pid {
                Some(pid) => format!("it runs already as pid {pid}"),
                None => "it runs already".into(),
            }),
            (_, Aim::Hooks | Aim::Withdraw | Aim::Drain | Aim::Term) => {
                let state = self.job_mut(job);
                (state.again, state.ending) = (true, Some(Ending::ByHand));
                // What it waits for before it stops may have done its work already.
                self.enqueue_recheck(job);
                Answer::Done("it is stopping, and is started again then".into())
            }
        }
    }

    fn run_by_hand(&mut self, job: JobIx) {
        let generations = self.generations;
        let first = !self.job(job).triggered;
        let state = self.job_mut(job);
        (state.triggered, state.triggered_after) = (true, generations);
        (state.by_hand, state.cause) = (true, None);
        if matches!(self.planned(job).when.trigger, Trigger::Interval(_)) {
            // One that has not had its first turn has it now; another run between two turns is not counted.
            if first {
                self.begin_turns(job);
            }
        } else {
            let state = self.job_mut(job);
            (state.restarts, state.early) = (0, 0);
        }
        self.start(job, None);
    }

    fn stop_by_hand(&mut self, job: JobIx) -> Answer {
        if self.job(job).state() == State::Complete {
            return Answer::Done("it does not run".into());
        }
        if !self.job(job).is_up() {
            // Whoever wanted it to run again does not any more.
            self.job_mut(job).again = false;
            return Answer::Done("it is stopping already".into());
        }
        self.begin_stop(job, Ending::ByHand);
        Answer::Done(if self.job(job).has_process() { "it is stopping" } else { "it is stopped" }.into())
    }

    /// A job is stopped in its steps and then started, in a new life; one that has no process is only started.
    fn restart_by_hand(&mut self, job: JobIx) -> Answer {
        if !self.job(job).is_up() || matches!(self.job(job).state(), State::Waiting | State::Delaying) {
            return self.start_by_hand(job);
        }
        self.job_mut(job).again = true;
        self.begin_stop(job, Ending::ByHand);
        Answer::Done("it is stopping, and is started again then".into())
    }

    /// A job that was to run again is complete, and does.
    #[inline(never)]
    pub(crate) fn live_again(&mut self, job: JobIx) {
        if self.is_replaced(job) {
            // It begins anew with the reload, which would only stop it again until then.
            return self.job_mut(job).ending = Some(Ending::Reload);
        }
        if self.phase == Phase::Running && self.job(job).state() == State::Complete {
            self.revive(job);
            self.run_by_hand(job);
        }
    }

    /// A job that is complete begins a new life. What runs at its end lives again with it.
    pub(crate) fn revive(&mut self, job: JobIx) {
        let counted = self.job(job).comes_again();
        self.incomplete += 1;
        if self.graph.holds_open(job) && !counted {
            self.holding += 1;
        }
        self.generations += 1;
        let state = &mut self.jobs[job.index()];
        *state = state.reborn(&self.plan.jobs[job.index()], EventId(self.next_event));
        state.born = self.generations;
        self.reachability_dirty = true;
        self.revive_hooks(job);
    }

    /// What has run at the end of a job is there for the end of its next life, too.
    pub(crate) fn revive_hooks(&mut self, job: JobIx) {
        for hook in self.stop_hooks_of(job) {
            let ended =
                matches!(self.job(hook).ending, Some(Ending::Done | Ending::Failed | Ending::Unreachable));
            if self.job(hook).state() == State::Complete && ended && !does_work(self.planned(hook)) {
                self.revive(hook);
                self.set_give_up(hook);
            }
        }
    }

    /// The jobs that wait for the end of this one.
    fn stop_hooks_of(&self, job: JobIx) -> Vec<JobIx> {
        let name = self.graph.name(job);
        self.graph
            .dependents(job)
            .iter()
            .copied()
            .filter(|hook| self.stop_event_sources(*hook).any(|id| id == name))
            .collect()
    }

    /// The names whose end a job waits for.
    pub(crate) fn stop_event_sources(&self, job: JobIx) -> impl Iterator<Item = u32> + '_ {
        let patterns = self.planned(job).when.patterns().iter().zip(self.graph.keys(job));
        patterns.filter_map(|(event, key)| match key {
            Key::Name(id) if is_stop_event(event.code) => Some(*id),
            _ => None,
        })
    }
}
