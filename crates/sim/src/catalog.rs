//! A made-up catalog around one [`Reconciler`]: slow, failing, forgetting, freezing, lying, and at last calm.
//!
//! A [`Script`] says what is wanted when, and what the catalog does to every request until it becomes calm. [`play`] plays
//! it in virtual time and looks on: once the catalog is calm, what is wanted and what it has must become equal
//! within a bounded time, and stay so (D5). A script that breaks a rule is made as small as it gets.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::effect::Wanted;
use containerpilot_core::plan::Status;
use containerpilot_core::reconcile::{DOUBT, Outcome, Reconciler, Request, Settings, Step};

use crate::chance::Chance;

/// What the catalog does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It does what it is asked, after so many milliseconds.
    Done(u64),
    /// It says no after so many milliseconds, and does nothing.
    Refused(u64),
    /// It does what it is asked, but the answer is lost.
    AnswerLost,
    /// It does what it is asked so many milliseconds after nobody waits for it any more.
    Late(u64),
    /// It says that it did, and did nothing. Not for a deregistration: nobody could ever know.
    Lie,
}

/// What happens beside the requests, in milliseconds since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// This is wanted now.
    Want(Wanted),
    /// The agent is restarted without its data.
    Forget,
    /// The agent is frozen for so many milliseconds; what it was asked meanwhile it does when it thaws.
    Freeze(u64),
    /// The service has another definition.
    Redefine,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct Script {
    /// What is known of the service.
    pub settings: Settings,
    /// When Consul drops it after it has turned critical.
    pub dropped_after: Option<Duration>,
    /// What happens, by milliseconds; in order.
    pub incidents: Vec<(u64, Incident)>,
    /// What becomes of the first requests; the others are well.
    pub fates: Vec<Fate>,
    /// The seed of the delays.
    pub seed: u64,
}

/// What broke, and how it came.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The rule, in words.
    pub what: String,
    /// The course of events.
    pub story: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    status: Status,
    /// Since when it has that status, and when it was last told.
    since: Time,
    told: Time,
}

/// What happens at a moment of the play.
#[derive(Clone, Copy, Debug)]
enum Coming {
    Incident(Incident),
    Beat(u64),
    /// The catalog does something; whether somebody waits to hear of it.
    Effect(Request, bool),
    Answer(Outcome),
}

struct World<'a> {
    script: &'a Script,
    machine: Reconciler,
    entry: Option<Entry>,
    wanted: Wanted,
    now: Time,
    coming: BTreeMap<(Time, u64), Coming>,
    serial: u64,
    /// The heartbeats that count: those of the present wish.
    beats: u64,
    requests: usize,
    frozen_until: Time,
    /// Until when an answer is waited for.
    deadline: Time,
    /// The last moment at which anything went wrong.
    calm_at: Time,
    chance: Chance,
    story: Vec<String>,
}

