//! The rules: what follows from an input, an event or a timer.
//!
//! A step is one input and everything that follows from it (`step.rs`). It is a sequence of parts, each of which looks
//! for the most urgent thing to do. Five ideas explain why a job does not simply start, stop and start again.
//!
//! *Generation.* A job that has ended is never resumed: its state has an outcome, and others have seen it. A start by
//! hand, a reload that changes the job, or the return of a source it is bound to creates the next generation, with a
//! fresh state (`generation.rs`). Events from before a generation are not for it (`created_after`). A stop hook runs
//! once per generation of the job whose stop it waits for, so a new generation of a job is one of its hooks, too.
//!
//! *Pending.* An event during a run of the job is not lost: it starts the next run (W7). By default the last of
//! them counts, with `queue: "all"` each of them (W21). The pending event is kept in the job, not in the queue of
//! events: the queue is always emptied within a step, and a run takes longer.
//!
//! *Deferred.* A start that is due while a requirement does not hold is deferred (`defer.rs`, W18). It is one of
//! three: the pending event, the pending tick, or a [`Deferred`] start that has neither. The job is `Waiting`
//! meanwhile, and `status` names what is missing. Nothing polls: the job is rechecked when a source changes.
//!
//! *Recheck.* A change of one job can let others go on: what they wait for has come, what they require exists or is
//! gone, a hook is done, a job that stops before them has ended. Following these at once would nest: a stop that ends
//! a job that another one requires, and so on, each in the middle of the other's change. So they are put into a set
//! (`PlanState::recheck`) and looked at one by one when the queue of events is empty, in the order of the file (W18).
//! Looking twice does no harm: a recheck does nothing if nothing has changed.
//!
//! *Reachability.* A job that waits for something that can never come is complete, with a warning, and the container
//! may end (W10). What can still come is a question about all jobs together (`facts/reachability.rs`), so it is asked
//! only when something has changed that can matter (`reachability_dirty`) and nothing else is to be done: a job that
//! waits for an event in the queue is not unreachable. Jobs that wait only for each other are found as a set.
//!
//! The order of a step follows from these: first what was decided and is urgent (the end of the container, unhealthy
//! runs, actions), then events, then new generations, rechecks, reloads and shutdowns, reachability, timers, and last
//! the starts that wait for their turn (P14).
//!
//! Who calls whom: `step` calls everything here. `start`, `stop`, `exit`, `restart`, `periodic`, `defer` and
//! `start_limit` call each other: the end of a run starts the next one or stops the job. No other file does. Questions
//! about jobs are answered by `facts`; watches, files, locks, the health of jobs and the rolling restart have folders of
//! their own, and are called with what they need (`parts.rs`).
//!
//! [`Deferred`]: crate::state::job::Deferred

mod action;
mod adjust;
mod advertise;
mod by_hand;
mod completion;
mod defer;
mod dispatch;
mod environment;
mod exit;
mod exit_code;
mod generation;
mod health;
mod kill;
mod log_work;
mod maintenance;
mod manager;
mod name_recording;
mod orphans;
mod parts;
mod periodic;
mod queued_starts;
mod readiness;
mod reload;
mod replace_unhealthy;
mod request;
mod restart;
mod rolling_restart;
mod shutdown;
pub mod signals;
mod start;
mod start_again;
mod start_limit;
mod startup;
mod step;
mod stop;
mod timeout;
mod trigger;
mod unreachable;
mod waiting;
