//! A made-up catalog around one reconciler: slow, failing, forgetting, freezing, lying, and at last calm.
//!
//! A [`Script`] says what is desired when, and what the catalog does to every request until it becomes calm. [`play`] plays
//! it in virtual time, and the [`Agency`] looks on: once the catalog is calm, what is desired and what it has must become
//! equal within a bounded time, and stay so (D5). A script that breaks a rule is made as small as it gets. The world of
//! whole schedules has the same agencies.

pub mod agency;

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::reconcile::Settings;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::Status;

use self::agency::Agency;
use crate::rng::Rng;

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
    /// This is desired now.
    Want(DesiredService),
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

/// Makes up the script of a seed.
#[must_use]
pub fn script(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let pace = milliseconds(rng.pick(&[500, 1_000, 5_000, 10_000]));
    let ttl = pace * rng.pick(&[2, 3, 5]);
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
            0..6 => Incident::Want(desired),
            6 | 7 => Incident::Forget,
            8 => Incident::Freeze(rng.pick(&[100, 2_000, 30_000])),
            _ => Incident::Redefine,
        };
        incidents.push((now, incident));
    }
    let fates = (0..rng.below(30)).map(|_| match rng.below(10) {
        0..4 => Fate::Done(rng.pick(&[0, 1, 20, 400, 4_000])),
        4 | 5 => Fate::Refused(rng.pick(&[0, 1, 400])),
        6 => Fate::AnswerLost,
        7 => Fate::Late(rng.below(12_000)),
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
    let mut agency = Agency::new(script.settings, script.dropped_after, script.fates.clone(), script.seed);
    agency.tells_its_story();
    match follow(script, &mut agency) {
        Ok(()) => Ok(agency.requests()),
        Err(what) => Err(Broken { what, story: agency.story() }),
    }
}

/// What happens at a moment beside what the agency does.
#[derive(Clone, Copy, Debug)]
enum Coming {
    Incident(Incident),
    /// A heartbeat, of the wish of this number.
    Beat(u64),
}

fn follow(script: &Script, agency: &mut Agency) -> Result<(), String> {
    let mut agenda: BTreeMap<(Time, u64), Coming> = BTreeMap::new();
    let mut serial = 0;
    let mut plan = |agenda: &mut BTreeMap<(Time, u64), Coming>, at: Time, coming: Coming| {
        serial += 1;
        agenda.insert((at, serial), coming);
    };
    for (milliseconds, incident) in &script.incidents {
        plan(&mut agenda, at(*milliseconds), Coming::Incident(*incident));
    }
    let mut wish = 0;
    loop {
        let planned = agenda.keys().next().map(|(at, _)| *at);
        let next = agency.next().into_iter().chain(planned).min();
        // The end: long enough after the last that went wrong, to see that it stays as it is.
        let Some(next) = next.filter(|next| *next <= agency.end()) else { break };
        agency.advance(next)?;
        while let Some(entry) = agenda.first_entry().filter(|entry| entry.key().0 <= next) {
            match entry.remove() {
                Coming::Beat(of) if of == wish => {
                    agency.beat(next);
                    plan(&mut agenda, next + script.settings.pace, Coming::Beat(of));
                }
                Coming::Beat(_) => {}
                Coming::Incident(Incident::Want(desired)) => {
                    if agency.want(next, desired) {
                        wish += 1;
                        if desired == DesiredService::Present(Status::Passing) {
                            plan(&mut agenda, next + script.settings.pace, Coming::Beat(wish));
                        }
                    }
                }
                Coming::Incident(incident) => agency.befalls(next, incident),
            }
        }
        agency.advance(next)?;
    }
    let end = agency.end();
    agency.compare(end)
}

const fn at(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

const fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
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
