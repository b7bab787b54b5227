//! A rolling restart: jobs are restarted one at a time, each healthy before the next (W20). It decides which job is
//! next; `rules/rolling_restart.rs` stops and starts the jobs.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::JobIx;
use crate::plan::diff::Moves;
use crate::request::{Refusal, Reply, RequestId};
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::{Fingerprint, Name};
use crate::state::timers::{TimerId, TimerKind, Timers};
use crate::time::Time;

/// A rolling restart in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RollingRestart {
    /// The request to answer.
    request: RequestId,
    /// The jobs that follow.
    next: VecDeque<JobIx>,
    /// The job that is restarted, and the generation that must become healthy.
    current: Option<(JobIx, u64)>,
    /// The jobs that were restarted.
    done: Vec<JobIx>,
    /// When the current job must be healthy.
    timer: Option<TimerId>,
}

impl RollingRestart {
    pub(crate) fn new(request: RequestId, jobs: Vec<JobIx>) -> Self {
        Self { request, next: jobs.into(), current: None, done: Vec::new(), timer: None }
    }

    /// The request to answer.
    pub(crate) const fn request(&self) -> RequestId {
        self.request
    }

    /// The job that is restarted, and the generation that must become healthy.
    pub(crate) const fn current(&self) -> Option<(JobIx, u64)> {
        self.current
    }

    /// The current job is back. Returns the next one.
    pub(crate) fn next(&mut self, timers: &mut Timers) -> Option<JobIx> {
        timers.cancel(&mut self.timer);
        self.done.extend(self.current.take().map(|(job, _)| job));
        self.next.pop_front()
    }

    /// A job is being restarted, and this generation of it must be healthy in time.
    pub(crate) fn restarting(&mut self, job: JobIx, generation: u64, until: Time, timers: &mut Timers) {
        self.current = Some((job, generation));
        self.timer = Some(timers.set(until, TimerKind::RollingRestart));
    }

    /// X2: a job that is stopped before its turn stays stopped.
    pub(crate) fn leave(&mut self, job: JobIx) {
        self.next.retain(|next| *next != job);
    }

    /// A reload has moved or removed jobs.
    pub(crate) fn follow(&mut self, moves: &Moves) {
        self.next = self.next.iter().filter_map(|job| moves.job(*job)).collect();
        self.done = self.done.iter().filter_map(|job| moves.job(*job)).collect();
        self.current = self.current.and_then(|(job, number)| Some((moves.job(job)?, number)));
    }

    /// Ends it. Returns the answer and the log entry. `why` is the reason if it is incomplete.
    pub(crate) fn end<'a>(
        mut self,
        why: Option<Refusal>,
        name: impl Fn(JobIx) -> &'a str,
        timers: &mut Timers,
    ) -> (Reply, String) {
        timers.cancel(&mut self.timer);
        let names = |jobs: &mut dyn Iterator<Item = &JobIx>| {
            jobs.map(|job| name(*job)).collect::<Vec<_>>().join(", ")
        };
        let (done, left) = (names(&mut self.done.iter()), names(&mut self.next.iter()));
        let reply = match why {
            None if done.is_empty() => Reply::Refused(Refusal::AllStopped),
            None => Reply::Done(format!("restarted {done}, one at a time")),
            Some(why) if left.is_empty() => Reply::Refused(why),
            Some(why) => Reply::Refused(Refusal::Incomplete { why: Box::new(why), left }),
        };
        let words = match &reply {
            Reply::Refused(why) => format!("rolling restart stopped: {why}"),
            _ => format!("rolling restart complete: {done}"),
        };
        (reply, words)
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, print: &mut Fingerprint) {
        let Self { request, next, current, done: _, timer } = self;
        print.name(Name::Request, request.0);
        print.add((next, current));
        print.option(*timer, |print, timer| timer.fingerprint(print));
    }
}
