//! What a signal to the supervisor means (S1, S7, S8, W3, R1, L1, C8). The runtime receives every signal that can be
//! caught, except SIGCHLD (`crates/process/src/signals.rs`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::effect::KillReason;
use crate::event::{Code, Source};
use crate::log_entry::Fields;
use crate::plan::{Level, Plan, Role, Signal};
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::supervisor::{Core, SAME_REQUEST};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Forward it to the main program (S7).
    Forward,
    /// Shut down (S1).
    Stop,
    /// Send an event that jobs may wait for (W3).
    Event(Signal),
    /// Enter or leave maintenance mode, as in ContainerPilot 2 (C8).
    ToggleMaintenance,
    /// Nothing here: the runtime reopens the log (L1), or the kernel has done what it means.
    HandledElsewhere,
    /// Nothing at all. It must not end the supervisor (S1).
    Nothing,
}

fn meaning(plan: &Plan, signal: Signal) -> Meaning {
    match signal {
        _ if plan.pass_signals => Meaning::Forward,
        _ if plan.stop_on.contains(&signal) => Meaning::Stop,
        Signal::USR1 if plan.legacy_maintenance => Meaning::ToggleMaintenance,
        Signal::HUP | Signal::USR2 => Meaning::Event(signal),
        _ if is_awaited(plan, signal) => Meaning::Event(signal),
        // systemd sends SIGCONT with every SIGTERM, for processes that are stopped.
        Signal::USR1 | Signal::CONT => Meaning::HandledElsewhere,
        _ => Meaning::Nothing,
    }
}

/// Returns true if a job waits for a signal (W3).
fn is_awaited(plan: &Plan, signal: Signal) -> bool {
    let mut patterns = plan.jobs.iter().flat_map(|job| job.when.patterns());
    patterns.any(|pattern| pattern.source == Source::Signal(signal))
}

/// Returns true if a signal requests a reload: SIGHUP, unless a job waits for it, it shuts down, or signals are
/// forwarded (R1, S7, S8).
#[must_use]
pub fn reloads_at(plan: &Plan, signal: Signal) -> bool {
    signal == Signal::HUP
        && !plan.pass_signals
        && !plan.stop_on.contains(&signal)
        && !is_awaited(plan, signal)
}

/// Returns true if a signal requests that the log file is reopened (L1).
#[must_use]
pub fn reopens_log(signal: Signal) -> bool {
    signal == Signal::USR1
}

/// Returns true if a signal that arrives before startup is kept until then: there is a main program then (S7).
pub(crate) fn waits_for_startup(plan: &Plan, signal: Signal) -> bool {
    matches!(meaning(plan, signal), Meaning::Event(_) | Meaning::Forward)
}

/// The fields of an entry about a received signal.
fn received(signal: Signal) -> Fields {
    Fields::from(Code::Signal).signal(signal)
}

impl Core {
    pub(crate) fn signal(&mut self, signal: Signal) {
        match meaning(self.plan(), signal) {
            Meaning::Forward => self.forward(signal),
            Meaning::Stop => self.stop_signal(signal),
            Meaning::Event(signal) if self.phase == Phase::Running => {
                self.send(Origin::Signal(signal), Code::Signal);
            }
            Meaning::ToggleMaintenance => {
                self.set_maintenance(!self.maintenance);
            }
            Meaning::Event(_) | Meaning::HandledElsewhere => {}
            Meaning::Nothing => self.ignore_signal(signal),
        }
    }

    /// Logs a signal without a meaning, once: it may have been meant to stop the container, as in images with another
    /// `STOPSIGNAL`.
    fn ignore_signal(&mut self, signal: Signal) {
        if self.ignored_signals.insert(signal) {
            let names: Vec<String> = self.plan().stop_on.iter().map(ToString::to_string).collect();
            let stop_signals = match names.as_slice() {
                [first @ .., last] if !first.is_empty() => {
                    format!("the stop signals are {} and {last}", first.join(", "))
                }
                names => format!("the stop signal is {}", names.join(", ")),
            };
            let message = format_args!("received {signal}, ignored; {stop_signals}");
            self.log(Level::Info, None, received(signal), message);
        }
    }

    /// S1: the first signal shuts down, the second one kills. The first signal during a shutdown that no signal has
    /// requested does not count as the second, and neither does the same request twice.
    fn stop_signal(&mut self, signal: Signal) {
        match (self.phase, self.stop_signal) {
            (Phase::Starting | Phase::Running, _) => {
                let fields = Fields::from(Code::Shutdown).signal(signal).cause(signal.to_string());
                self.log(Level::Info, None, fields, format_args!("received {signal}, shutting down"));
                self.exit_by_signal(signal);
                self.stop_signal = Some((signal, self.now));
                self.shut_down();
            }
            (Phase::Stopping | Phase::Terminating, None) => {
                let message = format_args!("received {signal}, already shutting down");
                self.log(Level::Info, None, received(signal), message);
                self.stop_signal = Some((signal, self.now));
            }
            (Phase::Stopping | Phase::Terminating, Some((first, at)))
                if first == signal && self.now.since(at) < SAME_REQUEST =>
            {
                let message = format_args!("received {signal} twice, counted once");
                self.log(Level::Debug, None, received(signal), message);
            }
            (Phase::Stopping | Phase::Terminating, Some(_)) => {
                self.kill_all(format_args!("received a second stop signal ({signal})"));
            }
            (Phase::Killing | Phase::Exited, _) => {}
        }
    }

    /// S7: forwards a signal to the main program.
    fn forward(&mut self, signal: Signal) {
        let main = self.all_jobs().find(|job| self.planned(*job).role == Role::Main);
        if let Some(job) = main {
            self.send_signal(job, signal, KillReason::Forwarded);
        }
    }
}
