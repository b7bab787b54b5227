//! Keeping a catalog true: what is wanted of a service, what the catalog is believed to have, and the next request that
//! makes the two equal (D5, H6).
//!
//! ```text
//! wanted      believed               next request                  then
//! ---------   --------------------   ---------------------------   -----------------------------------------------
//! absent      gone                   none                          withdrawn
//! absent      there, or perhaps      Deregister                    gone
//! present     gone, or perhaps       Register with the status      there; the status is told once more, because a
//!                                                                  catalog keeps that of a service it knew already
//! present     there, other status    Update                        there, with the status
//! present     there, heartbeat due   Update                        there, trusted for another TTL
//! ```
//!
//! There is never more than one request at a time. "Forgotten" as an answer means gone. A request without an answer
//! may yet be carried out, now or later (a frozen agent does when it thaws): what it was about is in doubt, and when
//! the doubt has had its time everything is told once more.
//!
//! [`Contact`] says when the log has something to say about all that, and [`Follow`](follow::Follow) is the same
//! idea for watches.

use core::time::Duration;

use crate::effect::Wanted;
use crate::plan::Status;
use crate::rng::Rng;
use crate::time::Time;

/// The first delay before a request is made again.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// The longest such delay, unless heartbeats come faster.
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// For how long a request that was not answered may still be carried out.
pub const DOUBT: Duration = Duration::from_secs(15);
/// How often a service is told to leave the catalog when the supervisor leaves itself and the answers are bad.
const LAST_TRIES: u32 = 2;

/// What the machine must know of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long the catalog trusts a heartbeat.
    pub ttl: Duration,
    /// How often heartbeats come; also the longest time between two tries.
    pub pace: Duration,
    /// Whether the catalog drops a critical service by itself, as it was asked to: it is then not put back.
    pub drops_critical: bool,
}

/// Something to ask of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Put the service there, with its check in this status.
    Register(Status),
    /// Tell the status; for a passing service, this is the heartbeat.
    Update(Status),
    /// Take the service out.
    Deregister,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done,
    /// The catalog knows no such service, or no such check.
    Forgotten,
    /// It was refused, or never arrived: nothing has changed.
    Failed,
    /// There was no answer, or none that can be believed: it may have been carried out, or may yet be.
    Unknown,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask, and say what became of it.
    Ask(Request),
    /// Nothing before this moment; at all, if there is none.
    Wait(Option<Time>),
    /// Nothing any more: the supervisor leaves, and the service is out of the catalog, or cannot be got out.
    Over,
}

/// What the catalog is believed to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Believed {
    Gone,
    Perhaps,
    There,
}

/// One service and its catalog.
#[derive(Clone, Debug)]
pub struct Reconciler {
    settings: Settings,
    wanted: Wanted,
    believed: Believed,
    /// What was believed before the request that is under way.
    before: Believed,
    /// The status that was told and taken.
    told: Option<Status>,
    /// Whether a heartbeat waits to be sent.
    due: bool,
    asked: Option<Request>,
    /// Whether the definition has changed while a request was under way.
    outdated: bool,
    /// Whether the last that succeeded was a registration.
    just_registered: bool,
    failures: u32,
    not_before: Time,
    /// When a status that nobody sends heartbeats for is told again.
    refresh_at: Option<Time>,
    /// When everything is told once more, because something was in doubt.
    doubt_until: Option<Time>,
    /// Whether somebody waits to hear that the service is out.
    leaving_awaited: bool,
    withdrawn: bool,
    /// How many tries are left, once the supervisor leaves.
    last_tries: Option<u32>,
    rng: Rng,
}

