//! What the integration tests of the original programs assert, asserted of this one: ContainerPilot 3.8.0 (`version3`)
//! and 2.7.8 (`version2`).
//!
//! The comment of each test names the test of the original and what that asserts. Where this program differs on
//! purpose, the test asserts what it does instead, and the comment names the row of `docs/compat.md`. Configurations,
//! scripts and times are our own.

mod container;
mod differences;
mod harness;
mod version2;
mod version3;