const fn at(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

const fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Makes up the script of a seed.
#[must_use]
pub fn script(seed: u64) -> Script {
    let mut chance = Chance::new(seed);
    let pace = milliseconds(chance.pick(&[500, 1_000, 5_000, 10_000]));
    let ttl = pace * chance.pick(&[2, 3, 5]);
    let drops_critical = chance.percent(30);
    let mut incidents = Vec::new();
    let mut now = 0;
    for _ in 0..=chance.below(12) {
        now += chance.pick(&[0, 1, 50, 300, 1_000, 4_000, 20_000]) + chance.below(50);
        let wanted = match chance.below(10) {
            0..5 => Wanted::Present(Status::Passing),
            5..7 => Wanted::Present(Status::Critical),
            7 => Wanted::Present(Status::Warning),
            _ => Wanted::Absent,
        };
        let incident = match chance.below(10) {
            0..6 => Incident::Want(wanted),
            6 | 7 => Incident::Forget,
            8 => Incident::Freeze(chance.pick(&[100, 2_000, 30_000])),
            _ => Incident::Redefine,
        };
        incidents.push((now, incident));
    }
    let fates = (0..chance.below(30)).map(|_| match chance.below(10) {
        0..4 => Fate::Done(chance.pick(&[0, 1, 20, 400, 4_000])),
        4 | 5 => Fate::Refused(chance.pick(&[0, 1, 400])),
        6 => Fate::AnswerLost,
        7 => Fate::Late(chance.below(12_000)),
        _ => Fate::Lie,
    });
    Script {
        fates: fates.collect(),
        settings: Settings { ttl, pace, drops_critical },
        dropped_after: drops_critical.then(|| ttl * 2),
        incidents,
        seed,
    }
}

/// Plays a script: the number of requests, or what broke.
pub fn play(script: &Script) -> Result<usize, Broken> {
    let mut world = World {
        script,
        machine: Reconciler::new(script.settings, script.seed),
        entry: None,
        wanted: Wanted::Absent,
        now: Time::ZERO,
        coming: BTreeMap::new(),
        serial: 0,
        beats: 0,
        requests: 0,
        frozen_until: Time::ZERO,
        deadline: Time::ZERO,
        calm_at: Time::ZERO,
        chance: Chance::new(script.seed),
        story: Vec::new(),
    };
    match world.run() {
        Ok(()) => Ok(world.requests),
        Err(what) => Err(Broken { what, story: world.story }),
    }
}

/// Plays the script of a seed; one that breaks a rule comes back as small as it gets.
pub fn play_seed(seed: u64) -> Result<usize, Box<(Script, Broken)>> {
    let first = script(seed);
    match play(&first) {
        Ok(requests) => Ok(requests),
        Err(broken) => Err(Box::new(shrunk(first, broken))),
    }
}

/// Leaves out whatever is not needed to break the rule.
fn shrunk(mut script: Script, mut broken: Broken) -> (Script, Broken) {
    loop {
        let mut smaller = Vec::new();
        for nth in 0..script.incidents.len() {
            let mut one = script.clone();
            one.incidents.remove(nth);
            smaller.push(one);
        }
        for nth in 0..script.fates.len() {
            let mut one = script.clone();
            one.fates.remove(nth);
            smaller.push(one);
            if script.fates[nth] != Fate::Done(0) {
                let mut calm = script.clone();
                calm.fates[nth] = Fate::Done(0);
                smaller.push(calm);
            }
        }
        let found = smaller.into_iter().find_map(|one| play(&one).err().map(|broken| (one, broken)));
        match found {
            Some(found) => (script, broken) = found,
            None => return (script, broken),
        }
    }
}

impl World<'_> {
    fn plan(&mut self, at: Time, coming: Coming) {
        self.serial += 1;
        self.coming.insert((at, self.serial), coming);
    }

    fn tell(&mut self, what: &str) {
        self.story.push(format!("{:>10.3} {what}", self.now.since(Time::ZERO).as_secs_f64()));
    }

    /// The time within which the two must be equal once nothing goes wrong any more.
    fn bound(&self) -> Duration {
        let Settings { ttl, pace, .. } = self.script.settings;
        DOUBT + ttl + pace * 2 + self.machine.deadline() + Duration::from_secs(5)
    }

    fn run(&mut self) -> Result<(), String> {
        let script = self.script;
        for (milliseconds, incident) in &script.incidents {
            self.plan(at(*milliseconds), Coming::Incident(*incident));
        }
        loop {
            let later = self.work()?;
            let next = self.coming.keys().next().map(|(at, _)| *at).into_iter().chain(later).min();
            // The end: long enough after the last that went wrong, to see that it stays as it is.
            let end = self.calm_at + self.bound() * 2;
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.compare(next)?;
            self.now = next;
            while let Some(entry) = self.coming.first_entry().filter(|entry| entry.key().0 <= next) {
                let coming = entry.remove();
                self.happen(coming)?;
            }
        }
        self.now = self.calm_at + self.bound() * 2;
        self.compare(self.now)
    }

    /// Lets the machine do what it wants to do now; when it wants to be asked again.
    fn work(&mut self) -> Result<Option<Time>, String> {
        for _ in 0..100 {
            match self.machine.next(self.now) {
                Step::Over => return Err("it is over, although nobody leaves".into()),
                Step::Wait(until) => return Ok(until),
                Step::Ask(request) => self.ask(request)?,
            }
            if self.machine.take_withdrawn() && self.wanted != Wanted::Absent {
                return Err("S2: it is said to be out although it is wanted".into());
            }
        }
        Err("D5: a hundred requests in no time".into())
    }

    fn ask(&mut self, request: Request) -> Result<(), String> {
        if self.coming.values().any(|coming| matches!(coming, Coming::Answer(_) | Coming::Effect(_, true))) {
            return Err("D5: two requests at a time".into());
        }
        let fate = self.script.fates.get(self.requests).copied().unwrap_or(Fate::Done(1));
        self.requests += 1;
        self.tell(&format!("asks {request:?}: {fate:?}"));
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
            Fate::Lie if request == Request::Deregister => {
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
    fn carry_out_at(&mut self, then: Time, request: Request) {
        let answered = then < self.deadline;
        self.plan(then, Coming::Effect(request, answered));
        if !answered {
            self.plan(self.deadline, Coming::Answer(Outcome::Unknown));
        }
    }

    fn happen(&mut self, coming: Coming) -> Result<(), String> {
        match coming {
            Coming::Answer(outcome) => {
                self.tell(&format!("answer {outcome:?}"));
                self.machine.done(self.now, outcome);
            }
            Coming::Effect(request, answered) => {
                let known = matches!(request, Request::Register(_)) || self.entry_at(self.now).is_some();
                self.tell(&format!("the catalog does {request:?}"));
                self.carry_out(request);
                if answered {
                    self.machine.done(self.now, if known { Outcome::Done } else { Outcome::Forgotten });
                }
            }
            Coming::Beat(beats) if beats == self.beats => {
                self.machine.beat();
                let next = self.now + self.script.settings.pace;
                self.plan(next, Coming::Beat(beats));
            }
            Coming::Beat(_) => {}
            Coming::Incident(incident) => {
                self.tell(&format!("{incident:?}"));
                self.trouble(self.now);
                self.incident(incident);
            }
        }
        if self.machine.take_withdrawn() && self.wanted != Wanted::Absent {
            return Err("S2: it is said to be out although it is wanted".into());
        }
        Ok(())
    }

    fn incident(&mut self, incident: Incident) {
        match incident {
            Incident::Want(wanted) => {
                if wanted != self.wanted {
                    self.beats += 1;
                    if wanted == Wanted::Present(Status::Passing) {
                        let first = self.now + self.script.settings.pace;
                        self.plan(first, Coming::Beat(self.beats));
                    }
                }
                self.wanted = wanted;
                self.machine.want(self.now, wanted);
            }
            Incident::Forget => self.entry = None,
            Incident::Freeze(time) => {
                self.frozen_until = self.frozen_until.max(self.now + milliseconds(time));
                self.trouble(self.frozen_until);
                // What is under way does not arrive before it thaws, in whatever order.
                let mut held: Vec<(Request, bool)> = Vec::new();
                self.coming.retain(|_, coming| match coming {
                    Coming::Effect(request, answered) => {
                        held.push((*request, *answered));
                        false
                    }
                    _ => true,
                });
                while !held.is_empty() {
                    match held.swap_remove(self.chance.index(held.len())) {
                        (request, true) => self.carry_out_at(self.frozen_until, request),
                        (request, false) => self.plan(self.frozen_until, Coming::Effect(request, false)),
                    }
                }
            }
            Incident::Redefine => self.machine.redefine(self.script.settings),
        }
    }

    fn carry_out(&mut self, request: Request) {
        let now = self.now;
        match request {
            // A catalog keeps the status of a service it knows.
            Request::Register(status) => {
                let status = self.expired().map_or(status, |entry| entry.status);
                self.entry = Some(Entry { status, since: now, told: now });
            }
            Request::Update(status) => {
                if let Some(entry) = self.expired() {
                    let since = if entry.status == status { entry.since } else { now };
                    self.entry = Some(Entry { status, since, told: now });
                }
            }
            Request::Deregister => self.entry = None,
        }
    }

    /// The entry as it is now, with the TTL and the dropping taken into account.
    fn expired(&self) -> Option<Entry> {
        self.entry_at(self.now)
    }

    fn entry_at(&self, now: Time) -> Option<Entry> {
        let mut entry = self.entry?;
        let runs_out = entry.told + self.script.settings.ttl;
        if entry.status != Status::Critical && runs_out < now {
            entry = Entry { status: Status::Critical, since: runs_out, ..entry };
        }
        let dropped = self.script.dropped_after.is_some_and(|after| entry.since + after < now);
        (entry.status != Status::Critical || !dropped).then_some(entry)
    }

    /// Compares what is wanted with what is there, just before a moment.
    fn compare(&mut self, moment: Time) -> Result<(), String> {
        if moment < self.calm_at + self.bound() {
            return Ok(());
        }
        let has = self.entry_at(moment).map(|entry| entry.status);
        let equal = match self.wanted {
            Wanted::Absent => has.is_none(),
            // One that Consul is asked to drop may be gone.
            Wanted::Present(Status::Critical) if self.script.settings.drops_critical => {
                has.is_none_or(|has| has == Status::Critical)
            }
            Wanted::Present(status) => has == Some(status),
        };
        self.now = moment;
        if !equal {
            let message = format!("D5: {:?} is wanted, and the catalog has {has:?}", self.wanted);
            self.tell(&message);
            return Err(message);
        }
        // Everything that is not a heartbeat would be needless by now.
        let most = 2_000 + self.script.fates.len();
        if self.requests > most {
            return Err(format!("D5: {} requests", self.requests));
        }
        Ok(())
    }
}
