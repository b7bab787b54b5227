//! A lock in Consul (D14): which request comes next, when, and what its outcome means. By Consul's guides for leader
//! elections (one slot) and for semaphores (several slots).
//!
//! A session with a TTL is created and renewed. With one slot, the session locks the key itself. With several, the
//! session locks a contender key of its own below the key, and the list of holders is in the key `.lock`, which is
//! changed by check-and-set.
//!
//! # Why no two supervisors have the same slot
//!
//! - A holder relies on the lock until [`LockRequests::until`]: a TTL after it *sent* the last renewal that succeeded, or the
//!   last look that has shown it as the holder, whichever was earlier. It releases the lock, with a mark in the value, only
//!   when its jobs have ended.
//! - Consul does not invalidate a session before its TTL has passed since it *received* a renewal, which is later.
//! - A contender takes at once only what is marked as released. Anything else (the session of the holder was invalidated,
//!   the key was deleted by hand, Consul has lost its data) it takes a TTL after it first saw it so: by then the last look of the
//!   holder is older than a TTL, or the holder has seen it, too.
//! - What a contender takes is what it has seen: each request names the index at which the key was last changed, so a
//!   request that arrives late changes nothing. A missing key has no index. It is created first, without a holder.
//! - With several slots, that index does not change when a holder creates its contender key again. So a contender removes a holder
//!   whose contender key is missing only if a look that it *sent* a TTL after the first one has found the same: by then the holder
//!   does not rely on the lock. And a holder that does not rely on it, although it is in the list, is one again only by a change of the
//!   list that it sent less than a TTL ago. This change makes the contender's request fail, or the other way round.
//!
//! So the lock is safe without Consul's lock delay, which is limited to a minute and does not cover deleted keys; it is
//! set for other tools that use the same key. Nothing is safe if a holder is frozen for longer than the TTL; for this,
//! jobs get a fencing number. Each change in Consul has a higher index than all before it, so the index of the change
//! that made this session the holder grows from holder to holder, also when the key was deleted in between.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::catalog::backoff::{FIRST_DELAY, retry_delay};
use crate::inserted;
use crate::lock_report::{LockReport, LockWait};
use crate::plan::Lock;
use crate::rng::Rng;
use crate::time::Time;

/// The longest retry delay.
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// The pause before another look if the last one has changed nothing.
const PAUSE: Duration = Duration::from_millis(250);
/// The shortest wait of a blocking query. For a shorter time it is not worth a request.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);
/// How often each request of a release is attempted.
const RELEASE_ATTEMPTS: u32 = 3;

/// A request to Consul.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockRequest {
    /// Create a session.
    CreateSession,
    /// Renew the session.
    Renew,
    /// Read the key, or with several slots all keys below it; only an answer that is not stale counts.
    Look {
        /// Wait for a change since this index.
        index: Option<u64>,
        /// How long to wait for it.
        wait: Duration,
    },
    /// Create the key, without a holder and without the mark that it was released, unless it exists.
    Create,
    /// Lock the key, if it was last changed at this index.
    Acquire {
        /// The index.
        index: u64,
    },
    /// With several slots, lock the contender key.
    Contend,
    /// With several slots, replace the list of holders, if its key was last changed at this index.
    SetHolders {
        /// The index.
        index: u64,
        /// The sessions that hold a slot.
        holders: Vec<String>,
        /// True if holders may be missing in the list.
        incomplete: bool,
    },
    /// Unlock the key, and mark it as released.
    Release,
    /// Destroy the session.
    DestroySession,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// A session was created, with this id.
    Created(String),
    /// It was carried out: true, or Consul has said no: false.
    Done(bool),
    /// The session does not exist.
    NoSession,
    /// What a look has found.
    Seen(Seen),
    /// It failed: refused, not answered, or the answer is invalid. It may have been carried out, or may still be.
    Failed,
}

