//! The fingerprint of a job's state.

use core::time::Duration;

use super::{Activity, CronTimes, Generation, JobState, Stage, State, StopState, Ticks};
use crate::plan::{Job, Restarts};
use crate::state::fingerprint::{Fingerprint, Name, Order};
use crate::state::journal::Event;
use crate::state::run::{LastExit, Notified, Run};

impl JobState {
    /// Adds everything that decides the future of this job.
    pub(crate) fn fingerprint(&self, planned: &Job, in_ring: bool, print: &mut Fingerprint) {
        // Both a job that triggers itself (W14) and one that comes back with its source (W18) are delayed like a
        // restart.
        let is_delayed = in_ring || planned.is_bound();
        let Self {
            activity,
            stop,
            // A generation gets only events after its creation; between two steps none is queued.
            generation: Generation { number: _, serial, created_after: _ },
            triggered_at,
            conditions,
            pending,
            deferred,
            ran_at_shutdown,
            ticks: Ticks { due, timer, pending: pending_tick, off_schedule, cron },
            restarts,
            restarts_total: _,
            runs: _,
            early_exits,
            starts,
            has_run,
            cause,
            started_at,
            last_exit,
            // Reported only.
            start_error: _,
            failed_runs: _,
            failure,
            desired,
            start_timeout,
        } = self;
        activity.fingerprint(print);
        print.order(Order::Generation, (*serial).into());
        print.add((desired, has_run, last_exit.as_ref().map(LastExit::is_success)));
        if self.has_ended() {
            // The rest is not used any more. The next generation has its own.
            return print.add(self.stop_reason());
        }
        print.option(stop.as_ref(), |print, StopState { reason, then_start, by: _, timer, stage }| {
            print.add((reason, then_start, stage.name()));
            if let Stage::Drain(Some(run)) = stage {
                print.name(Name::Check, run.0);
            }
            print.option(*timer, |print, timer| timer.fingerprint(print));
        });
        print.option(*triggered_at, |print, serial| print.order(Order::Generation, serial.into()));
        // Of the event that starts a run, the rest is reported and given to the process.
        let is_stop_event = |event: &Event| event.code.is_stop_event();
        // Where it comes from decides whether the job triggers itself (W14).
        print.list(pending.iter(), |print, event| {
            print.add((is_stop_event(event), in_ring.then_some(event.origin)));
        });
        print.add(cause.as_ref().map(|cause| cause.event().map(is_stop_event)));
        print.add((conditions, ran_at_shutdown, failure, pending_tick, deferred));
        print.option(*timer, |print, timer| {
            timer.fingerprint(print);
            print.time(*due);
            print.add(off_schedule);
        });
        print.add(cron.map(|CronTimes { since, next }| (since, next)));
        if let Some(limit) = planned.start_limit {
            print.list(starts, |print, start| print.age(*start, limit.within));
        }
        print.option(*start_timeout, |print, timer| timer.fingerprint(print));
        print.add((planned.restarts != Restarts::Unlimited).then_some(restarts));
        let backoff = planned.backoff.filter(|_| is_delayed || planned.restarts != Restarts::Limited(0));
        print.add(backoff.map(|backoff| {
            // From some number on, all delays are the longest one.
            let doublings = (0..31).find(|n| backoff.initial * (1 << n) >= backoff.max).unwrap_or(31);
            (*early_exits).min(doublings + 1)
        }));
        if let Some(started_at) = started_at.filter(|_| is_delayed || self.state() == State::Running) {
            // Whether the run is short (W8), and in the first interval (H3) or the start period (H9) of a check.
            let checks = planned.health.iter().flat_map(|health| &health.checks);
            let durations = checks
                .map(|check| check.interval.max(check.start_period))
                .chain(backoff.map(|backoff| backoff.reset));
            print.age(started_at, durations.max().unwrap_or_default());
        }
    }
}

impl Activity {
    fn fingerprint(&self, print: &mut Fingerprint) {
        print.add((self.state(), core::mem::discriminant(self)));
        match self {
            Self::Starting(run) | Self::Running(run, _) | Self::Outlived(run, _) => {
                // Whether it was signalled is only reported.
                let Run {
                    id,
                    overrides,
                    timeout,
                    kill_timer,
                    abandon_timer,
                    timed_out,
                    killed,
                    signalled: _,
                    replaced,
                    notified,
                    escalated,
                    stop_signal_at,
                } = run;
                print.name(Name::Run, id.0);
                for timer in [timeout, kill_timer, abandon_timer] {
                    print.option(*timer, |print, timer| timer.fingerprint(print));
                }
                print.add((overrides, timed_out, killed, replaced, escalated));
                // Without a timer, no signal follows.
                print.option(stop_signal_at.filter(|_| kill_timer.is_some()), Fingerprint::time);
                // The text of its status is only reported.
                print.option(notified.as_deref(), |print, notified| {
                    let Notified { readiness, status: _, announced: (since, count) } = notified;
                    print.add((readiness, count));
                    print.age(*since, Duration::from_secs(1));
                });
            }
            // The variables are text for its process.
            Self::Queued(run, _) => print.name(Name::Run, run.0),
            Self::Delaying(timer) => timer.fingerprint(print),
            // Between two steps, no job acts.
            Self::Waiting | Self::RunningWithoutProcess | Self::Acting(_) | Self::Ended(_) => {}
        }
    }
}
