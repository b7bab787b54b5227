//! The last part of a shutdown: deregister, write the log, close the sockets (S6). The core has set the deadlines (S4).

use std::sync::Arc;
use std::time::{Duration, Instant};

use containerpilot_core::effect::{Exit, ExitDeadlines};
use containerpilot_core::plan::Level;
use containerpilot_process::descendants::kill_descendants;
use containerpilot_process::failpoints::failpoint;

use super::{Decider, Runtime};
use crate::control::ControlServer;
use crate::logs::{Logs, write_stderr};
use crate::messages::{LoopMessage, LoopReceiver};
use crate::runtime::effects::EffectExecutor;
use crate::runtime::panics::caught;
use containerpilot_process::regular_file;
#[cfg(not(test))]
use containerpilot_process::sys;
use containerpilot_views::snapshot::Snapshot;

/// How often messages are handled while services are being deregistered.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(20);

/// S12: where Kubernetes looks for the reason of an exit.
const TERMINATION_LOG: &str = "/dev/termination-log";

impl<D: Decider> Runtime<D> {
    /// Kills the remaining processes, deregisters all services, writes the whole log and closes the connections, each
    /// until its deadline.
    pub(super) fn shut_down(mut self, exit: Exit) -> u8 {
        let ExitDeadlines { descendants, deregister, log, export: export_by, connections } = exit.deadlines;
        let [descendants, deregister, log, export_by, connections] =
            [descendants, deregister, log, export_by, connections].map(|time| self.instant(time));
        let last_state = self.guarded("ending spans", |this| this.end_export(exit.code)).flatten();
        let cgroups = &self.executor.reaper.cgroups;
        cgroups.kill_all();
        let left = kill_descendants(descendants);
        cgroups.remove_all(descendants);
        if left > 0 {
            self.log(Level::Warn, &format!("{left} child processes did not exit after SIGKILL"));
        }
        let Self { receiver, executor, control, export, recording, .. } = self;
        if let Some(Err(error)) = control.as_ref().map(ControlServer::unlink) {
            executor.logs.entry(Level::Warn, None, &error.to_string());
        }
        let EffectExecutor { catalog, logs, mut check_outputs, queries, reloads, net, .. } = executor;
        let net = net.into_started();
        // Its file is written meanwhile, and the log does not wait for it.
        let mut recording_end = None;
        survive(&logs, "ending the recording", || recording_end = recording.end());
        survive(&logs, "reading the last output of checks", || check_outputs.follow_all(&logs));
        // Waiting queries and event streams end now.
        drop(queries);
        drop(reloads);
        if net.is_some() {
            // Deregistering may take a while.
            logs.end_batch();
        }
        survive(&logs, "deregistering services", || {
            failpoint("shutdown");
            let deregistration = catalog.deregister_all();
            while !deregistration.wait(deregister.min(Instant::now() + MESSAGE_INTERVAL))
                && Instant::now() < deregister
            {
                write_entries(&receiver, &logs);
            }
        });
        write_entries(&receiver, &logs);
        drop(receiver);
        // Kubernetes shows its end as the message of the container. Without Kubernetes there is no such file.
        let _ = regular_file::append(TERMINATION_LOG, format!("{}\n", exit.entry.message).as_bytes());
        logs.finish(log, Some(&exit.entry));
        if let Some(end) = recording_end {
            end.wait(log);
        }
        if let Some(export) = export {
            let unsent = export.finish(last_state, export_by);
            if unsent > 0 {
                write_stderr(&format!("otlp: {unsent} log entries and spans were not sent before the exit"));
            }
        }
        if let Some(control) = control {
            control.finish(connections);
        }
        if let Some(net) = net {
            net.finish(connections);
        }
        // The kernel frees the rest faster than destructors.
        #[cfg(not(test))]
        sys::exit_now(exit.code);
        #[cfg(test)]
        exit.code
    }
}

impl<D: Decider> Runtime<D> {
    /// T6: ends every span. Returns the last state of the core, for metrics.
    fn end_export(&mut self, code: u8) -> Option<Arc<Snapshot>> {
        let now = self.now();
        self.export.as_mut()?.end_spans(now, code);
        Some(self.executor.queries.overview(self.core.core()?, &self.executor.catalog))
    }
}

/// Writes the log entries of other threads. Nothing else is handled any more: a query is refused by dropping it.
fn write_entries(receiver: &LoopReceiver, logs: &Logs) {
    for message in receiver.take() {
        if let LoopMessage::Log(level, message) = message {
            logs.entry(level, None, &message);
        }
    }
}

/// Does a part of the shutdown. A panic is logged, because the log must be written in any case.
fn survive(logs: &Logs, during: &str, work: impl FnOnce()) {
    if let Err(panic) = caught(work) {
        logs.entry(Level::Panic, None, &format!("internal error while {during}: {panic}; please report it"));
    }
}
