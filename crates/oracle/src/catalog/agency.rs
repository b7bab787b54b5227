//! One service: the real reconciler that keeps it in the catalog, and the agent that it speaks to.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::reconcile::{
    Action, CatalogRequest, IN_DOUBT, Outcome, Reconciler, Settings,
};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::Status;

use super::{Fate, Incident, milliseconds};
use crate::rng::Rng;

#[derive(Clone, Copy, Debug)]
struct Entry {
    status: Status,
    /// Since when it has that status, and when it was last told.
    since: Time,
    told: Time,
}

/// What is under way.
#[derive(Clone, Copy, Debug)]
enum Coming {
    /// The catalog does something; whether somebody waits to hear of it.
    Effect(CatalogRequest, bool),
    Answer(Outcome),
}

/// One service, its reconciler and its catalog.
pub struct Agency {
    settings: Settings,
    dropped_after: Option<Duration>,
    fates: Vec<Fate>,
    machine: Reconciler,
    entry: Option<Entry>,
    desired: DesiredService,
    now: Time,
    coming: BTreeMap<(Time, u64), Coming>,
    serial: u64,
    /// When the machine wants to be asked again.
    later: Option<Time>,
    requests: usize,
    beats: usize,
    frozen_until: Time,
    /// Until when an answer is waited for.
    deadline: Time,
    /// The last moment at which anything went wrong.
    calm_at: Time,
    withdrawn: bool,
    /// Whether the machine has nothing to do any more, because the supervisor leaves.
    over: bool,
    rng: Rng,
    story: Option<Vec<String>>,
}

impl Agency {
    /// A service that is not in the catalog and need not be.
    #[must_use]
    pub fn new(settings: Settings, dropped_after: Option<Duration>, fates: Vec<Fate>, seed: u64) -> Self {
        Self {
            settings,
            dropped_after,
            fates,
            machine: Reconciler::new(settings, seed),
            entry: None,
            desired: DesiredService::Absent,
            now: Time::ZERO,
            coming: BTreeMap::new(),
            serial: 0,
            later: None,
            requests: 0,
            beats: 0,
            frozen_until: Time::ZERO,
            deadline: Time::ZERO,
            calm_at: Time::ZERO,
            withdrawn: false,
            over: false,
            rng: Rng::new(seed),
            story: None,
        }
    }

    /// From now on it can be told what happened.
    pub fn tells_its_story(&mut self) {
        self.story = Some(Vec::new());
    }

    /// What happened.
    #[must_use]
    pub fn story(&mut self) -> Vec<String> {
        self.story.take().unwrap_or_default()
    }

