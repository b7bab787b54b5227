//! Bugs that random schedules have found, each reduced by hand to its smallest case.

mod runs;
mod stops;
mod support;
