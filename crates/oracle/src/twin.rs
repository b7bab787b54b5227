//! A second core, which is read back from a recording of the first one again and again. It gets the same inputs, and must
//! do the same.

use std::ops::Deref;

use containerpilot_core::rng::mix;
use containerpilot_core::state::fingerprint::Fingerprint;
use containerpilot_core::{Core, Effect, Input, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A step with this chance ends with a checkpoint: one of eight.
const CHECKPOINTS: u64 = 8;

/// A core that was read from a checkpoint.
#[derive(Debug)]
pub struct Twin {
    core: Core,
    seed: u64,
    effects: Vec<Effect>,
}

impl Twin {
    /// The twin of a core between two steps.
    ///
    /// # Errors
    /// It cannot be written or read.
    pub fn new(original: &Core, seed: u64) -> Result<Self, String> {
        Ok(Self { core: copy(original)?, seed, effects: Vec::new() })
    }

    /// Makes a step that the original has made.
    ///
    /// # Errors
    /// What the twin does differently.
    pub fn step(
        &mut self,
        original: &Core,
        step: impl FnOnce(&mut Core, Time, Input, &mut Vec<Effect>),
        (now, input): (Time, &Input),
        effects: &[Effect],
    ) -> Result<(), String> {
        self.effects.clear();
        step(&mut self.core, now, copy(input)?, &mut self.effects);
        if self.effects != effects {
            let differs = |nth: &usize| effects.get(*nth) != self.effects.get(*nth);
            let nth = (0..effects.len().max(self.effects.len())).find(differs).unwrap_or_default();
            let (one, other) = (effects.get(nth), self.effects.get(nth));
            return Err(format!("after {input:?}, effect {nth} is {one:?}, and of the twin {other:?}"));
        }
        if self.core.next_deadline() != original.next_deadline() {
            return Err(format!("after {input:?}, the twin has another deadline"));
        }
        self.seed = mix(self.seed);
        if self.seed.is_multiple_of(CHECKPOINTS) { self.read_back(original, now) } else { Ok(()) }
    }

    /// Compares the states, and goes on with one that is read back.
    ///
    /// # Errors
    /// They differ.
    pub fn read_back(&mut self, original: &Core, now: Time) -> Result<(), String> {
        let written = write(&self.core)?;
        if written != write(original)? {
            return Err(format!("the state is {original:?}, and of the twin {:?}", self.core));
        }
        self.core = read(&written)?;
        let print = |core: &Core| {
            let mut print = Fingerprint::new(now);
            core.fingerprint(&mut print);
            print.value()
        };
        if print(&self.core) != print(original) || self.core.plan() != original.plan() {
            return Err(format!("{original:?} changes when it is read: {:?}", self.core));
        }
        // What is not written must follow from what is.
        let (state, of_twin) = (format!("{original:?}"), format!("{:?}", self.core));
        if state != of_twin {
            Err(format!("the state is {state}, and of the twin {of_twin}"))
        } else {
            Ok(())
        }
    }
}

/// One of this many pairs has a twin: the others are tested faster.
const PAIRS: u64 = 8;

/// A core that may have a twin.
#[derive(Debug)]
pub(crate) struct Pair {
    core: Core,
    twin: Option<Twin>,
}

impl Pair {
    pub(crate) fn new(core: Core, seed: u64) -> Self {
        let twin =
            mix(seed).is_multiple_of(PAIRS).then(|| Twin { core: core.clone(), seed, effects: Vec::new() });
        Self { core, twin }
    }

    /// Makes a step with both.
    pub(crate) fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) -> Result<(), String> {
        let Some(twin) = &mut self.twin else {
            self.core.step(now, input, effects);
            return Ok(());
        };
        self.core.step(now, input.clone(), effects);
        twin.step(&self.core, Core::step, (now, &input), effects)
    }
}

impl Deref for Pair {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

fn write(value: &impl Serialize) -> Result<Vec<u8>, String> {
    postcard::to_extend(value, Vec::new()).map_err(|error| error.to_string())
}

fn read<T: DeserializeOwned>(written: &[u8]) -> Result<T, String> {
    let (value, rest) = postcard::take_from_bytes(written).map_err(|error| error.to_string())?;
    if rest.is_empty() { Ok(value) } else { Err("something is left after the last field".to_owned()) }
}

fn copy<T: Serialize + DeserializeOwned>(value: &T) -> Result<T, String> {
    read(&write(value)?)
}
