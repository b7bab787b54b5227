//! D14: several supervisors and a virtual Consul, which lose contact, answer late, freeze, and are disturbed by hand.
//!
//! Each supervisor is the real core with the real requests. Never more of them than slots have a process of a job that
//! requires the lock, except for one that was frozen; fencing numbers grow; and when all is calm, free slots are taken.

mod consul;
pub mod schedule;
mod supervisor;

use std::time::Duration;

use containerpilot_core::catalog::lock_requests::{LockAction, LockOutcome, LockRequest};
use containerpilot_core::plan::Signal;
use containerpilot_core::rng::Rng;
use containerpilot_core::{Input, Time};
use containerpilot_simulation::world::queue::Queue;

use consul::Consul;
use schedule::{Incident, LockSchedule, Network, schedule};
use supervisor::Supervisor;

/// A shorter freeze does not keep a supervisor from killing its job in time.
const LONG_FREEZE: Duration = Duration::from_millis(400);
/// How long a supervisor that was frozen may need to kill its job.
const EXCUSE: Duration = Duration::from_millis(500);

/// A rule that was broken.
#[derive(Clone, Debug)]
pub struct Broken {
    /// How it was broken.
    pub what: String,
    /// What happened, a line each.
    pub trace: Vec<String>,
}

/// What a run has shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct LockTotals {
    /// The requests of all supervisors.
    pub requests: u64,
    /// The processes that were started.
    pub starts: u64,
}

/// Something that is due.
enum Item {
    /// The requests or the core of a supervisor have something to do.
    Wake(usize),
    /// A request reaches Consul.
    Arrive(Exchange),
    /// A blocking query has waited long enough.
    Waited(Exchange),
    /// An answer, or a timeout, reaches a supervisor.
    Answer(Exchange, LockOutcome),
    Incident(Incident),
    /// Consul has a leader again.
    Leader,
}

/// A request of one life of a supervisor.
#[derive(Clone)]
struct Exchange {
    by: usize,
    life: u64,
    number: u64,
    request: LockRequest,
    session: Option<String>,
    answer_delay: Option<Duration>,
}

struct World<'a> {
    schedule: &'a LockSchedule,
    rng: Rng,
    now: Time,
    queue: Queue<Item>,
    consul: Consul,
    supervisors: Vec<(u64, Option<Supervisor>)>,
    partitioned_until: Vec<Time>,
    /// Until when an overlap with the job of a supervisor is excused.
    excused_until: Vec<Time>,
    no_leader_until: Time,
    waiters: Vec<Exchange>,
    /// When each supervisor is woken next.
    wakes: Vec<Option<Time>>,
    /// Fencing numbers with the supervisor and its life.
    numbers: Vec<(u64, (usize, u64))>,
    totals: LockTotals,
    trace: Option<Vec<String>>,
    disturbed: Time,
}

