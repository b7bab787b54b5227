//! Locks: what at most a certain number of supervisors may have at the same time (D14).

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Catalog, EventPattern, Job, Plan, RequiredSource, Requirement};
use crate::event::{Code, Source};

/// The range that Consul accepts for the TTL of a session.
pub const SHORTEST_TTL: Duration = Duration::from_secs(10);
/// See [`SHORTEST_TTL`].
pub const LONGEST_TTL: Duration = Duration::from_secs(86_400);

/// How many jobs that stop one after the other are counted.
const MAX_CHAIN: usize = 16;

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Its events come from `lock.NAME`.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub name: String,
    /// The key in Consul; for several slots, the prefix of the keys.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub key: String,
    /// How long Consul keeps the lock for a holder that does not renew its session.
    pub ttl: Duration,
    /// How many supervisors may have it at the same time.
    pub slots: u32,
}

impl Lock {
    /// How long before the end of the TTL every process of the holder must have got SIGKILL. Consul's leader may be
    /// replaced without knowing it for half a second, a killed process needs time to exit, and the clocks of two
    /// machines differ by less than a thousandth.
    #[must_use]
    pub fn margin(&self) -> Duration {
        Duration::from_secs(1) + self.ttl / 1000
    }

    /// How long before the end of the TTL a holder gives up, if its jobs need `stop_time` to stop. A longer stop time
    /// is cut: then the processes get SIGKILL before they are done.
    #[must_use]
    pub fn give_up_before(&self, stop_time: Duration) -> Duration {
        self.margin() + stop_time.min(self.longest_stop_that_fits())
    }

    /// The shortest TTL, in whole seconds, into which a stop time fits.
    #[must_use]
    pub fn ttl_for(&self, stop_time: Duration) -> Duration {
        let fits = |ttl: &Duration| Self { ttl: *ttl, ..self.clone() }.longest_stop_that_fits() >= stop_time;
        let from = SHORTEST_TTL.as_secs().max(stop_time.as_secs());
        let mut ttls = (from..=LONGEST_TTL.as_secs()).map(Duration::from_secs);
        ttls.find(fits).unwrap_or(LONGEST_TTL)
    }

    /// The longest stop that leaves time to renew the session before the holder gives up.
    #[must_use]
    pub fn longest_stop_that_fits(&self) -> Duration {
        (self.ttl * 3 / 4).saturating_sub(self.margin())
    }
}

impl Job {
    /// Returns true if the job requires this lock.
    #[must_use]
    pub fn requires_lock(&self, lock: &Lock) -> bool {
        self.requires
            .iter()
            .any(|one| matches!(&one.source, RequiredSource::Lock(name) if *name == lock.name))
    }
}

impl Plan {
    /// Returns true if the locks are in Consul. Otherwise this supervisor has them alone.
    #[must_use]
    pub fn has_shared_locks(&self) -> bool {
        !self.locks.is_empty() && matches!(self.catalog, Catalog::Consul(_))
    }

    /// For each lock, how long the jobs that require it take to stop, at most.
    #[must_use]
    pub fn lock_stop_times(&self) -> Vec<Duration> {
        if self.locks.is_empty() {
            return Vec::new();
        }
        let times = self.stop_times();
        let of_lock = |lock: &Lock| {
            let jobs = self.jobs.iter().zip(&times).filter(|(job, _)| job.requires_lock(lock));
            jobs.map(|(_, time)| *time).max().unwrap_or_default()
        };
        self.locks.iter().map(of_lock).collect()
    }

    /// For each job, how long it takes to stop, at most. Jobs that are bound to it stop before.
    fn stop_times(&self) -> Vec<Duration> {
        let own: Vec<Duration> = self.jobs.iter().map(|job| self.own_stop_time(job)).collect();
        let is_bound = |other: &Job, job: &Job| {
            let is_job = |name: &String| {
                *name == job.name || job.replica.as_ref().is_some_and(|replica| replica.group == *name)
            };
            let binds = |one: &Requirement| {
                one.bind && matches!(&one.source, RequiredSource::Job(name) if is_job(name))
            };
            other.name != job.name && other.requires.iter().any(binds)
        };
        let bound = |job: &Job| -> Vec<usize> {
            let others = self.jobs.iter().enumerate().filter(|(_, other)| other.is_bound());
            others.filter(|(_, other)| is_bound(other, job)).map(|(nth, _)| nth).collect()
        };
        let bound: Vec<Vec<usize>> = self.jobs.iter().map(bound).collect();
        let mut times = own.clone();
        // A longer chain would not fit into any TTL, and a ring has no end.
        for _ in 0..MAX_CHAIN {
            let next = |(own, bound): (&Duration, &Vec<usize>)| {
                let before = bound.iter().filter_map(|nth| times.get(*nth)).max();
                *own + before.copied().unwrap_or_default()
            };
            times = own.iter().zip(&bound).map(next).collect();
        }
        times
    }

    /// Hooks, deregistration, drain, and the time until SIGKILL.
    fn own_stop_time(&self, job: &Job) -> Duration {
        let waits = |event: &EventPattern| {
            event.code == Code::Stopping && matches!(&event.source, Source::Job(name) if *name == job.name)
        };
        let has_hook = self.jobs.iter().any(|hook| hook.when.patterns().iter().any(waits));
        let hooks =
            if has_hook { job.stop.hook_timeout.unwrap_or(self.stop_timeout) } else { Duration::ZERO };
        let deregister = if job.service.is_some() { self.deregister_timeout() } else { Duration::ZERO };
        hooks
            + deregister
            + job.stop.drain.longest(self.stop_timeout)
            + job.stop.kill_timeout(self.stop_timeout)
    }
}
