//! The binary.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "read by the tests; `main` takes it up with the first action")
)]
mod cli;

fn main() {}
