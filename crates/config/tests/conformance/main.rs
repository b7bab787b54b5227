//! The golden cases, made by running ContainerPilot 3.8 itself, and the configuration files of public repositories.
//!
//! `VECTORS_DIR` and `REALWORLD_DIR` name other folders of the same form. Each test prints how many cases passed
//! and failed, and how many differ on purpose: every such departure has a name here, is recognised by what the
//! case holds (never by its id), and is listed in `docs/compat.md`.
#![cfg(test)]

mod decode;
mod duration;
mod exec;
mod facts;
mod harness;
mod interfaces;
mod json5;
mod realworld;
mod template;
