//! A fake Consul agent and the real reconciler of one service that talks to it.
//!
//! The agent has a timer queue of its own, so that a caller can inspect it before each of its steps.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::reconcile::{
    CatalogAction, CatalogRequest, Reconciler, RequestOutcome, Settings,
};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::Status;
use containerpilot_core::rng::Rng;

use super::queue::Queue;
use super::script::{AgentFault, AgentScript, ResponseScript};

/// The service as the agent has it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    status: Status,
    /// Since when it has this status.
    since: Time,
    /// When it was last registered or updated.
    updated: Time,
}

#[derive(Clone, Copy, Debug)]
enum Scheduled {
    /// The agent carries out a request; whether the reconciler still waits for the response.
    CarryOut(CatalogRequest, bool),
    Respond(RequestOutcome),
}

/// How the reconciler broke its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractViolation {
    /// It sent a request while another one was open.
    TwoRequests,
    /// It reported a deregistration while the service was desired.
    DeregisteredWhileDesired,
}

/// One service, its reconciler and its agent.
pub struct FakeAgent {
    settings: Settings,
    script: AgentScript,
    reconciler: Reconciler,
    entry: Option<Entry>,
    desired: DesiredService,
    now: Time,
    queue: Queue<Scheduled>,
    /// When the reconciler must be called again.
    wake_at: Option<Time>,
    requests: usize,
    heartbeats: usize,
    /// How many of the script's faults have happened.
    faults: usize,
    frozen_until: Time,
    /// When the open request times out.
    deadline: Time,
    last_disturbance: Time,
    /// True if there was no heartbeat since the desired state was set.
    awaits_heartbeat: bool,
    deregistered: bool,
    left: bool,
    violation: Option<ContractViolation>,
    rng: Rng,
    trace: Option<Vec<String>>,
}

impl FakeAgent {
    /// A service that is neither registered nor desired.
    #[must_use]
    pub fn new(settings: Settings, mut script: AgentScript) -> Self {
        script.deregister_critical_after =
            script.deregister_critical_after.filter(|_| settings.drops_critical);
        Self {
            settings,
            reconciler: Reconciler::new(settings, script.seed),
            rng: Rng::from_seed(script.seed),
            script,
            entry: None,
            desired: DesiredService::Absent,
            now: Time::ZERO,
            queue: Queue::new(None),
            wake_at: None,
            requests: 0,
            heartbeats: 0,
            faults: 0,
            frozen_until: Time::ZERO,
            deadline: Time::ZERO,
            last_disturbance: Time::ZERO,
            awaits_heartbeat: true,
            deregistered: false,
            left: false,
            violation: None,
            trace: None,
        }
    }

    /// Records what happens from now on.
    pub fn start_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// What happened, a line each.
    #[must_use]
    pub fn take_trace(&mut self) -> Vec<String> {
        self.trace.take().unwrap_or_default()
    }

