//! D5, S6: the desired state of a service and its state in the catalog become equal.
//!
//! [`check`], [`check_contract`] and [`leave`] hold for every agent of a schedule. [`run_seed`] also tries many agents by
//! themselves: slow, failing, forgetting, frozen, falsely confirming, and finally without faults. A script that breaks a
//! rule is shrunk.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::reconcile::{IN_DOUBT, Settings};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::Status;
use containerpilot_core::rng::Rng;
use containerpilot_simulation::world::agent::{ContractViolation, FakeAgent};
use containerpilot_simulation::world::queue::Queue;
use containerpilot_simulation::world::script::{AgentFault, AgentScript, ResponseScript};

use crate::scenario::USUAL_RESPONSE;

/// The time within which desired and registered status become equal after the last fault.
fn bound(agent: &FakeAgent) -> Duration {
    let Settings { ttl, heartbeat_interval, .. } = agent.settings();
    IN_DOUBT + ttl + heartbeat_interval * 2 + agent.request_timeout() + Duration::from_secs(5)
}

/// Compares the desired state with the agent's, just before a time.
///
/// # Errors
/// How D5 is broken.
pub fn check(agent: &FakeAgent, at: Time) -> Result<(), String> {
    if at < agent.last_disturbance() + bound(agent) {
        return Ok(());
    }
    let (desired, found) = (agent.desired(), agent.status_at(at));
    let equal = match desired {
        DesiredService::Absent => found.is_none(),
        // Consul may have deregistered a critical service, as configured.
        DesiredService::Present(Status::Critical) if agent.settings().drops_critical => {
            found.is_none_or(|found| found == Status::Critical)
        }
        DesiredService::Present(status) => found == Some(status),
    };
    if !equal {
        return Err(format!("D5: {desired:?} is desired, but the catalog has {found:?}"));
    }
    // What is shown as confirmed is what the catalog has.
    let confirmed = agent.confirmed();
    let shown = match confirmed {
        None | Some(DesiredService::Absent) => None,
        Some(DesiredService::Present(status)) => Some(status),
    };
    let dropped = agent.settings().drops_critical && shown == Some(Status::Critical) && found.is_none();
    if shown != found && !dropped {
        return Err(format!("D11: {confirmed:?} is shown as confirmed, but the catalog has {found:?}"));
    }
    // More would be needless: heartbeats, retries after the scripted responses, and the refreshing of a status for which
    // no heartbeats are sent.
    let (requests, heartbeats) = agent.traffic();
    let refreshes = usize::try_from(at.since(Time::ZERO).as_millis() / 100).unwrap_or(usize::MAX);
    let most = 200 + heartbeats * 2 + agent.scripted_responses() * 20;
    if requests > refreshes.saturating_add(most) {
        return Err(format!("D5: {requests} requests"));
    }
    Ok(())
}

/// Checks that the reconciler kept its contract.
///
/// # Errors
/// How it did not.
pub fn check_contract(agent: &FakeAgent) -> Result<(), String> {
    match agent.violation() {
        None => Ok(()),
        Some(ContractViolation::TwoRequests) => Err("D5: two requests at a time".into()),
        Some(ContractViolation::DeregisteredWhileDesired) => {
            Err("S2: the service is reported as deregistered although it is desired".into())
        }
    }
}

/// Runs an agent up to a time.
fn advance(agent: &mut FakeAgent, until: Time) -> Result<(), String> {
    while let Some(next) = agent.next().filter(|next| *next <= until) {
        check(agent, next)?;
        agent.step(next);
        check_contract(agent)?;
    }
    Ok(())
}

/// S6: the supervisor exits. The service is deregistered in time, unless a fault has happened since.
///
/// # Errors
/// How S6 is broken.
pub fn leave(agent: &mut FakeAgent, now: Time) -> Result<(), String> {
    // It may be ahead of the world.
    let own_now = now.max(agent.now());
    advance(agent, own_now)?;
    let disturbed = agent.last_disturbance().max(agent.frozen_until());
    let (before, _) = agent.traffic();
    agent.leave(own_now);
    let limit = own_now + Duration::from_secs(30) + bound(agent);
    while !agent.has_left() {
        let Some(next) = agent.next().filter(|next| *next <= limit) else {
            return Err("S6: the deregistration does not come to an end".into());
        };
        advance(agent, next)?;
    }
    let excused = agent.scripted_responses() > before
        || disturbed + bound(agent) > now
        || agent.last_disturbance() > now;
    if !excused && agent.status_at(agent.now()).is_some() {
        return Err("S6: the service is left in the catalog".into());
    }
    Ok(())
}

/// An incident besides the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// The desired state changes.
    SetDesired(DesiredService),
    /// A fault of the agent.
    Fault(AgentFault),
    /// The service has another definition.
    Redefine,
}

/// A schedule of one agent.
#[derive(Clone, Debug)]
pub struct AgentSchedule {
    /// What the reconciler knows of the service.
    pub settings: Settings,
    /// How the agent behaves.
    pub agent: AgentScript,
    /// What happens, by milliseconds; in order.
    pub incidents: Vec<(u64, Incident)>,
}

/// A rule that was broken.
#[derive(Clone, Debug)]
pub struct Broken {
    /// How it was broken.
    pub what: String,
    /// What happened, a line each.
    pub trace: Vec<String>,
}

