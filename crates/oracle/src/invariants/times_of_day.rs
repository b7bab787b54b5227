//! Times of day (W15). The random plans have the schedule of every minute.

use containerpilot_core::plan::{Restarts, Trigger};
use containerpilot_core::{JobStatus, Phase};

use super::model::Schedule;
use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    /// A schedule that begins now.
    fn schedule(&self) -> Schedule {
        let (at, unix) = self.clock;
        let since = unix + self.now.since(at);
        Schedule { since, minute: since.as_secs() / 60 }
    }

    /// A run starts, not by hand: a minute has come that had not come before this step.
    pub(super) fn check_time(&mut self, job: usize) -> Check {
        let (planned, minute) = (&self.plan.jobs[job], self.schedule().minute);
        if planned.when.cron().is_none() || !planned.requires.is_empty() {
            return Ok(());
        }
        match &mut self.jobs[job].schedule {
            None => self.job_violation("W15", job, "it is started before its schedule"),
            Some(schedule) if minute <= schedule.minute => {
                self.job_violation("W15", job, "its time has not come")
            }
            Some(schedule) => {
                schedule.minute = minute;
                Ok(())
            }
        }
    }

    /// After a step: a job that waits was started if a minute has come.
    pub(super) fn check_times(&mut self, job: usize, status: &JobStatus, phase: Phase) -> Check {
        let planned = &self.plan.jobs[job];
        let Trigger::Cron { after, .. } = &planned.when.trigger else { return Ok(()) };
        let (now, seen, model) = (self.schedule(), &self.seen[job], &mut self.jobs[job]);
        // The first run begins a schedule, too, if a user starts it.
        let by_hand = seen.by_hand && seen.spawned > 0 && model.runs == 1;
        let begins = by_hand || if after.is_some() { model.fires > 0 } else { self.startup.is_some() };
        let last = match &mut model.schedule {
            Some(schedule) if now.since.as_secs() >= schedule.since.as_secs() && !by_hand => schedule,
            None if !begins => return Ok(()),
            _ => {
                model.schedule = Some(now);
                return Ok(());
            }
        };
        let has_come = now.minute > last.minute;
        last.minute = last.minute.max(now.minute);
        let all_done = match planned.restarts {
            Restarts::Unlimited => false,
            Restarts::Limited(most) => model.runs - model.off_schedule > most,
        };
        let waits = model.run.is_none() && model.ended_at != Some(self.now) && status.stop_stage.is_none();
        if has_come && waits && !all_done && planned.requires.is_empty() && phase == Phase::Running {
            return self.job_violation("W15", job, "a time was missed");
        }
        Ok(())
    }
}
