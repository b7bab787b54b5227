//! The heart of containerpilot: what is decided, and nothing of how it is done.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
