//! One task for each service: it hears what is desired, and keeps Consul equal to that (D5).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use containerpilot_core::catalog::contact::RequestResult;
use containerpilot_core::catalog::reconcile::{Action, CatalogRequest, Outcome, Reconciler, Settings};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::Service;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::client::Trouble;
use super::connectivity_log::Failure;
use super::wire;
use super::{RECOVERY, Shared};
use crate::runtime::channel::LoopMessage;
use crate::runtime::failpoints::{failpoint, guarded};

/// What a service's task is told.
#[derive(Debug)]
pub(super) enum Order {
    /// This is desired, by this job, of a service that is defined so.
    Want(JobIx, DesiredService, Arc<Definition>),
    /// It is still healthy.
    Beat,
    /// The supervisor leaves. What is sent along is dropped when the service is out.
    Leave(std::sync::mpsc::Sender<()>),
}

/// A service, and how often it is heard of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    pub(super) service: Service,
    /// The pace of its heartbeats.
    pub(super) pace: Duration,
}

impl Definition {
    pub(super) fn settings(&self) -> Settings {
        Settings {
            ttl: self.service.ttl,
            pace: self.pace,
            drops_critical: self.service.deregister_critical_after.is_some(),
        }
    }
}

/// A service's task.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    definition: Arc<Definition>,
    job: JobIx,
    machine: Reconciler,
    /// How it is called in the log.
    name: String,
    /// Dropped at the end, when the supervisor leaves.
    leaving: Option<std::sync::mpsc::Sender<()>>,
}

impl Keeper {
    pub(super) fn new(shared: Arc<Shared>, job: JobIx, definition: Arc<Definition>) -> Self {
        let machine = Reconciler::new(definition.settings(), shared.seed());
        let name = format!("service {}", definition.service.name);
        Self { shared, definition, job, machine, name, leaving: None }
    }

    /// Works until nobody can tell it anything any more, or until the supervisor leaves. After a fault it begins anew: what
    /// became of the request at hand is not known, so everything is told once more.
    pub(super) async fn work(mut self, mut orders: UnboundedReceiver<Order>) {
        while guarded(self.keep(&mut orders)).await.is_err() {
            tokio::time::sleep(RECOVERY).await;
            self.machine.done(self.shared.now(), Outcome::Unknown);
        }
        self.shared.voice.forget(&self.name);
    }

    async fn keep(&mut self, orders: &mut UnboundedReceiver<Order>) {
        loop {
            while let Ok(order) = orders.try_recv() {
                self.obey(order);
            }
            self.tell_withdrawn();
            let order = match self.machine.next(self.shared.now()) {
                Action::Finished => break,
                Action::Send(request) => {
                    self.ask(request).await;
                    continue;
                }
                Action::Wait(None) => orders.recv().await,
                Action::Wait(Some(until)) => {
                    let pause = until.since(self.shared.now());
                    match timeout(pause, orders.recv()).await {
                        Ok(order) => order,
                        Err(_) => continue,
                    }
                }
            };
            match order {
                Some(order) => self.obey(order),
                None => break,
            }
        }
    }

    fn obey(&mut self, order: Order) {
        let now = self.shared.now();
        match order {
            Order::Want(job, desired, definition) => {
                self.job = job;
                if *definition != *self.definition {
                    self.machine.redefine(definition.settings());
                    self.definition = definition;
                }
                self.machine.want(now, desired);
            }
            Order::Beat => self.machine.beat(),
            Order::Leave(leaving) => {
                self.leaving = Some(leaving);
                self.machine.leave(now);
            }
        }
    }

    fn tell_withdrawn(&mut self) {
        if self.machine.take_deregistered() {
            self.shared.sender.send(LoopMessage::Withdrawn(self.definition.service.id.clone(), self.job));
            // Whoever is not desired there does not care whether Consul is.
            if self.machine.is_settled() {
                self.shared.voice.forget(&self.name);
            }
        }
    }

    async fn ask(&mut self, request: CatalogRequest) {
        // A few at a time are as fast as all of them; an error can only mean that there are no places any more.
        let place = self.shared.places.acquire().await;
        failpoint("service");
        let (outcome, failure) = self.carry_out(request).await;
        drop(place);
        self.machine.done(self.shared.now(), outcome);
        self.shared.voice.heard(&self.name, failure.as_ref());
    }

    async fn carry_out(&self, request: CatalogRequest) -> (Outcome, Option<Failure>) {
        let service = &self.definition.service;
        let (path, body) = match request {
            CatalogRequest::Register(status) => {
                (wire::REGISTER.to_owned(), wire::registration(service, status))
            }
            CatalogRequest::Update(status) => (wire::update_path(service), wire::update(status)),
            CatalogRequest::Deregister => (wire::deregister_path(service), Bytes::new()),
        };
        let client = &self.shared.client;
        let away = |why: String| Some(Failure { result: RequestResult::Unavailable, why });
        match client.ask("PUT", &path, body, self.machine.deadline()).await {
            Err(Trouble::NotAsked(why)) => (Outcome::Failed, away(why)),
            Err(Trouble::NoAnswer(why)) => (Outcome::Unknown, away(why)),
            Ok(answer) if (200..300).contains(&answer.status) => (Outcome::Done, None),
            Ok(answer) => {
                let registers = matches!(request, CatalogRequest::Register(_));
                if !registers && wire::is_forgotten(answer.status, &answer.body) {
                    return (Outcome::Forgotten, None);
                }
                let failure = self.shared.failure(&answer);
                let outcome =
                    if failure.result == RequestResult::Refused { Outcome::Failed } else { Outcome::Unknown };
                (outcome, Some(failure))
            }
        }
    }
}
