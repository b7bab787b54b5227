//! The start limit (W14): a job that is started too often fails.

use crate::event::Code;
use crate::facts::runs::limit_in_words;
use crate::ids::JobIx;
use crate::log_entry::Fields;
use crate::plan::{Level, StartLimit};
use crate::state::job::{Activity, StopReason, Transition};
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::supervisor::Core;

impl Core {
    /// Records a start. Returns false if the job may not be started: it has failed then. The
    /// configuration sets the number of ticks of a periodic job, and a hook runs once at shutdown: neither counts.
    pub(crate) fn count_start(&mut self, job: JobIx) -> bool {
        let planned = self.planned(job);
        let counts = planned.exec.is_some() && !planned.when.is_periodic() && self.phase == Phase::Running;
        let Some(limit) = planned.start_limit.filter(|_| counts) else { return true };
        let now = self.now;
        let starts = &mut self.job_mut(job).starts;
        while starts.front().is_some_and(|start| now.since(*start) >= limit.within) {
            starts.pop_front();
        }
        if starts.len() < limit.count as usize {
            starts.push_back(now);
            return true;
        }
        self.reach_start_limit(job, limit);
        false
    }

    fn reach_start_limit(&mut self, job: JobIx, limit: StartLimit) {
        self.change(job, Transition::To(Activity::Waiting));
        let fields = Fields::from(Code::CrashLoop).duration(limit.within);
        let why = limit_in_words(limit);
        self.log(Level::Error, Some(job), fields, format_args!("crash loop: {why}, not starting again"));
        let state = self.job_mut(job);
        // Runs that succeed, but end at once, are a crash loop, too.
        let code = state.last_exit.map_or(1, |exit| exit.status.code().max(1));
        state.failure = Some(code);
        self.send(Origin::Job(job), Code::CrashLoop);
        self.begin_stop(job, StopReason::CrashLoop);
    }
}
