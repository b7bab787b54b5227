//! Locks (D14).

use std::time::Duration;

use containerpilot_core::plan::{LONGEST_TTL, Lock, SHORTEST_TTL};
use containerpilot_core::time::fmt_duration;

use super::{Lower, defaults};
use crate::decode::{Section, Spanned};
use crate::fields::{ConfigFields, LockFields};
use crate::values::{to_duration, value_of};

/// Longest key. Consul accepts longer ones, but they belong to a URL.
const LONGEST_KEY: usize = 512;

impl Lower<'_> {
    /// The locks. Two of them with one name or one key would be one lock that is held twice.
    pub(super) fn locks(&mut self, fields: &ConfigFields) -> Option<Vec<Lock>> {
        let mut locks: Vec<Lock> = Vec::new();
        let mut complete = true;
        for fields in fields.locks.iter().flat_map(|given| &given.value) {
            let Some(lock) = self.lock(fields) else {
                complete = false;
                continue;
            };
            let name_place = fields.name.as_ref().map_or(fields.place.first_byte(), |given| given.place);
            if locks.iter().any(|other| other.name == lock.name) {
                let message = format!("two locks are named `{}`", lock.name);
                self.error(name_place, message, "rename or remove one of them");
                complete = false;
            } else if let Some(other) = locks.iter().find(|other| is_same_place(other, &lock)) {
                let place = fields.key.as_ref().map_or(name_place, |given| given.place);
                let message = format!("the locks `{}` and `{}` have the same key", other.name, lock.name);
                self.error(place, message, "give each lock a key of its own");
                complete = false;
            }
            locks.push(lock);
        }
        complete.then_some(locks)
    }

    fn lock(&mut self, fields: &LockFields) -> Option<Lock> {
        let name = match &fields.name {
            None => {
                self.required(&LockFields::INFO, fields.place, fields.place.first_byte(), "name");
                None
            }
            Some(given) if !is_lock_name(&given.value) => {
                let message = format!("`{}` is not a valid name of a lock", given.value);
                self.error(given.place, message, "write letters, digits, dashes and underscores");
                None
            }
            Some(given) => Some(given.value.clone()),
        };
        let key = match &fields.key {
            Some(given) if !is_key(&given.value) => {
                let message = format!("`{}` is not a valid key", given.value);
                let help = "write a path such as \"service/web/leader\", without a slash at its start or end";
                self.error(given.place, message, help);
                None
            }
            Some(given) => Some(given.value.clone()),
            None => name.as_deref().map(defaults::lock_key),
        };
        let ttl = fields.ttl.as_ref().and_then(|given| self.lock_ttl(given));
        let slots = fields.slots.as_ref().and_then(|given| u32::try_from(given.value).ok());
        Some(Lock { name: name?, key: key?, ttl: ttl?, slots: slots? })
    }

    fn lock_ttl(&mut self, given: &Spanned<i64>) -> Option<Duration> {
        let ttl = to_duration(given.value);
        if given.value < 0 || !(SHORTEST_TTL..=LONGEST_TTL).contains(&ttl) {
            let (shortest, longest) = (fmt_duration(SHORTEST_TTL), fmt_duration(LONGEST_TTL));
            let message =
                format!("the `ttl` of a lock must be from {shortest} to {longest}, as Consul demands");
            self.error(given.place, message, "for example \"15s\"");
            return None;
        }
        Some(ttl)
    }
}

/// Returns true if the keys of two locks are the same, or those of one are below the other's.
fn is_same_place(one: &Lock, other: &Lock) -> bool {
    let is_below = |one: &Lock, other: &Lock| {
        one.slots > 1 && other.key.strip_prefix(&one.key).is_some_and(|rest| rest.starts_with('/'))
    };
    one.key == other.key || is_below(one, other) || is_below(other, one)
}

fn is_lock_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns true if every part of a key reaches Consul as it is: its server cleans paths.
fn is_key(key: &str) -> bool {
    key.len() <= LONGEST_KEY && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The `ttl` of a lock as it is written.
pub(crate) fn lock_ttl_place(fields: &LockFields) -> crate::diagnostics::Place {
    let written = fields.ttl.as_ref().filter(|given| given.written).map(|given| given.place);
    written.or(fields.name.as_ref().map(|given| given.place)).unwrap_or(fields.place.first_byte())
}

/// The lock that fields define, in a plan.
pub(crate) fn lock_of<'a>(fields: &LockFields, locks: &'a [Lock]) -> Option<(usize, &'a Lock)> {
    let name = value_of(&fields.name)?;
    locks.iter().enumerate().find(|(_, lock)| lock.name == name)
}