/// The schedule of a seed.
#[must_use]
pub fn schedule(seed: u64) -> AgentSchedule {
    let mut rng = Rng::from_seed(seed);
    let heartbeat_interval = Duration::from_millis(rng.pick(&[500, 1_000, 5_000, 10_000]));
    let ttl = heartbeat_interval * rng.pick(&[2, 3, 5]);
    let drops_critical = rng.percent(30);
    let mut incidents = Vec::new();
    let mut now = 0;
    for _ in 0..=rng.below(12) {
        now += rng.pick(&[0, 1, 50, 300, 1_000, 4_000, 20_000]) + rng.below(50);
        let desired = match rng.below(10) {
            0..5 => DesiredService::Present(Status::Passing),
            5..7 => DesiredService::Present(Status::Critical),
            7 => DesiredService::Present(Status::Warning),
            _ => DesiredService::Absent,
        };
        let incident = match rng.below(10) {
            0..6 => Incident::SetDesired(desired),
            6 | 7 => Incident::Fault(AgentFault::Forget),
            8 => Incident::Fault(AgentFault::Freeze(rng.pick(&[100, 2_000, 30_000]))),
            _ => Incident::Redefine,
        };
        incidents.push((now, incident));
    }
    let responses = (0..rng.below(30)).map(|_| response(&mut rng)).collect();
    AgentSchedule {
        settings: Settings { ttl, heartbeat_interval, drops_critical },
        agent: AgentScript {
            deregister_critical_after: drops_critical.then(|| ttl * 2),
            responses,
            usual: USUAL_RESPONSE,
            outages: Vec::new(),
            faults: Vec::new(),
            seed,
        },
        incidents,
    }
}

/// A random response.
pub(crate) fn response(rng: &mut Rng) -> ResponseScript {
    match rng.below(10) {
        0..4 => ResponseScript::Done(rng.pick(&[0, 1, 20, 400, 4_000])),
        4 | 5 => ResponseScript::Refused(rng.pick(&[0, 1, 400])),
        6 => ResponseScript::ResponseLost,
        7 => ResponseScript::Late(rng.below(12_000)),
        _ => ResponseScript::FalselyConfirmed,
    }
}

/// Runs a schedule. Returns the number of requests.
///
/// # Errors
/// The rule that was broken.
pub fn run(schedule: &AgentSchedule) -> Result<usize, Broken> {
    let mut agent = FakeAgent::new(schedule.settings, schedule.agent.clone());
    agent.start_trace();
    match run_to_the_end(schedule, &mut agent) {
        Ok(()) => Ok(agent.traffic().0),
        Err(what) => Err(Broken { what, trace: agent.take_trace() }),
    }
}

#[derive(Clone, Copy)]
enum Scheduled {
    Incident(Incident),
    /// A heartbeat, and the number of the desired status that it belongs to.
    Heartbeat(u64),
}

fn run_to_the_end(schedule: &AgentSchedule, agent: &mut FakeAgent) -> Result<(), String> {
    let mut queue = Queue::new(None);
    for (milliseconds, incident) in &schedule.incidents {
        let at = Time::ZERO + Duration::from_millis(*milliseconds);
        queue.add(at, Scheduled::Incident(*incident));
    }
    // Long enough after the last disturbance to see that everything stays as it is.
    let end = |agent: &FakeAgent| agent.last_disturbance() + bound(agent) * 2;
    let mut desired_nth = 0;
    loop {
        let next = agent.next().into_iter().chain(queue.next()).min();
        let Some(next) = next.filter(|next| *next <= end(agent)) else { break };
        advance(agent, next)?;
        while let Some(item) = queue.pop_due(next) {
            match item {
                Scheduled::Heartbeat(nth) if nth == desired_nth => {
                    agent.heartbeat(next);
                    queue.add(next + schedule.settings.heartbeat_interval, Scheduled::Heartbeat(nth));
                }
                Scheduled::Heartbeat(_) => {}
                Scheduled::Incident(Incident::SetDesired(desired)) => {
                    if agent.set_desired(next, desired) {
                        desired_nth += 1;
                        if desired == DesiredService::Present(Status::Passing) {
                            let at = next + schedule.settings.heartbeat_interval;
                            queue.add(at, Scheduled::Heartbeat(desired_nth));
                        }
                    }
                }
                Scheduled::Incident(Incident::Fault(fault)) => agent.fault(next, fault),
                Scheduled::Incident(Incident::Redefine) => agent.redefine(next, agent.settings()),
            }
        }
        advance(agent, next)?;
    }
    check(agent, end(agent))
}

/// Runs the schedule of a seed.
///
/// # Errors
/// The smallest schedule that was found to break a rule.
pub fn run_seed(seed: u64) -> Result<usize, Box<(AgentSchedule, Broken)>> {
    let first = schedule(seed);
    match run(&first) {
        Ok(requests) => Ok(requests),
        Err(broken) => Err(Box::new(shrink(first, broken))),
    }
}

/// Removes everything that is not needed to break the rule.
fn shrink(mut schedule: AgentSchedule, mut broken: Broken) -> (AgentSchedule, Broken) {
    loop {
        let mut smaller = Vec::new();
        for nth in 0..schedule.incidents.len() {
            let mut candidate = schedule.clone();
            candidate.incidents.remove(nth);
            smaller.push(candidate);
        }
        for nth in 0..schedule.agent.responses.len() {
            let mut candidate = schedule.clone();
            candidate.agent.responses.remove(nth);
            smaller.push(candidate);
            if schedule.agent.responses[nth] != ResponseScript::Done(0) {
                let mut candidate = schedule.clone();
                candidate.agent.responses[nth] = ResponseScript::Done(0);
                smaller.push(candidate);
            }
        }
        let found = smaller.into_iter().find_map(|one| run(&one).err().map(|broken| (one, broken)));
        match found {
            Some(found) => (schedule, broken) = found,
            None => return (schedule, broken),
        }
    }
}