    /// What the reconciler knows of the service.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// How many requests there were.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests
    }

    fn plan(&mut self, at: Time, coming: Coming) {
        self.serial += 1;
        self.coming.insert((at, self.serial), coming);
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:>10.3} {}", self.now.since(Time::ZERO).as_secs_f64(), what()));
        }
    }

    /// The time within which the two must be equal once nothing goes wrong any more.
    fn bound(&self) -> Duration {
        let Settings { ttl, pace, .. } = self.settings;
        IN_DOUBT + ttl + pace * 2 + self.machine.deadline() + Duration::from_secs(5)
    }

    /// Long enough after the last that went wrong.
    #[must_use]
    pub fn end(&self) -> Time {
        self.calm_at + self.bound() * 2
    }

    /// When something happens next, unless something else is desired before.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        let coming = self.coming.keys().next().map(|(at, _)| *at);
        coming.into_iter().chain(self.later).min()
    }

    /// Something is desired from now on; whether it is something else than before.
    pub fn want(&mut self, now: Time, desired: DesiredService) -> bool {
        self.now = self.now.max(now);
        self.tell(|| format!("{desired:?} is desired"));
        self.trouble(self.now);
        let other = desired != self.desired;
        self.desired = desired;
        self.withdrawn &= desired == DesiredService::Absent;
        self.machine.want(self.now, desired);
        self.later = Some(self.now);
        other
    }

    /// It is healthy still.
    pub fn beat(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.beats += 1;
        self.machine.beat();
        self.later = Some(self.now);
    }

    /// Something befalls the agent.
    pub fn befalls(&mut self, now: Time, incident: Incident) {
        self.now = self.now.max(now);
        self.tell(|| format!("{incident:?}"));
        self.trouble(self.now);
        match incident {
            Incident::Want(desired) => {
                self.want(now, desired);
            }
            Incident::Forget => self.entry = None,
            Incident::Freeze(time) => self.freeze(time),
            Incident::Redefine => self.redefine(now, self.settings),
        }
        self.later = Some(self.now);
    }

    /// It has another definition.
    pub fn redefine(&mut self, now: Time, settings: Settings) {
        self.now = self.now.max(now);
        self.settings = settings;
        self.dropped_after = self.dropped_after.filter(|_| settings.drops_critical);
        self.machine.redefine(settings);
        self.later = Some(self.now);
        self.trouble(self.now);
    }

    /// Nothing has happened for a while, not even here.
    pub fn stands_still(&mut self, until: Time) {
        self.now = self.now.max(until);
        self.later = self.later.map(|later| later.max(until));
        self.trouble(until);
    }

    fn freeze(&mut self, time: u64) {
        self.frozen_until = self.frozen_until.max(self.now + milliseconds(time));
        self.trouble(self.frozen_until);
        // What is under way does not arrive before it thaws, in whatever order.
        let mut held: Vec<(CatalogRequest, bool)> = Vec::new();
        self.coming.retain(|_, coming| match coming {
            Coming::Effect(request, answered) => {
                held.push((*request, *answered));
                false
            }
            Coming::Answer(_) => true,
        });
        while !held.is_empty() {
            match held.swap_remove(self.rng.index(held.len())) {
                (request, true) => self.carry_out_at(self.frozen_until, request),
                (request, false) => self.plan(self.frozen_until, Coming::Effect(request, false)),
            }
        }
    }

    /// Whether the service has left since it was last desired out, or cannot be got out. Said once.
    pub fn take_deregistered(&mut self) -> bool {
        std::mem::take(&mut self.withdrawn)
    }

    /// Does everything up to a moment.
    pub fn advance(&mut self, until: Time) -> Result<(), String> {
        while let Some(next) = self.next().filter(|next| *next <= until) {
            self.compare(next)?;
            self.now = self.now.max(next);
            while let Some(entry) = self.coming.first_entry().filter(|entry| entry.key().0 <= next) {
                let coming = entry.remove();
                self.happen(coming)?;
            }
            self.work()?;
        }
        Ok(())
    }

    /// S6: the supervisor leaves. The service is out of the catalog when the machine says that it is done, unless
    /// something has gone wrong since; and it says so in time.
    pub fn leaves(&mut self, now: Time) -> Result<(), String> {
        self.now = self.now.max(now);
        self.advance(self.now)?;
        let (desired, troubled) = (DesiredService::Absent, self.calm_at.max(self.frozen_until));
        self.desired = desired;
        self.machine.leave(self.now);
        self.later = Some(self.now);
        let well = self.requests;
        let limit = self.now + Duration::from_secs(30) + self.bound();
        while !self.over {
            let Some(next) = self.next().filter(|next| *next <= limit) else {
                return Err("S6: it does not come to an end".into());
            };
            self.advance(next)?;
        }
        let fated = self.fates.len() > well || troubled + self.bound() > now || self.calm_at > now;
        if !fated && self.entry_at(self.now).is_some() {
            return Err("S6: it is left behind in the catalog".into());
        }
        Ok(())
    }

    /// Lets the machine do what it wants to do now.
    fn work(&mut self) -> Result<(), String> {
        self.later = None;
        for _ in 0..100 {
            match self.machine.next(self.now) {
                Action::Finished => {
                    self.over = true;
                    return Ok(());
                }
                Action::Wait(until) => {
                    self.later = until;
                    return self.hear();
                }
                Action::Send(request) => self.ask(request)?,
            }
            self.hear()?;
        }
        Err("D5: a hundred requests in no time".into())
    }

    fn hear(&mut self) -> Result<(), String> {
        if self.machine.take_deregistered() {
            if self.desired != DesiredService::Absent {
                return Err("S2: it is said to be out although it is desired".into());
            }
            self.withdrawn = true;
        }
        Ok(())
    }

    fn ask(&mut self, request: CatalogRequest) -> Result<(), String> {
        if self.coming.values().any(|coming| matches!(coming, Coming::Answer(_) | Coming::Effect(_, true))) {
            return Err("D5: two requests at a time".into());
        }
        let fate = self.fates.get(self.requests).copied().unwrap_or(Fate::Done(1));
        self.requests += 1;
        self.tell(|| format!("asks {request:?}: {fate:?}"));
        let deadline = self.now + self.machine.deadline();
        self.deadline = deadline;
        if self.frozen_until > self.now {
            self.carry_out_at(self.frozen_until, request);
            return Ok(());
        }
        match fate {
            Fate::Done(after) => {
                let then = self.now + milliseconds(after);
                self.carry_out_at(then, request);
                if then >= deadline {
                    self.trouble(then);
                }
            }
            Fate::Refused(after) => {
                self.plan(self.now + milliseconds(after), Coming::Answer(Outcome::Failed));
                self.trouble(self.now + milliseconds(after));
            }
            Fate::AnswerLost => {
                self.plan(self.now, Coming::Effect(request, false));
                self.plan(deadline, Coming::Answer(Outcome::Unknown));
                self.trouble(deadline);
            }
            Fate::Late(after) => {
                self.plan(deadline, Coming::Answer(Outcome::Unknown));
                self.plan(deadline + milliseconds(after), Coming::Effect(request, false));
                self.trouble(deadline + milliseconds(after));
            }
            Fate::Lie if request == CatalogRequest::Deregister => {
                self.plan(self.now, Coming::Effect(request, true));
            }
            Fate::Lie => {
                self.plan(self.now, Coming::Answer(Outcome::Done));
                self.trouble(self.now);
            }
        }
        Ok(())
    }

    fn trouble(&mut self, until: Time) {
        self.calm_at = self.calm_at.max(until);
    }

    /// The catalog will do something; the answer comes with it, unless nobody waits any more by then.
    fn carry_out_at(&mut self, then: Time, request: CatalogRequest) {
        let answered = then < self.deadline;
        self.plan(then, Coming::Effect(request, answered));
        if !answered {
            self.plan(self.deadline, Coming::Answer(Outcome::Unknown));
        }
    }

    fn happen(&mut self, coming: Coming) -> Result<(), String> {
        match coming {
            Coming::Answer(outcome) => {
                self.tell(|| format!("answer {outcome:?}"));
                self.machine.done(self.now, outcome);
            }
            Coming::Effect(request, answered) => {
                let known =
                    matches!(request, CatalogRequest::Register(_)) || self.entry_at(self.now).is_some();
                self.tell(|| format!("the catalog does {request:?}"));
                self.carry_out(request);
                if answered {
                    self.machine.done(self.now, if known { Outcome::Done } else { Outcome::Forgotten });
                }
            }
        }
        self.hear()
    }

    fn carry_out(&mut self, request: CatalogRequest) {
        let now = self.now;
        match request {
            // A catalog keeps the status of a service it knows.
            CatalogRequest::Register(status) => {
                let status = self.entry_at(now).map_or(status, |entry| entry.status);
                self.entry = Some(Entry { status, since: now, told: now });
            }
            CatalogRequest::Update(status) => {
                if let Some(entry) = self.entry_at(now) {
                    let since = if entry.status == status { entry.since } else { now };
                    self.entry = Some(Entry { status, since, told: now });
                }
            }
            CatalogRequest::Deregister => self.entry = None,
        }
    }

    /// The entry at a moment, with the TTL and the dropping taken into account.
    fn entry_at(&self, now: Time) -> Option<Entry> {
        let mut entry = self.entry?;
        let runs_out = entry.told + self.settings.ttl;
        if entry.status != Status::Critical && runs_out < now {
            entry = Entry { status: Status::Critical, since: runs_out, ..entry };
        }
        let dropped = self.dropped_after.is_some_and(|after| entry.since + after < now);
        (entry.status != Status::Critical || !dropped).then_some(entry)
    }

    /// Compares what is desired with what is there, just before a moment.
    pub fn compare(&mut self, moment: Time) -> Result<(), String> {
        if moment < self.calm_at + self.bound() {
            return Ok(());
        }
        let has = self.entry_at(moment).map(|entry| entry.status);
        let equal = match self.desired {
            DesiredService::Absent => has.is_none(),
            // One that Consul is asked to drop may be gone.
            DesiredService::Present(Status::Critical) if self.settings.drops_critical => {
                has.is_none_or(|has| has == Status::Critical)
            }
            DesiredService::Present(status) => has == Some(status),
        };
        if !equal {
            self.now = moment;
            let message = format!("D5: {:?} is desired, and the catalog has {has:?}", self.desired);
            self.tell(|| message.clone());
            return Err(message);
        }
        // Everything else would be needless: heartbeats, what becomes of the first requests, and what has to be told again
        // now and then because nobody sends heartbeats for it.
        let again = moment.since(Time::ZERO).as_millis() / 100;
        let most =
            200 + self.beats * 2 + self.fates.len() * 20 + usize::try_from(again).unwrap_or(usize::MAX);
        if self.requests > most {
            return Err(format!("D5: {} requests", self.requests));
        }
        Ok(())
    }
}