/// What a look has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The index to wait from.
    pub index: u64,
    /// The key; with several slots, the list of holders. `None` if it does not exist.
    pub key: Option<SeenKey>,
    /// With several slots, the sessions that lock their contender keys.
    pub contenders: Vec<String>,
}

/// A key in Consul.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenKey {
    /// When it was created.
    pub created: u64,
    /// When it was last changed.
    pub modified: u64,
    /// The session that has locked it.
    pub session: Option<String>,
    /// Its value.
    pub value: LockValue,
}

/// The value of a key. A value that something else has written is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockValue {
    /// The name of the holder, for people.
    pub holder: Option<String>,
    /// The TTL of the holder.
    pub ttl: Option<Duration>,
    /// True if the holder has released it.
    pub released: bool,
    /// With several slots, the sessions that hold one.
    pub holders: Vec<String>,
    /// With several slots, true if holders may be missing in the list.
    pub incomplete: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockAction {
    /// Send the request, and report its outcome.
    Send(LockRequest),
    /// Nothing before this time; nothing at all if there is none.
    Wait(Option<Time>),
    /// The lock is released, or cannot be.
    Finished,
}

/// The requests of one lock. All times are on the clock that counts while the machine is asleep.
#[derive(Clone, Debug)]
pub struct LockRequests {
    settings: Settings,
    session: Option<Session>,
    /// What the last look has found.
    seen: Option<Seen>,
    hold: Option<Hold>,
    /// The key was seen without a holder and without the mark that it was released; with several slots, without a
    /// complete list of holders. The index at which this began, and when it was seen first.
    unclear: Option<(u64, Time)>,
    /// With several slots, since when holders were seen without their contender keys.
    absent: BTreeMap<String, Time>,
    /// When the last look was sent.
    looked_at: Time,
    /// With several slots, a number between the indices of the last attempt to become a holder and of the change before
    /// it, and when the attempt was sent. `None` if it is not known to have succeeded: then another supervisor may have
    /// this number.
    attempt: Option<(u64, Time)>,
    wait: LockWait,
    pending: Option<Pending>,
    failures: u32,
    not_before: Time,
    /// The attempts that are left for the present step of the release.
    releasing: Option<u32>,
    rng: Rng,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    ttl: Duration,
    slots: usize,
    /// When the session of a holder is renewed, counted from the last renewal.
    renew_after: Duration,
}

#[derive(Clone, Debug)]
struct Session {
    id: String,
    /// When the last renewal that succeeded was sent.
    renewed: Time,
    /// True if a look was sent since.
    looked: bool,
}

/// This supervisor is the holder.
#[derive(Clone, Copy, Debug)]
struct Hold {
    fencing: u64,
    /// When the last look that has shown it was sent.
    seen_at: Time,
}

#[derive(Clone, Debug)]
struct Pending {
    request: LockRequest,
    sent: Time,
}

impl LockRequests {
    /// The lock before its first request. Jobs that require it take so long to stop.
    #[must_use]
    pub fn new(lock: &Lock, stop_time: Duration, seed: u64) -> Self {
        let settings =
            Settings { ttl: lock.ttl, slots: lock.slots as usize, renew_after: renew_after(lock, stop_time) };
        Self {
            settings,
            session: None,
            seen: None,
            hold: None,
            unclear: None,
            absent: BTreeMap::new(),
            looked_at: Time::ZERO,
            attempt: None,
            wait: LockWait::Unknown,
            pending: None,
            failures: 0,
            not_before: Time::ZERO,
            releasing: None,
            rng: Rng::new(seed),
        }
    }

    /// The jobs that require the lock take another time to stop.
    pub fn set_stop_time(&mut self, lock: &Lock, stop_time: Duration) {
        self.settings.renew_after = renew_after(lock, stop_time);
    }

