//! Times of day (W15). The random plans have the schedule of every minute.

use std::time::Duration;

use containerpilot_core::plan::{Restarts, Trigger};

use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    /// The system clock.
    fn unix_now(&self) -> Duration {
        let (at, unix) = self.clock;
        unix + self.now.since(at)
    }

    fn minute(&self) -> u64 {
        self.unix_now().as_secs() / 60
    }

    /// The system clock is read. A clock that is set to before the start of a schedule starts it again.
    pub(super) fn see_clock(&mut self, unix: Duration) {
        self.clock = (self.now, unix);
        for job in &mut self.jobs {
            if let Some((since, minute)) = &mut job.minutes
                && unix.as_secs() < since.as_secs()
            {
                (*since, *minute) = (unix, unix.as_secs() / 60);
            }
        }
    }

    /// The times of a job count from now on.
    pub(super) fn begin_times(&mut self, job: usize) {
        self.jobs[job].minutes = Some((self.unix_now(), self.minute()));
    }

    /// A run that no user has started: a minute has come since the last one.
    pub(super) fn check_time(&mut self, job: usize) -> Check {
        let minute = self.minute();
        if !self.plan.jobs[job].requires.is_empty() {
            return Ok(());
        }
        match &mut self.jobs[job].minutes {
            // If the core is called late, the start of the schedule is not observed.
            None if self.startup.is_some()
                && self.plan.jobs[job].when.ticks_from_startup()
                && !self.exact =>
            {
                self.begin_times(job);
                Ok(())
            }
            None => self.job_violation("W15", job, "it is started before its schedule"),
            Some((_, last)) if minute <= *last => self.job_violation("W15", job, "its time has not come"),
            Some((_, last)) => {
                *last = minute;
                Ok(())
            }
        }
    }

    /// After a step: no minute has come while the job waited.
    pub(super) fn check_times(&mut self, job: usize) -> Check {
        let planned = &self.plan.jobs[job];
        if matches!(planned.when.trigger, Trigger::Cron { after: None, .. })
            && self.startup.is_some()
            && self.jobs[job].minutes.is_none()
        {
            self.begin_times(job);
        }
        let minute = self.minute();
        let model = &mut self.jobs[job];
        let Some((_, last)) = &mut model.minutes else { return Ok(()) };
        if minute <= *last {
            return Ok(());
        }
        *last = minute;
        let all_done = match planned.restarts {
            Restarts::Unlimited => false,
            Restarts::Limited(most) => model.runs - model.off_schedule > most,
        };
        if model.run.is_some() || model.ended_at == Some(self.now) || all_done || !planned.requires.is_empty()
        {
            return Ok(());
        }
        self.job_violation("W15", job, "a time was missed")
    }
}
