//! Replicas as the source of an event, in words (W20).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::JobIx;
use crate::report::explain::Reason;
use crate::supervisor::Core;

/// How many replicas an explanation lists.
const MAX_LISTED: usize = 8;

impl Core {
    /// Returns true if these jobs are the replicas of the job with this name.
    pub(super) fn are_replicas_of(&self, jobs: &[JobIx], source: &str) -> bool {
        jobs.first().is_some_and(|job| self.planned(*job).is_replica_of(source))
    }

    /// The states of replicas: `1 of 3 replicas; 2 running, 1 waiting`. The first figure is shown if the event must
    /// hold for all of them.
    pub(super) fn replica_states(&self, replicas: &[JobIx], code: Code) -> String {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for job in replicas {
            *states.entry(self.status(*job).word()).or_default() += 1;
        }
        let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let states = states.join(", ");
        match code.needs_all_replicas() {
            true => {
                let count = replicas.iter().filter(|job| self.event_holds(**job, code, true)).count();
                format!("{count} of {} replicas; {states}", replicas.len())
            }
            false => states,
        }
    }

    /// Why the event of a group does not hold: one reason for each replica for which it does not.
    pub(super) fn replica_reasons(
        &self,
        replicas: &[JobIx],
        holds: impl Fn(JobIx) -> bool,
        visited: &mut Vec<JobIx>,
    ) -> Vec<Reason> {
        let mut without = replicas.iter().copied().filter(|job| !holds(*job));
        let listed: Vec<JobIx> = without.by_ref().take(MAX_LISTED).collect();
        let mut reason =
            |job: JobIx| Reason { sentence: self.summary(job), because: self.reasons(job, visited) };
        let mut reasons: Vec<Reason> = listed.into_iter().map(&mut reason).collect();
        let more = without.count();
        if more > 0 {
            reasons.push(Reason { sentence: format!("and {more} more replicas"), because: Vec::new() });
        }
        reasons
    }
}
