//! Moves: what can happen in a state.

use containerpilot_core::ids::{CheckRunId, JobIx, RunId};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;

/// Something that happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The supervisor is ready.
    Ready,
    /// A process starts.
    Started(RunId),
    /// A process has not reported anything when its time is over.
    StartPending(RunId),
    /// A process cannot be started.
    StartFailed(RunId),
    /// A process is ended by a signal before it executes its program.
    KilledBeforeExec(RunId, Signal),
    /// A process exits; of its group, others may remain.
    Exited(RunId, ExitStatus, bool),
    /// Nothing is left of a run.
    Gone(RunId),
    /// A process says that it is ready.
    SaysReady(RunId),
    /// A process says that it stops.
    SaysStopping(RunId),
    /// A check passes or fails.
    Checked(CheckRunId, bool),
    /// The catalog confirms a deregistration.
    Deregistered(JobIx),
    /// The next timer fires.
    Timer,
    /// Half of the time to the next timer passes.
    Pause,
    /// The time of the next timer comes, and the supervisor is told something else first.
    Race,
    /// SIGTERM.
    Terminate,
    /// SIGINT after SIGTERM: the second request to stop.
    Interrupt,
    /// A signal that jobs may wait for.
    Signal(Signal),
    /// The watched service gets its first instance, or loses it.
    Instance(bool),
    /// Maintenance mode is requested, or its end.
    Maintenance(bool),
    /// A job is started by hand.
    Start(JobIx),
    /// A job is stopped by hand.
    Stop(JobIx),
    /// A job is restarted by hand.
    Restart(JobIx),
    /// A reload to this version of the plan.
    Reload(usize),
    /// Another number of replicas.
    Scale(u16),
}
