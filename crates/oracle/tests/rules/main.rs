//! Defects that random schedules have found, each as the smallest case by hand.

mod runs;
mod stops;
mod support;
