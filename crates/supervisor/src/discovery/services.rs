//! One task per service: it makes Consul's state equal to the desired state (D5).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use containerpilot_core::Time;
use containerpilot_core::catalog::interruption::Interruption;
use containerpilot_core::catalog::ownership::{Claim, Ownership, SupervisorHost};
use containerpilot_core::catalog::reconcile::{
    CatalogAction, CatalogRequest, Confirmation, Reconciler, RequestOutcome, Settings,
};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{Job, Level, Service};
use containerpilot_process::failpoints::{failpoint, guarded};
use containerpilot_process::sys;
use hyper::Method;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use super::api;
use super::connectivity_log::{Failure, FailureKind};
use super::{PANIC_PAUSE, Shared};
use crate::messages::LoopMessage;
use crate::net::http_client::RequestError;

/// A command to the task of a service.
#[derive(Debug)]
pub(super) enum ServiceCommand {
    /// Sets the desired state of the job's service.
    SetDesired(JobIx, DesiredService, Arc<Definition>),
    /// The service is still healthy.
    Heartbeat,
    /// Deregister the service and finish. The sender is dropped when that is done.
    Deregister(std::sync::mpsc::Sender<()>),
}

/// The service of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    pub(super) service: Service,
    settings: Settings,
    /// The name of its job.
    job: String,
}

impl Definition {
    pub(super) fn of(job: &Job) -> Option<Self> {
        Some(Self { service: job.service.clone()?, settings: Settings::of(job)?, job: job.name.clone() })
    }
}

/// The event loop's handle of a service's task. When it is dropped, the task deregisters the service and ends.
#[derive(Debug)]
pub(super) struct ServiceHandle {
    commands: UnboundedSender<ServiceCommand>,
    is_gone: Arc<AtomicBool>,
    confirmed: Arc<Mutex<Option<Confirmation>>>,
    /// Its name in the log.
    name: String,
}

impl ServiceHandle {
    /// The name of the task in the log, and in [`ConnectivityLog`](super::ConnectivityLog).
    pub(super) fn name(&self) -> &String {
        &self.name
    }

    pub(super) fn send(&self, command: ServiceCommand) {
        // Sending fails if the task has finished, which needs no more commands.
        let _ = self.commands.send(command);
    }

