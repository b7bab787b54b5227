//! Scenarios in virtual time, and mistakes in their files.

mod broken;
mod rules;
