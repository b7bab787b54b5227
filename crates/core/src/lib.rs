//! The heart of containerpilot: what is decided, and nothing of how it is done.
//!
//! This crate has no clock, no file, no process and no environment (it is `no_std`), so everything in it
//! is a function of its arguments and can be tried in any order, at any time, as often as one likes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod event;
pub mod plan;