    /// The last state that Consul has confirmed (D11).
    pub(super) fn confirmation(&self) -> Option<Confirmation> {
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the task has nothing left to do, as long as it gets no command.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

/// The task of a service.
pub(super) struct ServiceTask {
    shared: Arc<Shared>,
    definition: Arc<Definition>,
    job: JobIx,
    reconciler: Reconciler,
    ownership: Ownership,
    /// When Consul was last unavailable, for any task.
    interruption: watch::Receiver<Option<Interruption>>,
    /// Its name in the log.
    name: String,
    /// See [`ServiceHandle::is_gone`].
    is_gone: Arc<AtomicBool>,
    /// See [`ServiceHandle::confirmation`].
    confirmed: Arc<Mutex<Option<Confirmation>>>,
    /// Whether the handle was dropped.
    is_released: bool,
    /// Whether its registration was logged. A catalog that forgets it again and again does not fill the log.
    is_announced: bool,
    /// Dropped at the end of the task.
    deregistered: Option<std::sync::mpsc::Sender<()>>,
}

impl ServiceTask {
    /// Starts a task.
    pub(super) fn start(
        runtime: &Handle,
        shared: Arc<Shared>,
        job: JobIx,
        definition: Arc<Definition>,
    ) -> ServiceHandle {
        let reconciler = Reconciler::new(definition.settings, shared.seed());
        // Several jobs can have instances of one service.
        let name = format!("service {}", definition.job);
        let ownership = Ownership::new(shared.mark.clone());
        let is_gone = Arc::new(AtomicBool::new(false));
        let confirmed = Arc::default();
        let (sender, commands) = unbounded_channel();
        let handle = ServiceHandle {
            commands: sender,
            is_gone: Arc::clone(&is_gone),
            confirmed: Arc::clone(&confirmed),
            name: name.clone(),
        };
        let task = Self {
            interruption: shared.connectivity.interruption(),
            shared,
            definition,
            job,
            reconciler,
            ownership,
            name,
            is_gone,
            confirmed,
            is_released: false,
            is_announced: false,
            deregistered: None,
        };
        runtime.spawn(task.run(commands));
        handle
    }

    /// Runs until the service is deregistered and no more commands can arrive. After a panic the result of the last
    /// request is unknown, so the whole state is sent again.
    async fn run(mut self, mut commands: UnboundedReceiver<ServiceCommand>) {
        while guarded(self.reconcile(&mut commands)).await.is_err() {
            tokio::time::sleep(PANIC_PAUSE).await;
            self.reconciler.done(self.shared.now(), RequestOutcome::Unknown);
        }
        self.shared.connectivity.forget(&self.name);
    }

    async fn reconcile(&mut self, commands: &mut UnboundedReceiver<ServiceCommand>) {
        loop {
            while let Ok(command) = commands.try_recv() {
                self.apply(command);
            }
            self.report_deregistered();
            self.is_gone.store(self.reconciler.is_gone(), Ordering::Release);
            self.apply_interruption();
            let until = match self.reconciler.next(self.shared.now()) {
                CatalogAction::Finished => break,
                CatalogAction::Send(request) => {
                    self.send(request).await;
                    continue;
                }
                // There are no more commands, and deregistering need not be tried again.
                CatalogAction::Wait(None) if self.is_released => break,
                CatalogAction::Wait(until) => until,
            };
            let command = tokio::select! {
                command = commands.recv(), if !self.is_released => command,
                _ = self.interruption.changed() => continue,
                () = sleep(until, self.shared.now()) => continue,
            };
            match command {
                Some(command) => self.apply(command),
                None => {
                    self.is_released = true;
                    self.reconciler.set_desired(self.shared.now(), DesiredService::Absent);
                }
            }
        }
    }

    fn apply_interruption(&mut self) {
        if let Some(interruption) = *self.interruption.borrow_and_update() {
            self.reconciler.interrupted(self.shared.now(), interruption);
        }
    }

    fn apply(&mut self, command: ServiceCommand) {
        let now = self.shared.now();
        match command {
            ServiceCommand::SetDesired(job, desired, definition) => {
                self.job = job;
                if *definition != *self.definition {
                    self.reconciler.redefine(definition.settings);
                    self.definition = definition;
                }
                self.reconciler.set_desired(now, desired);
            }
            ServiceCommand::Heartbeat => self.reconciler.heartbeat_due(),
            ServiceCommand::Deregister(deregistered) => {
                self.deregistered = Some(deregistered);
                self.reconciler.leave(now);
            }
        }
    }

    fn report_deregistered(&mut self) {
        if self.reconciler.take_deregistered() {
            self.shared.sender.send(LoopMessage::Deregistered(self.definition.service.id.clone(), self.job));
            // Without a service its connectivity is not logged.
            if self.reconciler.is_settled() {
                self.shared.connectivity.forget(&self.name);
            }
        }
    }

    async fn send(&mut self, request: CatalogRequest) {
        let shared = Arc::clone(&self.shared);
        // The semaphore is never closed.
        let slot = shared.request_slots.acquire().await;
        failpoint("service");
        let (outcome, failure) = self.exchange(request).await;
        drop(slot);
        self.apply_interruption();
        let now = self.shared.now();
        self.reconciler.done(now, outcome);
        if outcome == RequestOutcome::Done {
            self.announce(request);
        }
        self.shared.connectivity.record(now, &self.name, failure.as_ref());
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner) = self.reconciler.confirmation();
    }

    /// Logs that the service was registered, in the words of 3.8.
    fn announce(&mut self, request: CatalogRequest) {
        let is_registered = match request {
            CatalogRequest::Register(_) => true,
            CatalogRequest::Deregister => false,
            CatalogRequest::Update(_) => return,
        };
        if is_registered && !self.is_announced {
            let message = format!("Service registered: {}", self.definition.service.name);
            self.shared.sender.send(LoopMessage::Log(Level::Info, message));
        }
        self.is_announced = is_registered;
    }

    /// Sends a request, unless another supervisor holds the id of the service (D10).
    async fn exchange(&mut self, request: CatalogRequest) -> (RequestOutcome, Option<Failure>) {
        let ttl = self.definition.service.ttl;
        if self.ownership.must_look_up(self.shared.now(), request, ttl) {
            match self.look_up(request).await {
                Ok(Claim::Free) => {}
                Ok(Claim::Held(other)) => {
                    let id = &self.definition.service.id;
                    let reason = format!(
                        "another supervisor ({other}) has registered the id {id}; waiting until it leaves or its TTL expires"
                    );
                    return (RequestOutcome::Held, Some(Failure { kind: FailureKind::Held, reason }));
                }
                Err(failure) => return (RequestOutcome::Failed, Some(failure)),
            }
        }
        self.carry_out(request).await
    }

    async fn look_up(&mut self, request: CatalogRequest) -> Result<Claim, Failure> {
        let service = &self.definition.service;
        let (path, within) = (api::look_up_path(service), self.reconciler.deadline() / 2);
        let response = self.shared.client.send(Method::GET, &path, Bytes::new(), within).await;
        let response = response.map_err(|error| Failure::from(&error))?;
        let found = api::holder(service, &response.body);
        // The status is that of the service, and with a service 429 and 503 are answers.
        if found.is_none() && (response.status == 429 || response.status >= 500) {
            return Err(self.shared.failure(&response));
        }
        let has_address = |address| sys::interface_addresses().iter().any(|(_, own)| *own == address);
        let host = SupervisorHost { name: &sys::hostname(), has_address: &has_address };
        Ok(self.ownership.claim(self.shared.now(), service, request, found.as_ref(), host))
    }

    async fn carry_out(&self, request: CatalogRequest) -> (RequestOutcome, Option<Failure>) {
        let service = &self.definition.service;
        let (path, body) = match request {
            CatalogRequest::Register(status) => {
                (api::REGISTER.to_owned(), api::registration(service, self.ownership.mark(), status))
            }
            CatalogRequest::Update(status) => (api::update_path(service), api::update(status)),
            CatalogRequest::Deregister => (api::deregister_path(service), Bytes::new()),
        };
        match self.shared.client.send(Method::PUT, &path, body, self.reconciler.deadline()).await {
            Err(error) => {
                let outcome = match error {
                    RequestError::NotSent(_) => RequestOutcome::Failed,
                    RequestError::NoResponse(_) => RequestOutcome::Unknown,
                };
                (outcome, Some(Failure::from(&error)))
            }
            Ok(response) if (200..300).contains(&response.status) => (RequestOutcome::Done, None),
            Ok(response) => {
                let registers = matches!(request, CatalogRequest::Register(_));
                if !registers && api::is_not_registered(response.status, &response.body) {
                    return (RequestOutcome::Forgotten, None);
                }
                let failure = self.shared.failure(&response);
                let refused = failure.kind == FailureKind::Refused;
                (if refused { RequestOutcome::Failed } else { RequestOutcome::Unknown }, Some(failure))
            }
        }
    }
}

/// Waits until a time. Without one it does not return.
async fn sleep(until: Option<Time>, now: Time) {
    match until {
        Some(until) => tokio::time::sleep(until.since(now)).await,
        None => std::future::pending().await,
    }
}
