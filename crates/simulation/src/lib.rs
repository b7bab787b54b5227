//! A rehearsal: a configuration played by a script, in virtual time, with no process started.
//!
//! [`read`] makes a [`scenario::Scenario`] of a user's file, with the same reader, the same table of fields and the same
//! messages as a configuration. [`runner`] plays it: the decisions are those of the real core, and what it wants is
//! done by a made-up [`world`]: programs that last as long as the script says, checks that answer as it says, and a
//! [`catalog`] that may be away. Where the script is silent, [`defaults`] knows what a program of that sort usually does.
//! What happened is a [`timeline`]; [`expect`] compares it with what was expected, and [`explore`] tries other
//! worlds, each with its [`fault`]s.
//!
//! Everything here is a function of its arguments, so that a rehearsal comes out the same everywhere.
#![forbid(unsafe_code)]

mod behavior;
pub mod defaults;
pub mod expect;
pub mod explore;
pub mod fault;
pub mod fields;
pub mod moment;
pub mod read;
pub mod reference;
pub mod runner;
pub mod scenario;
pub mod timeline;
pub mod world;