impl World<'_> {
    /// Wakes a supervisor, if it is not woken before.
    fn wake(&mut self, nth: usize, at: Time) {
        if self.wakes[nth].is_none_or(|known| at < known) {
            self.wakes[nth] = Some(at);
            self.queue.add(at, Item::Wake(nth));
        }
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>9.3} {}", self.now.as_nanos() as f64 / 1e9, text()));
        }
    }

    fn start(&mut self, nth: usize) {
        let (life, slot) = &mut self.supervisors[nth];
        if slot.is_some() {
            return;
        }
        *life += 1;
        let seed = self.schedule.seed ^ (nth as u64) << 8 ^ *life;
        *slot = Some(Supervisor::new(&self.schedule.lock, self.schedule.programs[nth], seed));
        self.note(|| format!("{nth} starts"));
        let _ = self.step(nth, Some(Input::Ready));
        self.wake(nth, self.now);
    }

    /// Passes an input to a supervisor, and lets it do what is due.
    fn step(&mut self, nth: usize, input: Option<Input>) -> Result<(), String> {
        let (now, mut created) = (self.now, Vec::new());
        let Some(supervisor) = &mut self.supervisors[nth].1 else { return Ok(()) };
        supervisor.input(now, input.unwrap_or(Input::Tick), &mut created)?;
        supervisor.report(now, &mut created)?;
        for number in created {
            self.totals.starts += 1;
            self.note(|| format!("{nth} runs with {number:?}"));
            self.judge(nth, number)?;
        }
        Ok(())
    }

    /// Judges the start of a process.
    fn judge(&mut self, nth: usize, number: Option<u64>) -> Result<(), String> {
        let now = self.now;
        let runs = |other: &usize| {
            *other != nth
                && (self.excused_until[*other] <= now || !self.schedule.excuses_frozen)
                && self.supervisors[*other].1.as_ref().is_some_and(|other| other.runs_at(now))
        };
        let others: Vec<usize> = (0..self.supervisors.len()).filter(runs).collect();
        if others.len() >= self.schedule.lock.slots as usize {
            return Err(format!("{nth} starts its job while that of {others:?} runs"));
        }
        let Some(number) = number else { return Err(format!("{nth} has no fencing number")) };
        let who = (nth, self.supervisors[nth].0);
        let mut earlier = self.numbers.iter().filter(|(_, by)| *by != who);
        let is_old = |(known, _): &(u64, (usize, u64))| match self.schedule.lock.slots {
            1 => *known >= number,
            // Several may get a slot at the same time, and start in another order.
            _ => *known == number,
        };
        if let Some((known, by)) = earlier.find(|one| is_old(one)) {
            return Err(format!("{nth} has the fencing number {number}, and {by:?} had {known} before"));
        }
        self.numbers.push((number, who));
        Ok(())
    }

    /// Sends what a supervisor requests, and wakes it when it has something to do.
    fn pursue(&mut self, nth: usize) -> Result<(), String> {
        loop {
            let now = self.now;
            let life = self.supervisors[nth].0;
            let Some(supervisor) = &mut self.supervisors[nth].1 else { return Ok(()) };
            match supervisor.requests.next(now) {
                LockAction::Finished if supervisor.is_over => {
                    self.note(|| format!("{nth} is over"));
                    self.supervisors[nth].1 = None;
                    return Ok(());
                }
                LockAction::Finished => {}
                LockAction::Send(request) => {
                    supervisor.request += 1;
                    let exchange = Exchange {
                        by: nth,
                        life,
                        number: supervisor.request,
                        session: supervisor.requests.session().map(str::to_owned),
                        request,
                        answer_delay: None,
                    };
                    let timeout = supervisor.requests.deadline();
                    self.send(exchange, timeout);
                    continue;
                }
                LockAction::Wait(Some(at)) => self.wake(nth, at),
                LockAction::Wait(None) => {}
            }
            let Some(supervisor) = &mut self.supervisors[nth].1 else { return Ok(()) };
            match supervisor.next() {
                Some(at) if at <= now => {
                    let input = supervisor.take(now);
                    self.step(nth, Some(input))?;
                }
                Some(at) => {
                    self.wake(nth, at);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    fn send(&mut self, mut exchange: Exchange, timeout: Duration) {
        self.totals.requests += 1;
        let network = self.schedule.network;
        let wait = match exchange.request {
            LockRequest::Look { index: Some(_), wait } => wait + wait / 16,
            _ => Duration::ZERO,
        };
        let give_up_at = self.now + wait + timeout;
        self.queue.add(give_up_at, Item::Answer(exchange.clone(), LockOutcome::Failed));
        let cut = self.now < self.partitioned_until[exchange.by];
        if cut || self.rng.percent(network.lost) {
            // Of a connection that was cut, requests may still be on their way.
            if !(cut && self.rng.percent(10)) {
                return;
            }
        }
        let quick = Duration::from_millis(1 + self.rng.below(20));
        let delay = if self.rng.percent(network.late) {
            Duration::from_millis(self.rng.below(40_000))
        } else if self.rng.percent(network.slow) {
            Duration::from_millis(self.rng.below(4_000))
        } else {
            quick
        };
        exchange.answer_delay = (!self.rng.percent(network.answer_lost)).then_some(quick);
        self.queue.add(self.now + delay, Item::Arrive(exchange));
    }

    fn arrive(&mut self, exchange: Exchange) {
        let now = self.now;
        self.consul.expire(now);
        if now < self.no_leader_until {
            let carried_out = self.rng.percent(10);
            if carried_out && !matches!(exchange.request, LockRequest::Look { .. } | LockRequest::Renew) {
                let _ = self.consul.carry_out(now, &exchange.request, exchange.session.as_deref());
            }
            return self.answer(exchange, LockOutcome::Failed);
        }
        if let LockRequest::Look { index: Some(index), wait } = exchange.request
            && index == self.consul.index
        {
            self.queue.add(now + wait, Item::Waited(exchange.clone()));
            return self.waiters.push(exchange);
        }
        let outcome = self.consul.carry_out(now, &exchange.request, exchange.session.as_deref());
        self.note(|| format!("{} {:?}: {outcome:?}", exchange.by, exchange.request));
        self.answer(exchange, outcome);
    }

    fn answer(&mut self, exchange: Exchange, outcome: LockOutcome) {
        // An answer does not pass a cut connection.
        let cut = self.now < self.partitioned_until[exchange.by];
        if let Some(delay) = exchange.answer_delay.filter(|_| !cut) {
            self.queue.add(self.now + delay, Item::Answer(exchange, outcome));
        }
    }

    /// Answers the blocking queries that wait for a change.
    fn wake_waiters(&mut self) {
        if self.now < self.no_leader_until {
            return;
        }
        let index = self.consul.index;
        let is_due = |waiter: &Exchange| !matches!(waiter.request, LockRequest::Look { index: Some(known), .. } if known == index);
        let (due, rest) = std::mem::take(&mut self.waiters).into_iter().partition(is_due);
        self.waiters = rest;
        let due: Vec<Exchange> = due;
        for waiter in due {
            let seen = LockOutcome::Seen(self.consul.look());
            self.answer(waiter, seen);
        }
    }

    fn incident(&mut self, incident: Incident) -> Result<(), String> {
        let now = self.now;
        let after = |time: u64| now + Duration::from_millis(time);
        self.note(|| format!("{incident:?}"));
        match incident {
            Incident::Partition(nth, time) => {
                self.partitioned_until[nth] = after(time);
                self.disturbed = self.disturbed.max(after(time));
            }
            Incident::Freeze(nth, time) => {
                if let Some(supervisor) = &mut self.supervisors[nth].1 {
                    supervisor.frozen_until = supervisor.frozen_until.max(after(time));
                    if Duration::from_millis(time) > LONG_FREEZE {
                        self.excused_until[nth] = self.excused_until[nth].max(after(time) + EXCUSE);
                    }
                    self.disturbed = self.disturbed.max(after(time));
                    self.wake(nth, after(time));
                }
            }
            Incident::NoLeader(time) => {
                self.no_leader_until = after(time);
                self.disturbed = self.disturbed.max(after(time));
                self.queue.add(after(time), Item::Leader);
            }
            Incident::Delete(nth) => self.consul.delete(nth),
            Incident::Destroy(nth) => self.consul.destroy_holder(now, nth),
            Incident::Overwrite => self.consul.overwrite(),
            Incident::Shutdown(nth) => {
                self.step(nth, Some(Input::Signal(Signal::TERM)))?;
                self.wake(nth, now);
            }
            Incident::Crash(nth) => self.supervisors[nth].1 = None,
            Incident::Restart(nth) => self.start(nth),
        }
        Ok(())
    }

    fn handle(&mut self, item: Item) -> Result<(), String> {
        let whom = match &item {
            Item::Wake(nth) | Item::Answer(Exchange { by: nth, .. }, _) => Some(*nth),
            Item::Incident(Incident::Shutdown(nth)) => Some(*nth),
            _ => None,
        };
        let frozen = whom.and_then(|nth| self.supervisors[nth].1.as_ref()).map(|one| one.frozen_until);
        if let Some(until) = frozen.filter(|until| self.now < *until) {
            self.queue.add(until, item);
            return Ok(());
        }
        match item {
            Item::Wake(nth) => {
                if self.wakes[nth].is_some_and(|at| at <= self.now) {
                    self.wakes[nth] = None;
                }
                self.pursue(nth)?;
            }
            Item::Arrive(exchange) => self.arrive(exchange),
            Item::Waited(exchange) => {
                let same = |one: &Exchange| {
                    (one.by, one.life, one.number) == (exchange.by, exchange.life, exchange.number)
                };
                if let Some(at) = self.waiters.iter().position(same) {
                    let waiter = self.waiters.remove(at);
                    let outcome = match self.now < self.no_leader_until {
                        true => LockOutcome::Failed,
                        false => LockOutcome::Seen(self.consul.look()),
                    };
                    self.answer(waiter, outcome);
                }
            }
            Item::Answer(exchange, outcome) => {
                let nth = exchange.by;
                let (life, supervisor) = &mut self.supervisors[nth];
                if let Some(supervisor) = supervisor
                    && (*life, supervisor.request) == (exchange.life, exchange.number)
                {
                    // Further answers to this request are too late.
                    supervisor.request += 1;
                    supervisor.requests.done(self.now, outcome);
                    self.step(nth, None)?;
                    self.pursue(nth)?;
                }
            }
            Item::Incident(incident) => self.incident(incident)?,
            Item::Leader => {
                if self.no_leader_until <= self.now {
                    self.consul.new_leader(self.now);
                }
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), String> {
        for nth in 0..self.supervisors.len() {
            self.start(nth);
        }
        for (at, incident) in &self.schedule.incidents {
            let at = Time::ZERO + Duration::from_millis(*at);
            self.disturbed = self.disturbed.max(at);
            self.queue.add(at, Item::Incident(*incident));
        }
        let ttl = self.schedule.lock.ttl;
        // A session expires after two TTLs, its slot is left alone for another, and a lost request costs some more.
        let bound =
            if self.schedule.network.lost == 0 { ttl * 8 + Duration::from_secs(120) } else { ttl * 5 };
        loop {
            let next = self.queue.next();
            let expiry = self.consul.next_expiry().filter(|_| self.now >= self.no_leader_until);
            let end = self.disturbed + bound;
            let Some(at) = next.into_iter().chain(expiry).min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if self.now >= self.no_leader_until {
                self.consul.expire(self.now);
            }
            if let Some(item) = self.queue.pop_due(at) {
                self.handle(item)?;
            }
            self.wake_waiters();
        }
        self.judge_end()
    }

    /// When all is calm, free slots are taken.
    fn judge_end(&self) -> Result<(), String> {
        let network = self.schedule.network;
        if network.lost + network.answer_lost + network.late + network.slow > 0 {
            return Ok(());
        }
        let alive = self.supervisors.iter().filter_map(|(_, one)| one.as_ref()).filter(|one| !one.is_over);
        let alive = alive.clone().count();
        let holding = self.supervisors.iter().filter_map(|(_, one)| one.as_ref());
        let holding =
            holding.filter(|one| one.requests.until().is_some_and(|until| self.now < until)).count();
        let expected = alive.min(self.schedule.lock.slots as usize);
        if holding != expected {
            return Err(format!("{holding} supervisors have the lock in the end, and {expected} should"));
        }
        Ok(())
    }
}

/// Runs a schedule.
///
/// # Errors
/// The rule that was broken.
pub fn run(schedule: &LockSchedule, trace: bool) -> Result<LockTotals, Broken> {
    let count = schedule.programs.len();
    let mut world = World {
        schedule,
        rng: Rng::from_seed(schedule.seed ^ 1),
        now: Time::ZERO,
        queue: Queue::new(None),
        consul: Consul::new(&schedule.lock),
        supervisors: (0..count).map(|_| (0, None)).collect(),
        partitioned_until: vec![Time::ZERO; count],
        excused_until: vec![Time::ZERO; count],
        no_leader_until: Time::ZERO,
        waiters: Vec::new(),
        wakes: vec![None; count],
        numbers: Vec::new(),
        totals: LockTotals::default(),
        trace: trace.then(Vec::new),
        disturbed: Time::ZERO,
    };
    match world.run() {
        Ok(()) => Ok(world.totals),
        Err(what) => Err(Broken { what: format!("D14: {what}"), trace: world.trace.unwrap_or_default() }),
    }
}

/// Runs the schedule of a seed.
///
/// # Errors
/// The smallest schedule that was found to break a rule.
pub fn run_seed(seed: u64) -> Result<LockTotals, Box<(LockSchedule, Broken)>> {
    let first = schedule(seed);
    match run(&first, false) {
        Ok(totals) => Ok(totals),
        Err(broken) => Err(Box::new(shrink(first, broken))),
    }
}

/// Removes everything that is not needed to break the rule.
fn shrink(mut schedule: LockSchedule, mut broken: Broken) -> (LockSchedule, Broken) {
    loop {
        let mut smaller: Vec<LockSchedule> = (0..schedule.incidents.len())
            .map(|nth| {
                let mut candidate = schedule.clone();
                candidate.incidents.remove(nth);
                candidate
            })
            .collect();
        if schedule.network.late + schedule.network.lost > 0 {
            let quiet = Network { lost: 0, answer_lost: 0, slow: 0, late: 0 };
            smaller.push(LockSchedule { network: quiet, ..schedule.clone() });
        }
        let found = smaller.into_iter().find_map(|one| run(&one, true).err().map(|broken| (one, broken)));
        match found {
            Some(found) => (schedule, broken) = found,
            None => {
                let traced = run(&schedule, true).err();
                return (schedule, traced.unwrap_or(broken));
            }
        }
    }
}