    fn record(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>10.3} {}", self.now.since(Time::ZERO).as_secs_f64(), line()));
        }
    }

    /// What the reconciler knows of the service.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// The time up to which it has done everything.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The desired state.
    #[must_use]
    pub const fn desired(&self) -> DesiredService {
        self.desired
    }

    /// How many requests and how many heartbeats there were.
    #[must_use]
    pub const fn traffic(&self) -> (usize, usize) {
        (self.requests, self.heartbeats)
    }

    /// How many responses the script sets.
    #[must_use]
    pub fn scripted_responses(&self) -> usize {
        self.script.responses.len()
    }

    /// How long a request may take.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.reconciler.deadline()
    }

    /// The last time at which the desired state changed or a fault happened; may be in the future.
    #[must_use]
    pub fn last_disturbance(&self) -> Time {
        self.last_disturbance
    }

    /// Until when it is frozen.
    #[must_use]
    pub const fn frozen_until(&self) -> Time {
        self.frozen_until
    }

    /// The last state that the agent has confirmed to the reconciler (D11).
    #[must_use]
    pub fn confirmed(&self) -> Option<DesiredService> {
        self.reconciler.confirmation().map(|confirmation| confirmation.state)
    }

    /// How the reconciler broke its contract.
    #[must_use]
    pub const fn violation(&self) -> Option<ContractViolation> {
        self.violation
    }

    /// Returns true if the supervisor has left and the reconciler has nothing more to do.
    #[must_use]
    pub const fn has_left(&self) -> bool {
        self.left
    }

    fn disturb(&mut self, until: Time) {
        self.last_disturbance = self.last_disturbance.max(until);
    }

    fn next_fault(&self) -> Option<(Time, AgentFault)> {
        let (at, fault) = self.script.faults.get(self.faults)?;
        Some((Time::ZERO + milliseconds(*at), *fault))
    }

    fn next_own(&self) -> Option<Time> {
        earliest(self.queue.next(), self.wake_at)
    }

    /// When something happens next, unless the desired state changes before.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Option<Time> {
        earliest(self.next_own(), self.next_fault().map(|(at, _)| at))
    }

    /// Does the next step. `at` is the time that [`FakeAgent::next`] returned.
    pub fn step(&mut self, at: Time) {
        if self.next_own().is_none_or(|own| own > at) {
            if let Some((_, fault)) = self.next_fault() {
                self.faults += 1;
                self.fault(at, fault);
            }
            return;
        }
        self.now = self.now.max(at);
        while let Some(item) = self.queue.pop_due(at) {
            self.run_item(item);
        }
        self.run_reconciler();
    }

    /// Sets the desired state. Returns true if that is new.
    pub fn set_desired(&mut self, now: Time, desired: DesiredService) -> bool {
        self.now = self.now.max(now);
        self.record(|| format!("desired: {desired:?}"));
        self.disturb(self.now);
        let new = desired != self.desired;
        self.desired = desired;
        self.awaits_heartbeat = true;
        self.deregistered &= desired == DesiredService::Absent;
        self.reconciler.set_desired(self.now, desired);
        self.wake_at = Some(self.now);
        new
    }

    /// The service is still healthy.
    pub fn heartbeat(&mut self, now: Time) {
        self.now = self.now.max(now);
        // A status that was set before its job was healthy has expired without heartbeats (D4), and the service may be dropped.
        let found = self.status_at(self.now).map_or(DesiredService::Absent, DesiredService::Present);
        if self.awaits_heartbeat && found != self.desired {
            self.disturb(self.now);
        }
        self.awaits_heartbeat = false;
        self.heartbeats += 1;
        self.reconciler.heartbeat_due();
        self.wake_at = Some(self.now);
    }

    /// A fault of the agent happens.
    pub fn fault(&mut self, now: Time, fault: AgentFault) {
        self.now = self.now.max(now);
        self.record(|| format!("{fault:?}"));
        self.disturb(self.now);
        match fault {
            AgentFault::Forget => self.entry = None,
            AgentFault::Freeze(time) => self.freeze(time),
        }
        self.wake_at = Some(self.now);
    }

    /// The agent loses the service, as after a restart; the reconciler learns of it with the next response.
    pub fn lose_entry(&mut self) {
        self.entry = None;
    }

    /// The service has another definition.
    pub fn redefine(&mut self, now: Time, settings: Settings) {
        self.now = self.now.max(now);
        self.record(|| "redefined".to_owned());
        self.settings = settings;
        self.script.deregister_critical_after =
            self.script.deregister_critical_after.filter(|_| settings.drops_critical);
        self.reconciler.redefine(settings);
        self.wake_at = Some(self.now);
        self.disturb(self.now);
    }

    /// The machine was paused until now.
    pub fn pause(&mut self, until: Time) {
        self.now = self.now.max(until);
        self.wake_at = self.wake_at.map(|at| at.max(until));
        self.disturb(until);
    }

    /// The supervisor exits: the service is to be deregistered, with a limited number of tries.
    pub fn leave(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.desired = DesiredService::Absent;
        self.reconciler.leave(self.now);
        self.wake_at = Some(self.now);
    }

    /// Returns true once after the service was deregistered, or deregistering it has failed.
    pub fn take_deregistered(&mut self) -> bool {
        std::mem::take(&mut self.deregistered)
    }

    fn freeze(&mut self, time: u64) {
        self.frozen_until = self.frozen_until.max(self.now + milliseconds(time));
        self.disturb(self.frozen_until);
        // Open requests are carried out after the freeze, in a random order.
        let mut held: Vec<(CatalogRequest, bool)> = Vec::new();
        self.queue.change(|item| match item {
            Scheduled::CarryOut(request, awaited) => {
                held.push((request, awaited));
                None
            }
            Scheduled::Respond(_) => Some(item),
        });
        while !held.is_empty() {
            match held.swap_remove(self.rng.index(held.len())) {
                (request, true) => self.carry_out_at(self.frozen_until, request),
                (request, false) => {
                    self.queue.add(self.frozen_until, Scheduled::CarryOut(request, false));
                }
            }
        }
    }

    fn run_reconciler(&mut self) {
        self.wake_at = None;
        loop {
            match self.reconciler.next(self.now) {
                CatalogAction::Finished => {
                    self.left = true;
                    return;
                }
                CatalogAction::Wait(until) => {
                    self.wake_at = until;
                    return self.check_deregistered();
                }
                CatalogAction::Send(_) if self.is_request_open() => {
                    self.violation = Some(ContractViolation::TwoRequests);
                    return;
                }
                CatalogAction::Send(request) => self.receive(request),
            }
            self.check_deregistered();
        }
    }

    fn is_request_open(&self) -> bool {
        let open = |item: &Scheduled| matches!(item, Scheduled::Respond(_) | Scheduled::CarryOut(_, true));
        self.queue.items().any(open)
    }

    fn check_deregistered(&mut self) {
        if self.reconciler.take_deregistered() {
            if self.desired != DesiredService::Absent {
                self.violation = Some(ContractViolation::DeregisteredWhileDesired);
            }
            self.deregistered = true;
        }
    }

    fn response(&self) -> ResponseScript {
        let response = self.script.responses.get(self.requests).copied().unwrap_or(self.script.usual);
        let now = self.now.since(Time::ZERO);
        match response {
            ResponseScript::Done(after) if self.script.outages.iter().any(|span| span.contains(now)) => {
                ResponseScript::Refused(after)
            }
            other => other,
        }
    }

    /// A request arrives.
    fn receive(&mut self, request: CatalogRequest) {
        let response = self.response();
        self.requests += 1;
        self.record(|| format!("request {request:?}: {response:?}"));
        let deadline = self.now + self.reconciler.deadline();
        self.deadline = deadline;
        if self.frozen_until > self.now {
            return self.carry_out_at(self.frozen_until, request);
        }
        match response {
            ResponseScript::Done(after) => {
                let at = self.now + milliseconds(after);
                self.carry_out_at(at, request);
                if at >= deadline {
                    self.disturb(at);
                }
            }
            ResponseScript::Refused(after) => {
                let at = self.now + milliseconds(after);
                self.queue.add(at, Scheduled::Respond(RequestOutcome::Failed));
                self.disturb(at);
            }
            ResponseScript::ResponseLost => {
                self.queue.add(self.now, Scheduled::CarryOut(request, false));
                self.queue.add(deadline, Scheduled::Respond(RequestOutcome::Unknown));
                self.disturb(deadline);
            }
            ResponseScript::Late(after) => {
                let at = deadline + milliseconds(after);
                self.queue.add(deadline, Scheduled::Respond(RequestOutcome::Unknown));
                self.queue.add(at, Scheduled::CarryOut(request, false));
                self.disturb(at);
            }
            ResponseScript::FalselyConfirmed if request == CatalogRequest::Deregister => {
                self.queue.add(self.now, Scheduled::CarryOut(request, true));
            }
            ResponseScript::FalselyConfirmed => {
                self.queue.add(self.now, Scheduled::Respond(RequestOutcome::Done));
                self.disturb(self.now);
            }
        }
    }

    /// The agent will carry out a request. The response comes with it, or the request times out before.
    fn carry_out_at(&mut self, at: Time, request: CatalogRequest) {
        let awaited = at < self.deadline;
        self.queue.add(at, Scheduled::CarryOut(request, awaited));
        if !awaited {
            self.queue.add(self.deadline, Scheduled::Respond(RequestOutcome::Unknown));
        }
    }

    fn run_item(&mut self, item: Scheduled) {
        match item {
            Scheduled::Respond(outcome) => {
                self.record(|| format!("response: {outcome:?}"));
                self.reconciler.done(self.now, outcome);
            }
            Scheduled::CarryOut(request, awaited) => {
                let known =
                    matches!(request, CatalogRequest::Register(_)) || self.entry_at(self.now).is_some();
                self.record(|| format!("the agent carries out {request:?}"));
                self.carry_out(request);
                if awaited {
                    self.reconciler
                        .done(self.now, if known { RequestOutcome::Done } else { RequestOutcome::Forgotten });
                }
            }
        }
        self.check_deregistered();
    }

    fn carry_out(&mut self, request: CatalogRequest) {
        let now = self.now;
        match request {
            // An agent keeps the status of a service it knows.
            CatalogRequest::Register(status) => {
                let status = self.entry_at(now).map_or(status, |entry| entry.status);
                self.entry = Some(Entry { status, since: now, updated: now });
            }
            CatalogRequest::Update(status) => {
                if let Some(entry) = self.entry_at(now) {
                    let since = if entry.status == status { entry.since } else { now };
                    self.entry = Some(Entry { status, since, updated: now });
                }
            }
            CatalogRequest::Deregister => self.entry = None,
        }
    }

    /// When the TTL of a service that is not critical expires.
    #[must_use]
    #[inline]
    pub fn expires(&self) -> Option<Time> {
        let entry = self.entry.filter(|entry| entry.status != Status::Critical)?;
        Some(entry.updated + self.settings.ttl)
    }

    /// Applies the TTL and the deregistration of a critical service up to a time. Returns the status by then.
    pub fn update_to(&mut self, now: Time) -> Option<Status> {
        self.entry = self.entry_at(now);
        self.entry.map(|entry| entry.status)
    }

    /// The status of the service at a time, if it is registered.
    #[must_use]
    pub fn status_at(&self, now: Time) -> Option<Status> {
        self.entry_at(now).map(|entry| entry.status)
    }

    fn entry_at(&self, now: Time) -> Option<Entry> {
        let mut entry = self.entry?;
        if let Some(expires) = self.expires().filter(|expires| *expires <= now) {
            entry = Entry { status: Status::Critical, since: expires, ..entry };
        }
        let dropped = self.script.deregister_critical_after.is_some_and(|after| entry.since + after < now);
        (entry.status != Status::Critical || !dropped).then_some(entry)
    }
}

/// The earlier of two times that may be missing.
pub(super) fn earliest(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

const fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}
