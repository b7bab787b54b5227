//! A virtual Consul with sessions, keys and lock delays.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::lock_requests::{LockOutcome, LockRequest, LockValue, Seen, SeenKey};
use containerpilot_core::plan::Lock;

/// Consul invalidates a session that was not renewed for twice its TTL.
const TTL_FACTOR: u32 = 2;
/// The longest lock delay.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The key of the lock, or of the list of holders.
const MAIN: &str = ".lock";

/// A virtual Consul that has one lock.
#[derive(Debug)]
pub(super) struct Consul {
    /// The index of the last change.
    pub(super) index: u64,
    sessions: BTreeMap<String, Time>,
    keys: BTreeMap<String, SeenKey>,
    delays: BTreeMap<String, Time>,
    ttl: Duration,
    slots: u32,
}

impl Consul {
    pub(super) fn new(lock: &Lock) -> Self {
        Self {
            index: 10,
            sessions: BTreeMap::new(),
            keys: BTreeMap::new(),
            delays: BTreeMap::new(),
            ttl: lock.ttl,
            slots: lock.slots,
        }
    }

    /// When the next session expires.
    pub(super) fn next_expiry(&self) -> Option<Time> {
        self.sessions.values().min().copied()
    }

    /// Invalidates the sessions that were not renewed.
    pub(super) fn expire(&mut self, now: Time) {
        let over: Vec<String> =
            self.sessions.iter().filter(|(_, at)| **at <= now).map(|(id, _)| id.clone()).collect();
        over.iter().for_each(|session| self.invalidate(now, session));
    }

    /// A new leader counts the TTL of each session from now.
    pub(super) fn new_leader(&mut self, now: Time) {
        let ttl = self.ttl;
        self.sessions.values_mut().for_each(|at| *at = now + ttl * TTL_FACTOR);
    }

    fn invalidate(&mut self, now: Time, session: &str) {
        if self.sessions.remove(session).is_none() {
            return;
        }
        self.index += 1;
        let (index, slots) = (self.index, self.slots);
        let held: Vec<String> = self
            .keys
            .iter()
            .filter(|(_, key)| key.session.as_deref() == Some(session))
            .map(|(name, _)| name.clone())
            .collect();
        for name in held {
            self.delays.insert(name.clone(), now + self.ttl.min(LONGEST_DELAY));
            if slots > 1 {
                self.keys.remove(&name);
            } else if let Some(key) = self.keys.get_mut(&name) {
                (key.session, key.modified) = (None, index);
            }
        }
    }

    /// The session of a holder is destroyed by hand.
    pub(super) fn destroy_holder(&mut self, now: Time, nth: usize) {
        let holders: Vec<String> = match self.keys.get(MAIN) {
            Some(key) if self.slots == 1 => key.session.iter().cloned().collect(),
            Some(key) => key.value.holders.clone(),
            None => Vec::new(),
        };
        if let Some(session) = holders.get(nth % holders.len().max(1)) {
            self.invalidate(now, session);
        }
    }

    /// A key is deleted by hand.
    pub(super) fn delete(&mut self, nth: usize) {
        let name = self.keys.keys().nth(nth % self.keys.len().max(1)).cloned();
        if let Some(name) = name {
            self.keys.remove(&name);
            self.index += 1;
        }
    }

    /// Another value is written into the key by hand.
    pub(super) fn overwrite(&mut self) {
        self.index += 1;
        let index = self.index;
        // The list of a semaphore is written by supervisors only: without it, holders are unknown.
        if let Some(key) = self.keys.get_mut(MAIN).filter(|_| self.slots == 1) {
            (key.value, key.modified) = (LockValue::default(), index);
        }
    }

    /// What a look finds.
    pub(super) fn look(&self) -> Seen {
        let contender =
            |(name, key): (&String, &SeenKey)| key.session.clone().filter(|session| session == name);
        Seen {
            index: self.index,
            key: self.keys.get(MAIN).cloned(),
            contenders: self.keys.iter().filter_map(contender).collect(),
        }
    }

    /// Carries out a request.
    pub(super) fn carry_out(
        &mut self,
        now: Time,
        request: &LockRequest,
        session: Option<&str>,
    ) -> LockOutcome {
        let next = self.index + 1;
        let ttl = Some(self.ttl);
        let exists = session.is_some_and(|session| self.sessions.contains_key(session));
        let session = session.unwrap_or_default().to_owned();
        let done = match request {
            LockRequest::CreateSession => {
                self.index = next;
                let id = format!("s{next}");
                self.sessions.insert(id.clone(), now + self.ttl * TTL_FACTOR);
                return LockOutcome::Created(id);
            }
            LockRequest::Look { .. } => return LockOutcome::Seen(self.look()),
            LockRequest::Renew | LockRequest::Acquire { .. } | LockRequest::Contend if !exists => {
                return LockOutcome::NoSession;
            }
            LockRequest::Renew => {
                self.sessions.insert(session, now + self.ttl * TTL_FACTOR);
                return LockOutcome::Done(true);
            }
            LockRequest::DestroySession => {
                self.invalidate(now, &session);
                return LockOutcome::Done(true);
            }
            LockRequest::Create => {
                let incomplete = self.slots > 1;
                let missing = !self.keys.contains_key(MAIN);
                if missing {
                    let value = LockValue { ttl, incomplete, ..LockValue::default() };
                    self.keys
                        .insert(MAIN.into(), SeenKey { created: next, modified: next, session: None, value });
                }
                missing
            }
            LockRequest::Acquire { index } => {
                let delayed = self.delays.get(MAIN).is_some_and(|until| now < *until);
                match self.keys.get_mut(MAIN) {
                    Some(key) if key.modified == *index && key.session.is_none() && !delayed => {
                        let value = LockValue { holder: Some(session.clone()), ttl, ..LockValue::default() };
                        (key.modified, key.session, key.value) = (next, Some(session), value);
                        true
                    }
                    _ => false,
                }
            }
            LockRequest::Contend => {
                let delayed = self.delays.get(&session).is_some_and(|until| now < *until);
                if !delayed {
                    let value = LockValue::default();
                    let key =
                        SeenKey { created: next, modified: next, session: Some(session.clone()), value };
                    self.keys.insert(session, key);
                }
                !delayed
            }
            LockRequest::SetHolders { index, holders, incomplete } => match self.keys.get_mut(MAIN) {
                Some(key) if key.modified == *index => {
                    key.modified = next;
                    key.value = LockValue {
                        ttl,
                        holders: holders.clone(),
                        incomplete: *incomplete,
                        ..LockValue::default()
                    };
                    true
                }
                _ => false,
            },
            LockRequest::Release => match self.keys.get_mut(MAIN) {
                Some(key) if key.session.as_ref() == Some(&session) => {
                    (key.modified, key.session) = (next, None);
                    key.value = LockValue { released: true, ttl, ..LockValue::default() };
                    true
                }
                _ => false,
            },
        };
        if done {
            self.index = next;
        }
        LockOutcome::Done(done)
    }
}
