//! The pages of the manual, which are Markdown files of the repository.
//!
//! `docs/README.md` is the only table of contents. From it follow the topics of `containerpilot help` ([`manual`], rendered by
//! [`terminal`]), `docs/llms.txt` ([`llms`]) and the web site, which the binary of this crate makes ([`site`]).
#![forbid(unsafe_code)]

pub mod contents;
pub mod links;
pub mod llms;
pub mod manual;
pub mod markdown;
pub mod site;
pub mod terminal;
