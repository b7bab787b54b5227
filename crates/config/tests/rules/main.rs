//! What a configuration means, rule by rule. Each test is named after the rule it proves.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

mod catalog;
mod files;
mod keys;
mod limits;
mod meaning;
mod plan;
mod support;
