//! The checks that run on the network thread: https, and those of a body.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::SortedMap;
use containerpilot_core::ids::CheckRunId;
use containerpilot_core::plan::HttpProbe;
use containerpilot_process::failpoints::guarded;
use tokio::task::AbortHandle;

use crate::messages::{LoopMessage, LoopSender};
use crate::net::LazyNet;
use crate::net::http_probe::ProbeClient;

/// No check takes as long: the core cancels one that times out.
const FOREVER: Duration = Duration::from_secs(86_400);

#[derive(Debug)]
pub(super) struct RemoteChecks {
    sender: LoopSender,
    running: SortedMap<CheckRunId, Running>,
    /// The client of each request of the plan, which keeps certificates and TLS sessions.
    clients: Vec<(HttpProbe, Arc<ProbeClient>)>,
}

/// A check in progress. Dropping it aborts its task.
#[derive(Debug)]
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RemoteChecks {
    pub(super) fn new(sender: LoopSender) -> Self {
        Self { sender, running: SortedMap::new(), clients: Vec::new() }
    }

    /// Starts a check. Fails if the network thread cannot be started.
    pub(super) fn start(&mut self, run: CheckRunId, probe: &HttpProbe, net: &mut LazyNet) -> io::Result<()> {
        let net = net.get()?;
        let (client, sender) = (self.client(probe), self.sender.clone());
        let task = net.handle().spawn(async move {
            let result = guarded(client.send(0, FOREVER)).await;
            let panicked = |_| Err("internal error, please report it; see the log".into());
            sender.send(LoopMessage::CheckDone(run, result.unwrap_or_else(panicked).map(drop)));
        });
        self.running.insert(run, Running(task.abort_handle()));
        Ok(())
    }

    /// Ends a check that is done or cancelled. Returns false if it was not running.
    pub(super) fn finished(&mut self, run: CheckRunId) -> bool {
        self.running.remove(&run).is_some()
    }

    pub(super) fn forget_clients(&mut self) {
        self.clients.clear();
    }

    fn client(&mut self, probe: &HttpProbe) -> Arc<ProbeClient> {
        if let Some((_, client)) = self.clients.iter().find(|(known, _)| known == probe) {
            return Arc::clone(client);
        }
        let client = Arc::new(ProbeClient::new(probe));
        self.clients.push((probe.clone(), Arc::clone(&client)));
        client
    }
}
