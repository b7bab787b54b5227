//! What a scenario means, rule by rule, in virtual time.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

mod expecting;
mod exploring;
mod scripting;
mod support;
mod usual;
