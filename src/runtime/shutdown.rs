//! The last part of a shutdown: deregister, write the log, close the sockets (S6).

use std::time::{Duration, Instant};

use containerpilot_core::plan::Level;

use super::{Decider, Runtime};
use crate::control::Control;
#[cfg(not(test))]
use crate::process::sys;
use crate::runtime::channel::LoopMessage;
use crate::runtime::effects::EffectExecutor;

/// Writing the last log lines may take this long even if the stop timeout is shorter.
const MIN_LOG_TIMEOUT: Duration = Duration::from_secs(1);

/// How long open connections may take to close.
const NETWORK_TIMEOUT: Duration = Duration::from_millis(100);

impl<D: Decider> Runtime<D> {
    /// Deregisters all services and writes the whole log, within the stop timeout.
    pub(super) fn shut_down(self, code: u8) -> u8 {
        let Self { plan, receiver, executor, control, net, .. } = self;
        if let Some(Err(error)) = control.as_ref().map(Control::unlink) {
            executor.logs.entry(Level::Warn, None, &error);
        }
        let EffectExecutor { catalog, logs, mut check_outputs, queries, reloads, .. } = executor;
        check_outputs.follow_all(&logs);
        let stop_timeout = plan.stop_timeout;
        if net.is_some() {
            // Deregistering may take a while.
            logs.end_batch();
        }
        catalog.deregister_all(plan.deregister_timeout());
        // Messages about the deregistration; nothing else is handled any more.
        for message in receiver.take() {
            if let LoopMessage::Log(level, message) = message {
                logs.entry(level, None, &message);
            }
        }
        // Waiting queries and event streams end now.
        drop(receiver);
        drop(queries);
        drop(reloads);
        logs.finish(Instant::now() + stop_timeout.max(MIN_LOG_TIMEOUT));
        let deadline = Instant::now() + NETWORK_TIMEOUT;
        if let Some(control) = control {
            control.finish(deadline);
        }
        if let Some(net) = net {
            net.finish(deadline);
        }
        // The kernel frees the rest faster than destructors.
        #[cfg(not(test))]
        sys::exit_now(code);
        #[cfg(test)]
        code
    }
}
