//! The look-ups of checks by host name. Checks of the same name share one look-up. A look-up that no check waits for
//! any more is aborted, so a silent name server cannot pile them up.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use containerpilot_core::ids::CheckRunId;
use containerpilot_core::input::CheckError;
use containerpilot_process::failpoints::guarded;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::messages::{LoopMessage, LoopSender};
use crate::net::{LazyNet, resolve};

/// Look-ups in progress at the same time, each with one socket. Further ones wait until one ends, or until their checks
/// time out.
const CONCURRENT_LOOK_UPS: usize = 32;

#[derive(Debug)]
pub(super) struct LookUps {
    sender: LoopSender,
    slots: Arc<Semaphore>,
    by_host: BTreeMap<String, LookUp>,
}

/// A look-up in progress. Dropping it aborts its task.
#[derive(Debug)]
struct LookUp {
    /// The checks that wait for it; never empty.
    checks: Vec<CheckRunId>,
    task: AbortHandle,
}

impl Drop for LookUp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LookUps {
    pub(super) fn new(sender: LoopSender) -> Self {
        Self { sender, slots: Arc::new(Semaphore::new(CONCURRENT_LOOK_UPS)), by_host: BTreeMap::new() }
    }

    /// Lets a check wait for the addresses of a host. Fails if the network thread cannot be started.
    pub(super) fn join(&mut self, host: &str, check: CheckRunId, net: &mut LazyNet) -> io::Result<()> {
        if let Some(look_up) = self.by_host.get_mut(host) {
            look_up.checks.push(check);
            return Ok(());
        }
        let (name, sender, slots) = (host.to_owned(), self.sender.clone(), Arc::clone(&self.slots));
        let task = net.get()?.handle().spawn(async move {
            // The semaphore is never closed.
            let slot = slots.acquire().await;
            let found = guarded(resolve::look_up(&name)).await;
            let found = match found {
                Ok(found) => found.map_err(|error| CheckError::Failed(error.to_string())),
                Err(_panic) => Err("internal error, please report it; see the log".into()),
            };
            drop(slot);
            sender.send(LoopMessage::Resolved(name, found));
        });
        self.by_host.insert(host.to_owned(), LookUp { checks: vec![check], task: task.abort_handle() });
        Ok(())
    }

    /// A check no longer waits for a host, if it did.
    pub(super) fn leave(&mut self, host: &str, check: CheckRunId) {
        if let Some(look_up) = self.by_host.get_mut(host) {
            look_up.checks.retain(|other| *other != check);
            if look_up.checks.is_empty() {
                self.by_host.remove(host);
            }
        }
    }

    /// The look-up of a host has ended: the checks that waited for it.
    pub(super) fn finished(&mut self, host: &str) -> Vec<CheckRunId> {
        self.by_host.remove(host).map(|mut look_up| std::mem::take(&mut look_up.checks)).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.by_host.len()
    }
}
