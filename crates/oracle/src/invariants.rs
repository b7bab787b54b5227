//! The oracle: it observes every input, effect and event, and checks the rules.
//!
//! It observes the core between the parts of a step, keeps its own model, built only from observations, and
//! compares the two after every step. What it checks:
//!
//! | rule   | check                                                                                               |
//! |--------|-----------------------------------------------------------------------------------------------------|
//! | P3     | every run has exactly one exit event, which tells success from failure; a start that takes too long |
//! |        | is given up in time, and no other start is, unless its run is killed                                |
//! | P4     | signals go only to running processes; what remains of a run is killed once, and in time             |
//! | P5     | a run or a check is killed at its timeout; nothing is killed without a reason                       |
//! | P6     | no job has two processes; one that SIGKILL does not end is abandoned, and no other                  |
//! | P7     | the environment of a process names exactly the running processes                                    |
//! | E2, E3 | events are numbered without a gap, causes come first; `stopping`, then `stopped`, then nothing      |
//! | E4     | `startup` comes once                                                                                |
//! | E5     | `healthy` only at a change; `unhealthy` at each failed check that counts                            |
//! | E6     | each pair of events of a watch reports another answer, and no change is left out                    |
//! | W2     | the first event starts a `once` job at once, and no later one does                                  |
//! | W4     | ticks do not drift, never overlap, and are no more than allowed                                     |
//! | W5     | a job that has not started in time gives up at that time, and no other job does                     |
//! | W6     | no more restarts than allowed                                                                       |
//! | W7     | an event during a run leads to exactly one further run                                              |
//! | W8     | a restart happens exactly at the end of its back-off                                                |
//! | W9     | a complete job stays complete; a job that can never run again completes at once                     |
//! | W10    | no job waits for an event that cannot happen; the supervisor stops by itself when all work is done  |
//! | W19    | an action has no process, ends in its step, and its effect happens                                  |
//! | W21    | with `queue: "all"`, every event starts a run, in order                                            |
//! | W18    | a job starts by itself only when its requirements hold, and then at once, in the order of the       |
//! |        | configuration; a bound job stops when a source is gone                                              |
//! | W20    | an event of replicas is that of any of them, or comes when the last one has it                      |
//! | S1, S4 | a shutdown ends in time and as soon as it can; the second request kills at once                     |
//! | S2     | `stopping`, hooks, deregistration, drain, signal, exit, `stopped`: in this order, without delay     |
//! | S8     | the signals in `stopOn` shut down; a signal that jobs wait for is an event                          |
//! | S3     | jobs of the shutdown run in it, once; nothing else starts                                           |
//! | S5     | the exit code                                                                                       |
//! | S10    | a job gets its stop signal after the jobs that require it, and those in `stopAfter`, have ended     |
//! | H2–H4  | healthy if and only if all checks pass; checks run at their interval, never overlap, only while     |
//! |        | the job runs                                                                                        |
//! | H7, H8 | the exit of a process ends its health; an unhealthy job that is to be restarted gets a stop signal  |
//! | D4, D8 | the desired catalog status follows from health, maintenance and stopping, and is sent once          |
//! | C6     | coprocesses are stopped after all other jobs                                                        |
//! | D5, S6 | desired and registered status become equal; an exit deregisters everything (see `agents.rs`)        |
//! | R5     | a job that is changed without its process keeps it; the new checks, service and policies count      |
//! | R3, R4 | a reload stops and starts what has changed and keeps the rest; new jobs see conditions that already |
//! |        | hold; hooks get a new generation with their job; every request is answered, in time                 |
//! | X2     | every command is answered once; a manual start leads to a run, a manual stop to none until a start  |
//! | X7     | a job that never ran is skipped; otherwise its last run, or who stopped it, decides how it ended     |
//! | core   | no internal error is reported, timers do not pile up, a step has few effects                        |

mod actions;
mod adjust;
mod advertise;
mod answers;
mod commands;
mod events;
mod fingerprint;
mod fixed_times;
mod health;
mod model;
mod observe;
pub mod oracle;
mod queue;
mod readiness;
mod reload;
mod reloading;
mod repetition;
mod replicas;
mod requires;
mod runs;
mod signals;
mod states;
mod step;
mod stopping;
mod times_of_day;
mod waiting;
mod watches;
