//! Processes: starting, signalling and reaping them, and the system calls for that.

pub(crate) mod cgroups;
pub(crate) mod descendants;
pub(crate) mod orphans;
pub(crate) mod proc;
pub(crate) mod reaper;
pub(crate) mod secrets;
pub(crate) mod signals;
pub(crate) mod spawn;
pub(crate) mod sys;
pub(crate) mod users;
