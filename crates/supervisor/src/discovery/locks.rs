//! One task per lock: it sends the requests that [`LockRequests`] decides, and reports what is known (D14).

use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use containerpilot_core::catalog::lock_requests::{LockAction, LockOutcome, LockRequest, LockRequests};
use containerpilot_core::lock_report::LockReport;
use containerpilot_core::plan::Lock;
use containerpilot_process::failpoints::{failpoint, guarded};
use containerpilot_process::sys;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::connectivity_log::{Failure, FailureKind};
use super::{PANIC_PAUSE, Shared, lock_api};
use crate::messages::LoopMessage;

/// The name of a lock's task in the log.
pub(super) fn requester(lock: &str) -> String {
    format!("lock {lock}")
}

/// The event loop's handle of a lock's task. When it is dropped, the task releases the lock and ends.
#[derive(Debug)]
pub(super) struct LockHandle {
    lock: Arc<Lock>,
    commands: UnboundedSender<LockCommand>,
}

/// A command to the task of a lock.
#[derive(Debug)]
enum LockCommand {
    /// The jobs that require it take so long to stop.
    SetStopTime(Duration),
    /// Release the lock and finish. The sender is dropped when that is done.
    Release(Option<Sender<()>>),
}

impl LockHandle {
    pub(super) fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Whether this is the task that has sent a message with this lock.
    pub(super) fn is_of(&self, lock: &Arc<Lock>) -> bool {
        Arc::ptr_eq(&self.lock, lock)
    }

    /// Sets how long the jobs that require the lock take to stop.
    pub(super) fn set_stop_time(&self, stop_time: Duration) {
        // Sending fails if the task has finished, which needs no more commands.
        let _ = self.commands.send(LockCommand::SetStopTime(stop_time));
    }

    /// Releases the lock.
    pub(super) fn begin_release(&self) {
        let _ = self.commands.send(LockCommand::Release(None));
    }

    /// Releases the lock. The sender is dropped when that is done.
    pub(super) fn release(&self, released: Sender<()>) {
        let _ = self.commands.send(LockCommand::Release(Some(released)));
    }
}

/// The task of a lock.
pub(super) struct LockTask {
    shared: Arc<Shared>,
    lock: Arc<Lock>,
    requests: LockRequests,
    /// Its name in the log.
    name: String,
    /// The name of this supervisor, for people.
    holder: String,
    /// The last report.
    reported: Option<LockReport>,
    /// Whether it releases the lock.
    is_releasing: bool,
    /// Dropped at the end of the task.
    released: Vec<Sender<()>>,
}

impl LockTask {
    /// Starts a task.
    pub(super) fn start(
        runtime: &Handle,
        shared: Arc<Shared>,
        lock: &Lock,
        stop_time: Duration,
    ) -> LockHandle {
        let (sender, commands) = unbounded_channel();
        let handle = LockHandle { lock: Arc::new(lock.clone()), commands: sender };
        let task = Self {
            requests: LockRequests::new(lock, stop_time, shared.seed()),
            shared,
            lock: Arc::clone(&handle.lock),
            name: requester(&lock.name),
            holder: format!("{} (pid {})", sys::hostname(), std::process::id()),
            reported: None,
            is_releasing: false,
            released: Vec::new(),
        };
        runtime.spawn(task.run(commands));
        handle
    }

    /// Runs until the lock is released. After a panic, the result of the last request is unknown.
    async fn run(mut self, mut commands: UnboundedReceiver<LockCommand>) {
        while guarded(self.pursue(&mut commands)).await.is_err() {
            tokio::time::sleep(PANIC_PAUSE).await;
            self.requests.done(self.shared.clock.now(), LockOutcome::Failed);
        }
        self.shared.connectivity.forget(&self.name);
    }

    async fn pursue(&mut self, commands: &mut UnboundedReceiver<LockCommand>) {
        loop {
            let now = self.shared.clock.now();
            let action = self.requests.next(now);
            let mut released = Vec::new();
            let command = {
                let mut done = pin!(async {
                    match &action {
                        LockAction::Send(request) => Some(self.exchange(request).await),
                        LockAction::Wait(until) => {
                            let until = until.map_or(Duration::MAX, |until| until.since(now));
                            tokio::time::sleep(until).await;
                            None
                        }
                        LockAction::Finished => None,
                    }
                });
                loop {
                    tokio::select! {
                        done = &mut done => break Ok(done),
                        command = commands.recv(), if !self.is_releasing || !commands.is_closed() => match command {
                            // A second release only adds a sender: the request in progress continues.
                            Some(LockCommand::Release(sender)) if self.is_releasing => released.extend(sender),
                            None if self.is_releasing => {}
                            command => break Err(command),
                        },
                    }
                }
            };
            self.released.extend(released);
            let now = self.shared.clock.now();
            match command {
                Ok(Some((outcome, failure))) => {
                    self.requests.done(now, outcome);
                    self.shared.connectivity.record(self.shared.now(), &self.name, failure.as_ref());
                    self.report();
                }
                Ok(None) if action == LockAction::Finished => return,
                Ok(None) => {}
                Err(Some(LockCommand::SetStopTime(stop_time))) => {
                    self.requests.set_stop_time(&self.lock, stop_time);
                    self.requests.done(now, LockOutcome::Failed);
                }
                // Without a handle, the lock is released, too.
                Err(command) => {
                    if let Some(LockCommand::Release(Some(released))) = command {
                        self.released.push(released);
                    }
                    // The request in progress, which may wait for a change, is cut short.
                    self.is_releasing = true;
                    self.requests.done(now, LockOutcome::Failed);
                    self.requests.release(now);
                }
            }
        }
    }

    /// Reports the state of the lock to the loop, if it has changed.
    fn report(&mut self) {
        let report = self.requests.report();
        if self.reported.as_ref() != Some(&report) && !self.is_releasing {
            self.reported = Some(report.clone());
            self.shared.sender.send(LoopMessage::Lock(Arc::clone(&self.lock), report));
        }
    }

    async fn exchange(&self, request: &LockRequest) -> (LockOutcome, Option<Failure>) {
        failpoint("lock");
        let session = self.requests.session().unwrap_or_default();
        let http = lock_api::http_request(&self.lock, request, session, &self.holder);
        let wait = match request {
            LockRequest::Look { index: Some(_), wait } => *wait + *wait / 16,
            _ => Duration::ZERO,
        };
        let within = self.requests.deadline() + wait;
        let response = match self.shared.client.send(http.method, &http.path, http.body, within).await {
            Ok(response) => response,
            Err(error) => return (LockOutcome::Failed, Some(Failure::from(&error))),
        };
        match lock_api::outcome(&self.lock, request, &response) {
            Some(outcome) => (outcome, None),
            None if (200..300).contains(&response.status) => {
                let reason = "the response is not one that Consul gives to a request about a lock".to_owned();
                (LockOutcome::Failed, Some(Failure { kind: FailureKind::Unavailable, reason }))
            }
            None => {
                let mut failure = self.shared.failure(&response);
                if matches!(response.status, 401 | 403) {
                    failure.reason += "; a lock needs session:write for the node, and key:write for its key";
                }
                (LockOutcome::Failed, Some(failure))
            }
        }
    }
}
