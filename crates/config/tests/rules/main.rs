//! What a configuration means, rule by rule. Each test is named after the rule it proves.
#![cfg(test)]

mod catalog;
mod coprocesses;
mod files;
mod keys;
mod legacy;
mod limits;
mod plan;
mod support;
mod validate;
