//! What a signal to the supervisor means (S1, S7, W3, R1, L1, C8). Which signals are
//! received at all is up to the runtime (`src/process/signals.rs`).

use core::time::Duration;

use crate::effect::KillReason;
use crate::event::{Code, Source, UserSignal};
use crate::plan::{Level, Plan, Role, Signal};
use crate::state::job::State;
use crate::state::journal::Origin;
use crate::state::supervisor::{Core, Phase};

/// One request to stop may arrive as two signals: `timeout` signals its child and then the whole process group, as do
/// terminals and some scripts. A user who stops the supervisor a second time takes longer.
const SAME_REQUEST: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Forward it to the main program (S7).
    Forward,
    /// Shut down (S1).
    Stop,
    /// Send an event that jobs may wait for (W3).
    Event,
    /// Enter or leave maintenance mode, as in ContainerPilot 2 (C8).
    ToggleMaintenance,
    Nothing,
}

fn meaning(plan: &Plan, signal: Signal) -> Meaning {
    match signal {
        _ if plan.pass_signals => Meaning::Forward,
        Signal::TERM | Signal::INT => Meaning::Stop,
        Signal::HUP | Signal::USR2 => Meaning::Event,
        Signal::USR1 if plan.toggle_maintenance => Meaning::ToggleMaintenance,
        _ => Meaning::Nothing,
    }
}

/// Returns true if a signal requests a reload: SIGHUP, unless a job waits for it or signals are forwarded (R1, S7).
#[must_use]
pub fn reloads_at(plan: &Plan, signal: Signal) -> bool {
    let waits = |source: &Source| matches!(source, Source::Signal(UserSignal::Hup));
    let mut patterns = plan.jobs.iter().flat_map(|job| job.when.patterns());
    signal == Signal::HUP && !plan.pass_signals && !patterns.any(|pattern| waits(&pattern.source))
}

/// Returns true if a signal requests that the log file is reopened (L1).
#[must_use]
pub fn reopens_log(signal: Signal) -> bool {
    signal == Signal::USR1
}

/// Returns true if a signal that arrives before startup is kept until then.
pub(crate) fn waits_for_startup(plan: &Plan, signal: Signal) -> bool {
    meaning(plan, signal) == Meaning::Event
}

impl Core {
    pub(crate) fn signal(&mut self, signal: Signal) {
        match meaning(self.plan(), signal) {
            Meaning::Forward => self.forward(signal),
            Meaning::Stop => self.stop_signal(signal),
            Meaning::Event if self.phase == Phase::Running => {
                self.send(Origin::Signal(signal.0), Code::Signal, None);
            }
            Meaning::ToggleMaintenance => {
                self.set_maintenance(!self.maintenance);
            }
            Meaning::Event | Meaning::Nothing => {}
        }
    }

    /// S1: the first signal shuts down, the second one kills. The first signal during a shutdown that no signal has
    /// requested does not count as the second, and neither does the same request twice.
    fn stop_signal(&mut self, signal: Signal) {
        match (self.phase, self.stop_signal) {
            (Phase::Starting | Phase::Running, _) => {
                self.log(Level::Info, None, format_args!("received {signal}, shutting down"));
                self.set_exit_code_zero();
                self.stop_signal = Some((signal, self.now));
                self.shut_down();
            }
            (Phase::Stopping, None) => {
                self.log(Level::Info, None, format_args!("received {signal}, already shutting down"));
                self.stop_signal = Some((signal, self.now));
            }
            (Phase::Stopping, Some((first, at))) if first == signal && self.now.since(at) < SAME_REQUEST => {
                self.log(Level::Debug, None, format_args!("received {signal} twice, counted once"));
            }
            (Phase::Stopping, Some(_)) => {
                self.kill_all(format_args!("received a second stop signal ({signal})"));
            }
            (Phase::Killing | Phase::Exited, _) => {}
        }
    }

    /// S7: forwards a signal to the main program. A signal that arrives before its process has started is kept.
    fn forward(&mut self, signal: Signal) {
        let main = self.all_jobs().find(|job| self.planned(*job).role == Role::Main);
        let Some(job) = main else { return };
        match self.job(job).state() {
            State::Running => self.send_signal(job, signal, KillReason::Forwarded),
            State::Complete => {}
            State::Waiting | State::Starting | State::Delaying => {
                self.job_mut(job).signals_at_start.push((signal, KillReason::Forwarded));
            }
        }
    }
}
