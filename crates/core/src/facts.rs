//! What is true of jobs now, and what can still happen to them. Nothing here changes anything; the rules ask.

mod events;
mod reachability;
mod replaced;
mod requirements;
pub(crate) mod runs;
mod stop_order;
mod variables;