impl Reconciler {
    /// A service that is not in the catalog and need not be. The seed spreads retries of many over time.
    #[must_use]
    pub const fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            wanted: Wanted::Absent,
            believed: Believed::Gone,
            before: Believed::Gone,
            told: None,
            due: false,
            asked: None,
            outdated: false,
            just_registered: false,
            failures: 0,
            not_before: Time::ZERO,
            refresh_at: None,
            doubt_until: None,
            leaving_awaited: false,
            withdrawn: false,
            last_tries: None,
            rng: Rng::new(seed),
        }
    }

    /// What is wanted from now on. A change is tried at once, however bad the last answers were: a failed check must
    /// not wait for a delay that was meant for heartbeats.
    pub fn want(&mut self, now: Time, wanted: Wanted) {
        if self.last_tries.is_some() {
            return;
        }
        self.leaving_awaited = wanted == Wanted::Absent;
        if self.leaving_awaited {
            self.due = false;
        } else {
            self.withdrawn = false;
        }
        if self.wanted != wanted {
            self.wanted = wanted;
            self.not_before = now;
            // Whatever was wanted in between, and whatever became of that: it is told anew.
            (self.told, self.refresh_at) = (None, None);
        }
        self.say_withdrawn();
    }

    /// The service has another definition, which has to be registered.
    pub fn redefine(&mut self, settings: Settings) {
        self.settings = settings;
        self.outdated = self.asked.is_some();
        if self.believed == Believed::There {
            self.believed = Believed::Perhaps;
        }
    }

    /// The service is healthy still.
    pub fn beat(&mut self) {
        self.due = matches!(self.wanted, Wanted::Present(_));
    }

    /// The supervisor leaves: the service is to be out, but not for every price.
    pub fn leave(&mut self, now: Time) {
        self.want(now, Wanted::Absent);
        self.last_tries = Some(LAST_TRIES);
        self.not_before = now;
        self.doubt_until = None;
    }

    /// What to do now. After [`Step::Ask`], nothing until [`Reconciler::done`].
    pub fn next(&mut self, now: Time) -> Step {
        if self.asked.is_some() {
            return Step::Wait(None);
        }
        if self.last_tries == Some(0) || (self.last_tries.is_some() && self.is_gone()) {
            return Step::Over;
        }
        match self.needed(now) {
            Err(later) => Step::Wait(later),
            Ok(_) if now < self.not_before => Step::Wait(Some(self.not_before)),
            Ok(request) => {
                self.asked = Some(request);
                self.before = self.believed;
                if matches!(request, Request::Register(_)) {
                    self.believed = Believed::Perhaps;
                }
                Step::Ask(request)
            }
        }
    }

    /// The request that brings the two together, or when there may be one.
    fn needed(&self, now: Time) -> Result<Request, Option<Time>> {
        let again = self.doubt_until.is_some_and(|until| until <= now)
            || self.refresh_at.is_some_and(|refresh| refresh <= now);
        let later = [self.doubt_until, self.refresh_at].into_iter().flatten().min();
        match (self.wanted, self.believed) {
            (Wanted::Absent, Believed::Gone) if again => Ok(Request::Deregister),
            (Wanted::Absent, Believed::Gone) => Err(later),
            (Wanted::Absent, _) => Ok(Request::Deregister),
            (Wanted::Present(status), Believed::There) => {
                if self.told != Some(status) || self.due || again {
                    Ok(Request::Update(status))
                } else {
                    Err(later)
                }
            }
            (Wanted::Present(status), _) => Ok(Request::Register(status)),
        }
    }

    /// What became of the request.
    pub fn done(&mut self, now: Time, outcome: Outcome) {
        let Some(request) = self.asked.take() else { return };
        match (outcome, request) {
            (Outcome::Done, Request::Register(_)) => {
                // Whether it was of use is known when the status has been taken, too.
                self.not_before = now;
                self.just_registered = true;
                self.told = None;
                self.believed = if self.outdated { Believed::Perhaps } else { Believed::There };
            }
            (Outcome::Done, Request::Update(status)) => {
                self.succeeded(now);
                self.just_registered = false;
                self.told = Some(status);
                self.due = false;
                self.refresh_at = self.refreshes(status).then(|| now + self.refresh_pace());
                if self.outdated {
                    self.believed = Believed::Perhaps;
                }
            }
            (Outcome::Done | Outcome::Forgotten, Request::Deregister) => {
                self.succeeded(now);
                self.gone();
            }
            (Outcome::Forgotten, Request::Update(_)) => {
                self.gone();
                // One that takes a service and knows nothing of it in the next moment is not asked in a loop.
                if self.just_registered {
                    self.failed(now)
                } else {
                    self.succeeded(now)
                }
                self.just_registered = false;
            }
            (Outcome::Failed | Outcome::Forgotten, _) => {
                let changed = self.outdated && self.before == Believed::There;
                self.believed = if changed { Believed::Perhaps } else { self.before };
                self.failed(now);
            }
            (Outcome::Unknown, _) => {
                self.told = None;
                self.doubt_until = Some(now + DOUBT);
                self.failed(now);
            }
        }
        self.outdated = false;
        if request == Request::Deregister && matches!(outcome, Outcome::Failed | Outcome::Unknown) {
            // It is tried again, but nobody has to wait for that.
            self.withdrawn |= core::mem::take(&mut self.leaving_awaited);
        }
        self.say_withdrawn();
    }

    /// Whether the service has left the catalog, or cannot be got out, since it was last wanted out. Said once.
    pub fn take_withdrawn(&mut self) -> bool {
        core::mem::take(&mut self.withdrawn)
    }

    /// Whether catalog and wish are believed to be the same.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.asked.is_none()
            && match self.wanted {
                Wanted::Absent => self.believed == Believed::Gone,
                Wanted::Present(status) => {
                    self.believed == Believed::There && self.told == Some(status) && !self.due
                }
            }
    }

    /// How long a request may take: so that a heartbeat can be tried again within the TTL.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        (self.settings.ttl / 3).clamp(Duration::from_millis(500), Duration::from_secs(5))
    }

    fn is_gone(&self) -> bool {
        self.wanted == Wanted::Absent && self.believed == Believed::Gone && self.asked.is_none()
    }

    fn say_withdrawn(&mut self) {
        if self.is_gone() {
            self.withdrawn |= core::mem::take(&mut self.leaving_awaited);
        }
    }

    fn gone(&mut self) {
        self.believed = Believed::Gone;
        (self.told, self.due, self.refresh_at) = (None, false, None);
    }

    fn succeeded(&mut self, now: Time) {
        self.failures = 0;
        self.not_before = now;
        if self.doubt_until.is_some_and(|until| until <= now) {
            self.doubt_until = None;
        }
    }

    fn failed(&mut self, now: Time) {
        let longest = self.settings.pace.clamp(FIRST_DELAY, LONGEST_DELAY);
        self.not_before = now + delay(&mut self.rng, self.failures, longest);
        self.failures = self.failures.saturating_add(1);
        if let Some(tries) = &mut self.last_tries {
            *tries = tries.saturating_sub(1);
        }
    }

    /// Whether a status has to be told again by ourselves: for a passing one there are heartbeats.
    const fn refreshes(&self, status: Status) -> bool {
        match status {
            Status::Passing => false,
            Status::Warning => true,
            Status::Critical => !self.settings.drops_critical,
        }
    }

    fn refresh_pace(&self) -> Duration {
        self.settings.pace.min(self.settings.ttl / 3).max(FIRST_DELAY)
    }
}

/// The delay after so many failures in a row: it doubles, and lies somewhere in its upper half.
pub(crate) fn delay(rng: &mut Rng, failures: u32, longest: Duration) -> Duration {
    let doubled = 1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX);
    let delay = FIRST_DELAY.saturating_mul(doubled).min(longest);
    rng.part(delay, 50, 100)
}
