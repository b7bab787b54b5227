//! Single fields of a checkpoint (B1), as serde sees them.

/// The effects that the caller has not taken: none between two steps, unless a panic interrupted the last one. The
/// next step returns them, and a checkpoint can be written after it.
pub(crate) mod no_effects {
    use alloc::vec::Vec;

    use serde::{Serialize, Serializer};

    use crate::Effect;

    pub(crate) fn serialize<S: Serializer>(effects: &[Effect], out: S) -> Result<S::Ok, S::Error> {
        if !effects.is_empty() {
            return Err(serde::ser::Error::custom("the last step was interrupted"));
        }
        ().serialize(out)
    }

    pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Vec<Effect>, D::Error> {
        serde::Deserialize::deserialize(input).map(|()| Vec::new())
    }
}

/// Whether there is a value. What it is, is written where its owners share it.
pub(crate) mod presence {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T, S: Serializer>(value: &Option<T>, out: S) -> Result<S::Ok, S::Error> {
        value.is_some().serialize(out)
    }

    pub(crate) fn deserialize<'de, T: Default, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<T>, D::Error> {
        bool::deserialize(input).map(|present| present.then(T::default))
    }
}
