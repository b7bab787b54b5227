//! The core of containerpilot: every decision, and nothing about how it is carried out.
//!
//! This crate is `no_std`. It has no clock, file, process or environment, so every result is a function of the
//! arguments: (state, input, time) → effects. A test can try any order of inputs in virtual time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod answer;
pub mod catalog;
pub mod effect;
pub mod event;
pub mod exit_status;
pub mod ids;
pub mod input;
pub mod lock_report;
pub mod log_entry;
pub mod notice;
pub mod plan;
pub mod report;
pub mod request;
pub mod rng;
pub mod rules;
pub mod signal;
pub mod sorted_map;
pub mod state;
pub mod time;
pub mod variables;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;

pub use crate::effect::Effect;
pub use crate::input::Input;
pub use crate::notice::Notice;
pub use crate::report::status::JobStatus;
pub use crate::request::{Reply, Request, RequestId};
pub use crate::sorted_map::SortedMap;
pub use crate::state::job::{Outcome, SkipReason, State, StopReason, StopStage};
pub use crate::state::run::Readiness;
pub use crate::state::supervisor::{Core, Phase};
pub use crate::time::Time;

/// Collects into a map or set by inserting one item after the other. `collect` sorts the items first, which adds about
/// 4 KB of code for each type.
pub fn inserted<T, C: Default + Extend<T>>(items: impl IntoIterator<Item = T>) -> C {
    let mut collection = C::default();
    collection.extend(items);
    collection
}

/// Sorts by a comparison; items that are equal keep their order. Only places are sorted, by code that all types share:
/// a sort of its own would add about 4 KB for each type.
pub fn sort_by<T>(items: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let of = |place: usize, other: usize| {
        items.get(place).zip(items.get(other)).map_or(Ordering::Equal, |(one, other)| compare(one, other))
    };
    let places = sorted_places(items.len(), &of);
    let mut unsorted: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(places.into_iter().filter_map(|place| unsorted.get_mut(place)?.take()));
}

fn sorted_places(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|place, other| compare(*place, *other));
    places
}

/// Collects pairs into lists by key, each list in the order of the pairs.
pub fn grouped<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, Vec<V>> {
    let mut groups: BTreeMap<K, Vec<V>> = BTreeMap::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups
}
