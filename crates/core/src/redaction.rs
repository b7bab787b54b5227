//! States and inputs without secrets, for recordings (B1).
//!
//! Texts are replaced by hashes while they are written, by a serializer in front of that of the format: nothing is
//! copied, and an input without texts costs nothing. Every text is replaced that is not marked with a function of
//! [`recorded`](crate::recorded).
//!
//! A core that was read from such a state, and is told such inputs, decides the same. Equal texts have equal hashes,
//! and where a decision depends on more, the hash keeps that: see [`Hashes`]. Only texts differ. One thing is not kept:
//! the length of short values, which would tell too much. So variables of watches that exceed 512 KiB only together
//! (D12) are all set.

mod hashes;
mod writer;

use alloc::sync::Arc;

use serde::{Serialize, Serializer};

use crate::input::Input;
use crate::recorded::Manner;
use crate::redaction::hashes::Hashes;
use crate::redaction::writer::Writer;
use crate::request::Request;
use crate::supervisor::Core;

/// Replaces the texts of states and inputs by hashes.
#[derive(Clone, Debug)]
pub struct Redactor {
    hashes: Hashes,
    /// How a text is written that is not marked.
    manner: Manner,
}

/// A state or an input that is written without secrets. It is read like any other.
#[derive(Clone, Copy, Debug)]
pub struct Redacted<'a, T> {
    value: &'a T,
    hashes: &'a Hashes,
    manner: Manner,
}

impl Redactor {
    /// With a keyed hash. The key must not be known to readers of the recording: they could guess short secrets.
    #[must_use]
    pub fn new(hash: impl Fn(&[u8]) -> u64 + Send + Sync + 'static) -> Self {
        Self { hashes: Hashes::new(Arc::new(hash)), manner: Manner::Hashed }
    }

    /// Leaves all texts as they are, for tests.
    #[must_use]
    pub fn open() -> Self {
        Self { manner: Manner::AsIs, ..Self::hiding() }
    }

    /// Replaces all texts by the same one, to compare states whose texts are known only as hashes.
    #[must_use]
    pub fn hiding() -> Self {
        Self::new(|_| 0)
    }

    /// The state between two steps.
    pub fn state<'a>(&'a mut self, core: &'a Core) -> Redacted<'a, Core> {
        self.hashes.learn(core.plan());
        if let Some(reload) = &core.reload {
            self.hashes.learn(&reload.plan);
        }
        core.early_inputs.iter().for_each(|input| self.learn(input));
        Redacted { value: core, hashes: &self.hashes, manner: self.manner }
    }

    /// An input.
    pub fn input<'a>(&'a mut self, input: &'a Input) -> Redacted<'a, Input> {
        self.learn(input);
        Redacted { value: input, hashes: &self.hashes, manner: self.manner }
    }

    fn learn(&mut self, input: &Input) {
        if let Input::Request { request: Request::Reload(plan), .. } = input {
            self.hashes.learn(plan);
        }
    }
}

impl<T: Serialize> Serialize for Redacted<'_, T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let writer = Writer { out, hashes: self.hashes, manner: self.manner, is_in_list: false };
        self.value.serialize(writer)
    }
}