    /// The id of the session.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.id.as_str())
    }

    /// How long a request may take, beside the wait of a blocking query.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        (self.settings.ttl / 10).clamp(Duration::from_secs(1), Duration::from_secs(5))
    }

    /// What is known about the lock.
    #[must_use]
    pub fn report(&self) -> LockReport {
        match (self.hold, self.until()) {
            (Some(hold), Some(until)) => LockReport::Held { fencing: hold.fencing, until },
            _ => LockReport::NotHeld(self.wait.clone()),
        }
    }

    /// Until when no other supervisor can have the lock, if this one has it.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        let (hold, session) = (self.hold?, self.session.as_ref()?);
        Some(hold.seen_at.min(session.renewed) + self.settings.ttl)
    }

    /// The jobs that require the lock have ended, and it is given back. After that, nothing more is requested.
    pub fn release(&mut self, now: Time) {
        if self.releasing.is_none() {
            self.releasing = Some(RELEASE_ATTEMPTS);
            (self.not_before, self.failures) = (now, 0);
        }
    }

    /// What to do next. After [`LockAction::Send`], nothing until [`LockRequests::done`].
    pub fn next(&mut self, now: Time) -> LockAction {
        if self.pending.is_some() {
            return LockAction::Wait(None);
        }
        if self.releasing == Some(0) || (self.releasing.is_some() && self.session.is_none()) {
            return LockAction::Finished;
        }
        if now < self.not_before {
            return LockAction::Wait(Some(self.not_before));
        }
        let request = match self.needed(now) {
            Ok(request) => request,
            Err(later) => return LockAction::Wait(Some(later)),
        };
        if let (LockRequest::Look { .. }, Some(session)) = (&request, &mut self.session) {
            session.looked = true;
        }
        self.pending = Some(Pending { request: request.clone(), sent: now });
        LockAction::Send(request)
    }

    /// The request that is needed now; otherwise when the next one is.
    fn needed(&self, now: Time) -> Result<LockRequest, Time> {
        let Some(session) = &self.session else { return Ok(LockRequest::CreateSession) };
        if self.releasing.is_some() {
            return Ok(self.release_request(session));
        }
        let after = if self.hold.is_some() { self.settings.renew_after } else { self.settings.ttl / 2 };
        let renew_at = session.renewed + after;
        if renew_at <= now {
            return Ok(LockRequest::Renew);
        }
        // After each renewal the key is looked at without waiting: both must be recent for a holder to rely on the
        // lock.
        let Some(seen) = self.seen.as_ref().filter(|_| session.looked) else {
            return Ok(LockRequest::Look { index: None, wait: Duration::ZERO });
        };
        let wait_until = match self.claim(now, session, seen) {
            Ok(request) => return Ok(request),
            // The last look is too old to tell.
            Err(Some(later)) if later <= now => {
                return Ok(LockRequest::Look { index: None, wait: Duration::ZERO });
            }
            Err(later) => later.map_or(renew_at, |later| later.min(renew_at)),
        };
        // Consul adds up to a sixteenth to the wait.
        let wait = wait_until.since(now) / 16 * 15;
        if wait < SHORTEST_WAIT {
            return Err(wait_until.max(now + Duration::from_millis(1)));
        }
        Ok(LockRequest::Look { index: Some(seen.index), wait })
    }

    /// The request that makes this session the holder; otherwise when that may be tried, if a time is known.
    fn claim(&self, now: Time, session: &Session, seen: &Seen) -> Result<LockRequest, Option<Time>> {
        if self.settings.slots > 1 && !seen.contenders.contains(&session.id) {
            return Ok(LockRequest::Contend);
        }
        let Some(key) = &seen.key else { return Ok(LockRequest::Create) };
        // A holder takes back what was deleted or unlocked by hand: no other supervisor takes it before.
        let relies = self.relies(now);
        let ready_at = self.unclear.map_or(now, |(_, since)| since + self.wait_of(key));
        if self.settings.slots == 1 {
            return match key.session {
                Some(_) => Err(None),
                None if relies || ready_at <= now => Ok(LockRequest::Acquire { index: key.modified }),
                None => Err(Some(ready_at)),
            };
        }
        let listed = &key.value.holders;
        if relies && listed.contains(&session.id) {
            return Err(None);
        }
        if !relies && ready_at > now {
            return Err(Some(ready_at));
        }
        let over_at = |holder: &String| self.absent.get(holder).map(|since| *since + self.wait_of(key));
        let is_over = |holder: &&String| over_at(holder).is_some_and(|at| at <= self.looked_at);
        let others = listed.iter().filter(|holder| **holder != session.id && !is_over(holder));
        let mut holders: Vec<String> = others.cloned().collect();
        if holders.len() >= self.settings.slots {
            return Err(holders.iter().filter_map(over_at).min());
        }
        holders.push(session.id.clone());
        // A holder that takes its slot back does not know the others. A contender that has waited has seen all of them.
        let incomplete = key.value.incomplete && relies;
        Ok(LockRequest::SetHolders { index: key.modified, holders, incomplete })
    }

    /// Returns true if no other supervisor can have the lock.
    fn relies(&self, now: Time) -> bool {
        self.until().is_some_and(|until| now < until)
    }

    /// With several slots, the number of the last attempt to become a holder, if it has succeeded less than a TTL ago.
    fn attempted(&self, now: Time) -> Option<u64> {
        self.attempt.filter(|(_, sent)| now < *sent + self.settings.ttl).map(|(number, _)| number)
    }

    /// How long a lock that was not released is left alone. Its last holder may have another TTL.
    fn wait_of(&self, key: &SeenKey) -> Duration {
        key.value.ttl.map_or(self.settings.ttl, |ttl| ttl.max(self.settings.ttl))
    }

    /// The next request of a release. The session is destroyed at the end.
    fn release_request(&self, session: &Session) -> LockRequest {
        let Some(seen) = &self.seen else { return LockRequest::Look { index: None, wait: Duration::ZERO } };
        match &seen.key {
            Some(key) if self.settings.slots == 1 && key.session.as_ref() == Some(&session.id) => {
                LockRequest::Release
            }
            Some(key) if key.value.holders.contains(&session.id) => LockRequest::SetHolders {
                index: key.modified,
                holders: key.value.holders.iter().filter(|holder| **holder != session.id).cloned().collect(),
                incomplete: key.value.incomplete,
            },
            _ => LockRequest::DestroySession,
        }
    }

    /// Records the outcome of the pending request.
    pub fn done(&mut self, now: Time, outcome: LockOutcome) {
        let Some(Pending { request, sent }) = self.pending.take() else { return };
        if let LockRequest::SetHolders { index, .. } = request {
            self.attempt = (outcome == LockOutcome::Done(true)).then_some((index + 1, sent));
        }
        match (outcome, &request) {
            (LockOutcome::Created(id), _) => {
                self.session = Some(Session { id, renewed: sent, looked: false });
            }
            (LockOutcome::NoSession, _) => {
                self.session = None;
                self.lose(LockWait::SessionInvalidated);
            }
            (LockOutcome::Done(true), LockRequest::DestroySession) => self.session = None,
            (LockOutcome::Done(true), LockRequest::Renew) => {
                if let Some(session) = &mut self.session {
                    (session.renewed, session.looked) = (sent, false);
                }
            }
            (LockOutcome::Done(done), request) => {
                self.seen = None;
                if !done && *request != LockRequest::Create {
                    if self.hold.is_none() {
                        self.wait = LockWait::Refused;
                    }
                    return self.failed(now);
                }
            }
            (LockOutcome::Seen(seen), request) => {
                let waited = matches!(request, LockRequest::Look { index: Some(_), .. });
                let is_same = waited && self.seen.as_ref().is_some_and(|known| known.key == seen.key);
                self.look(now, sent, seen);
                if is_same && now.since(sent) < PAUSE {
                    self.not_before = now + PAUSE;
                }
            }
            (LockOutcome::Failed, _) => {
                // It may have been carried out.
                self.seen = None;
                return self.failed(now);
            }
        }
        self.failures = 0;
        if let Some(attempts) = &mut self.releasing {
            *attempts = RELEASE_ATTEMPTS;
        }
    }

    fn failed(&mut self, now: Time) {
        let longest = self.settings.renew_after.clamp(FIRST_DELAY, LONGEST_DELAY);
        self.not_before = now + retry_delay(&mut self.rng, self.failures, longest);
        self.failures = self.failures.saturating_add(1);
        if let Some(attempts) = &mut self.releasing {
            *attempts = attempts.saturating_sub(1);
        }
    }

    fn lose(&mut self, wait: LockWait) {
        self.hold = None;
        self.wait = wait;
    }

    /// What a look that was sent at this time has found.
    fn look(&mut self, now: Time, sent: Time, seen: Seen) {
        let Some(id) = self.session.as_ref().map(|session| session.id.clone()) else { return };
        let relies = self.relies(now);
        let is_semaphore = self.settings.slots > 1;
        self.looked_at = sent;
        self.see_unclear(now, &seen);
        let key = seen.key.as_ref();
        let is_holder = key.is_some_and(|key| match is_semaphore {
            false => key.session.as_ref() == Some(&id),
            true => {
                let is_listed = key.value.holders.contains(&id) && seen.contenders.contains(&id);
                is_listed && (relies || (!key.value.incomplete && self.attempted(now).is_some()))
            }
        });
        let is_taken = key.is_some_and(|key| match is_semaphore {
            false => key.session.is_some(),
            true => {
                let is_full = key.value.holders.len() >= self.settings.slots;
                !key.value.holders.contains(&id) && (is_full || !key.value.incomplete)
            }
        });
        if is_holder {
            let before = self.hold.filter(|_| relies).map(|hold| hold.fencing);
            let number = if is_semaphore { self.attempted(now) } else { key.map(|key| key.modified) };
            self.hold = before.or(number).map(|fencing| Hold { fencing, seen_at: sent });
        } else if is_taken && (self.hold.is_some() || !is_semaphore || self.is_full(key)) {
            let holder = key.and_then(|key| key.value.holder.clone());
            self.lose(LockWait::Taken(holder));
        } else if !relies {
            let wait = key.map_or(self.settings.ttl, |key| self.wait_of(key));
            let is_unclear = self.unclear.is_some() || key.is_none();
            self.lose(if is_unclear { LockWait::NotReleased(wait) } else { LockWait::Unknown });
        }
        self.seen = Some(seen);
    }

    fn is_full(&self, key: Option<&SeenKey>) -> bool {
        key.is_some_and(|key| key.value.holders.len() >= self.settings.slots)
    }

    /// Notes since when it is not known who has the lock. Each change begins a new time: there may have been a holder
    /// in between.
    fn see_unclear(&mut self, now: Time, seen: &Seen) {
        let is_semaphore = self.settings.slots > 1;
        let index = seen.key.as_ref().and_then(|key| match is_semaphore {
            false => (key.session.is_none() && !key.value.released).then_some(key.modified),
            true => key.value.incomplete.then_some(key.created),
        });
        self.unclear = index.map(|index| match self.unclear {
            Some((known, since)) if known == index => (index, since),
            _ => (index, now),
        });
        if self.seen.as_ref().is_none_or(|known| known.index != seen.index) {
            self.absent.clear();
        }
        let holders = seen.key.as_ref().map(|key| key.value.holders.as_slice()).unwrap_or_default();
        let absent = holders.iter().filter(|holder| !seen.contenders.contains(holder));
        let since = |holder: &String| self.absent.get(holder).copied().unwrap_or(now);
        self.absent = inserted(absent.map(|holder| (holder.clone(), since(holder))));
    }
}

/// A holder renews its session often enough to try it twice before it gives up.
fn renew_after(lock: &Lock, stop_time: Duration) -> Duration {
    lock.ttl.saturating_sub(lock.give_up_before(stop_time)) / 2
}
