//! The start: the telemetry port and the control socket listen before the core sends `startup` (E4).

use std::sync::Arc;

use containerpilot_core::Input;
use containerpilot_core::plan::Level;
use containerpilot_process::cgroups::Cgroups;

use super::{Decider, Runtime, StartupError};
use crate::control::ControlServer;
use crate::messages::query_handle::QueryHandle;
use crate::telemetry::TelemetryServer;

impl<D: Decider> Runtime<D> {
    /// Opens the telemetry port and the control socket, before the startup event (E4).
    pub(crate) fn open(&mut self) -> Result<(), StartupError> {
        // T6: before the first entry, so that it is exported.
        self.follow_export();
        self.log_loaded();
        // The port first: unlike the socket it has no file that must be removed if the other cannot be opened.
        self.open_telemetry()?;
        let plan = Arc::clone(&self.plan);
        // S7: a single program has no control socket.
        if !plan.pass_signals {
            match ControlServer::open(&plan.control) {
                Ok(control) => self.control = Some(control),
                Err(error) if plan.control.required => return Err(error.into()),
                Err(error) => self.log(Level::Warn, &format!("no control socket: {error}")),
            }
            // The first iteration writes it: the first job does not have to wait for the log thread.
            self.executor.logs.begin_batch();
            self.log_serving();
        }
        self.executor.spawner.set_socket(self.control.as_ref().map(ControlServer::path));
        Ok(())
    }

    /// The words of 3.8. The values of the configuration may be secrets (L5).
    pub(super) fn log_loaded(&self) {
        if !self.plan.pass_signals {
            let (jobs, watches) = (self.plan.jobs.len(), self.plan.watches.len());
            self.log(Level::Debug, &format!("loaded config: jobs: {jobs}, watches: {watches}"));
        }
    }

    /// As 3.8, at the start and after every reload.
    pub(super) fn log_serving(&self) {
        if let Some(control) = &self.control {
            self.log(Level::Info, &format!("control: serving at {}", control.path()));
        }
    }

    /// W15: passes the time to the core, now and whenever the system clock is set, if the plan needs it.
    pub(super) fn follow_clock(&mut self) {
        if let Err(errno) = self.clock.follow(&self.plan) {
            let message =
                format!("cannot notice when the system clock is set or the machine was asleep: {errno:?}");
            self.log(Level::Warn, &message);
        }
        if self.plan.needs_clock() {
            self.results.push_back(self.clock.reading());
        }
    }

    fn open_telemetry(&mut self) -> Result<(), StartupError> {
        let Some(telemetry) = self.plan.telemetry.clone() else { return Ok(()) };
        let (metrics, queries) = (self.metrics.clone(), QueryHandle::new(self.receiver.sender()));
        let net = self.executor.net.get().map_err(StartupError::Network)?;
        self.telemetry = Some(TelemetryServer::open(&telemetry, net, metrics, queries)?);
        Ok(())
    }

    /// Everything listens: the core may send `startup`.
    pub(super) fn begin(&mut self) {
        let (cgroups, message) = Cgroups::open();
        self.executor.reaper.cgroups = cgroups;
        self.log(Level::Debug, &message);
        self.follow_clock();
        self.results.push_back(Input::Ready);
        self.follow_catalog();
        self.follow_watches();
    }
}
