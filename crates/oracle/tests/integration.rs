//! Random schedules, exhaustive search, and what they have found.

mod catalog;
mod files;
mod locks;
mod reload;
mod rules;
mod schedules;
mod search;
mod storms;
