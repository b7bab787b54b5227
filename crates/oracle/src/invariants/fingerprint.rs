//! The fingerprint of the oracle's own state, for the exhaustive search: two oracles with the same fingerprint, beside
//! cores with the same fingerprint, judge the future alike. What is set again at the start of each step is left out, and
//! counters count only as far as a check tells them apart.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::plan::{Check, Job, Repeat, Restarts, Trigger};
use containerpilot_core::state::fingerprint::{Fingerprint, Name, Order};

use super::fixed_times::{ABANDON_TIMEOUT, KILL_TIMEOUT};
use super::model::{CheckModel, JobModel, RunModel};
use super::oracle::Oracle;
use super::reloading::Reloading;

impl Oracle<'_> {
    /// Adds everything that decides what this oracle accepts from here on, including the plans in force and to come.
    pub fn fingerprint(&self, print: &mut Fingerprint) {
        let Self {
            versions: _,
            // Follows from the plan.
            hook_times,
            // The core's fingerprint has it.
            clock: _,
            version,
            plan,
            exact,
            now,
            // Set at the start of each step.
            phase_before: _,
            before: _,
            phase: _,
            previous: _,
            spare: _,
            maintenance_before: _,
            effects_seen: _,
            released: _,
            stop_on: _,
            events: _,
            seen: _,
            jobs,
            // Any number that is not in use has the same effect.
            generations: _,
            generations_before: _,
            last_event: _,
            startup,
            shutdown,
            expected_code,
            first_failure,
            first_hook_failure,
            has_worked,
            stop_signal,
            terminating,
            killing,
            maintenance,
            paused_at,
            watches,
            orphans,
            open_requests,
            // That run is over.
            start_pending: _,
            early_starts,
            rolling,
            reloading,
            // Only counted.
            performed: _,
            // Empty between two parts of a step.
            acted: _,
            variables,
        } = self;
        print.add(variables);
        print.add((version, exact, expected_code, maintenance, watches, early_starts));
        print.option(*paused_at, |print, at| print.age(at, Duration::MAX));
        print.add(expected_code.is_none().then_some((first_failure, first_hook_failure, has_worked)));
        print.add(startup.is_some());
        // The longest phase ends after the hooks, twice the stop timeout and 1 s (S4, S15).
        let longest = hook_times[*version] + 2 * plan.stop_timeout + KILL_TIMEOUT;
        print.option(*shutdown, |print, (at, _)| print.age(at, longest));
        print.option(*terminating, |print, at| print.age(at, plan.stop_timeout + KILL_TIMEOUT));
        print.option(*stop_signal, |print, (signal, at)| {
            print.add(signal);
            print.age(at, Duration::from_millis(100));
        });
        print.option(*killing, |print, at| print.age(at, KILL_TIMEOUT));
        print.list(orphans, |print, (run, due)| {
            print.name(Name::Run, run.0);
            print.time(*due);
        });
        print.list(open_requests, |print, request| print.name(Name::Request, request.0));
        print.list(rolling, |print, (request, jobs)| {
            print.name(Name::Request, request.0);
            print.add(jobs);
        });
        let Reloading {
            requests,
            renews_variables,
            version,
            requested,
            due,
            starts_jobs,
            late: _,
            changing: _,
            moved: _,
            done: _,
            canceled: _,
            registered_again: _,
        } = reloading;
        print.add(renews_variables);
        print.list(requests, |print, request| print.name(Name::Request, request.0));
        // The plan to come counts only while there is one.
        print.add((requested, starts_jobs, (!requests.is_empty()).then_some(version)));
        print.option(*due, Fingerprint::time);
        print.list(jobs.iter().zip(&plan.jobs), |print, (job, planned)| {
            job.fingerprint(planned, *now, shutdown.map(|(_, event)| event), print);
            // When the start timeout passes (W5).
            let since = startup.map(|startup| startup.max(job.created));
            if let Some((since, timeout)) = since.zip(planned.when.timeout).filter(|_| job.runs == 0) {
                print.age(since, timeout);
            }
        });
    }
}

impl JobModel {
    fn fingerprint(&self, planned: &Job, now: Time, shutdown: Option<u64>, print: &mut Fingerprint) {
        let Self {
            // The same as the core's.
            generation: _,
            // In the oracle's.
            created: _,
            ran_just_before,
            ticks_from,
            schedule,
            by_hand,
            off_schedule,
            runs_since_manual_start,
            run,
            runs,
            runs_before_adjustment,
            restarts_at_adjustment,
            runs_at_shutdown,
            serial,
            triggered,
            fires,
            first_fire,
            pending,
            queue,
            holds,
            stopping,
            hook_limit,
            drain,
            drain_run,
            drain_done,
            stopped,
            is_spaced,
            left,
            deregister_deadline,
            free_at,
            ended_at,
            last_failure,
            last_exit,
            last_code,
            run_failed,
            starts,
            crash_looped,
            was_terminated,
            early,
            restart_due,
            triggered_itself,
            begun,
            resumed,
            gave_up,
            has_begun,
            active,
            epoch,
            health_state,
            desired,
            last_heartbeat,
            checks,
        } = self;
        // The numbers of the model and of the core are two series.
        let model_serial = |serial: u64| u128::from(serial) | 1 << 64;
        print.order(Order::Generation, model_serial(*serial));
        let stop_event = stopping.map(|(_, event)| event);
        print.add((first_fire.map(|fire| stop_event.is_some_and(|stop| fire < stop)), stop_event.is_some()));
        print.add(stop_event.zip(shutdown).map(|(stop, shutdown)| stop < shutdown));
        print.add((last_exit, last_code, run_failed, crash_looped));
        print.add(((*runs).min(2), last_failure, was_terminated, gave_up, health_state, desired, active));
        let planned_checks = planned.health.iter().flat_map(|health| &health.checks);
        print.list(checks.iter().zip(planned_checks), |print, (check, planned)| {
            check.fingerprint(planned, *active, print);
        });
        print.add((stopped.is_some(), resumed, restarts_at_adjustment, ran_just_before));
        if stopped.is_some() {
            // The rest is not used any more. The next generation has its own.
            return;
        }
        if let Some(limit) = planned.start_limit {
            print.list(starts, |print, start| print.age(*start, limit.within));
        }
        let periodic = matches!(planned.when.trigger, Trigger::Interval { .. });
        print.add((schedule, is_spaced));
        if let Trigger::Interval { every: interval, .. } = planned.when.trigger {
            // Only the phase of the ticks counts.
            print.add(ticks_from.map(|from| now.since(from).as_nanos() % interval.as_nanos()));
            print.option(*ended_at, |print, at| print.age(at, interval));
        }
        if let Restarts::Limited(most) = planned.restarts {
            let starts = if periodic { 1 } else { fires + by_hand };
            let allowed = starts.saturating_mul(1 + most) + runs_before_adjustment;
            let left = allowed.saturating_sub(runs - off_schedule);
            // With `each`, events during a run raise this limit without need, and W7 tells exactly which runs have one.
            let left = (periodic || planned.when.repeat() == Repeat::Once).then_some(left);
            let counted = (*runs_since_manual_start).min(most + 2);
            print.add((left, (runs - off_schedule).min(most + 1), counted));
        }
        print.add(queue);
        print.add(((*fires).min(1), (*runs_at_shutdown).min(2), pending, holds, left, has_begun));
        print.option(*triggered, |print, serial| print.order(Order::Generation, model_serial(serial)));
        if let Some((timeout, (at, _))) = hook_limit.zip(*stopping).filter(|_| !left) {
            print.age(at, timeout);
        }
        if let Some(run) = run.as_ref().filter(|run| *left && run.stopped.is_none()) {
            let free_at = free_at.map_or(*deregister_deadline, |at| at.min(*deregister_deadline));
            // The stop timeout is the same in every state of a plan.
            let drained = free_at + drain.unwrap_or_else(|| planned.stop.drain.longest(Duration::ZERO));
            print.time(drain_done.map_or(drained, |done| done.min(drained)));
            print.option(*drain_run, |print, run| print.name(Name::Check, run.0));
            // A confirmation counts once, and not after the deadline.
            print.add((self.free_at.is_some(), run.killed.is_some()));
        }
        print.option(*restart_due, Fingerprint::time);
        let backoff = planned.backoff.map(|backoff| backoff.initial).unwrap_or_default();
        print.option(*triggered_itself, |print, at| print.age(at, backoff));
        let backoff = planned.backoff.filter(|_| planned.restarts != Restarts::Limited(0));
        print.add(backoff.map(|backoff| {
            let doublings = (0..31).find(|n| backoff.initial * (1 << n) >= backoff.max).unwrap_or(31);
            early.map(|early| early.min(doublings + 2))
        }));
        if let Some(longest) =
            planned.health.iter().flat_map(|it| &it.checks).map(|it| it.interval.max(it.start_period)).max()
        {
            print.age(*begun, longest);
        }
        if let Some(pace) = planned.health.as_ref().and_then(|health| health.heartbeat) {
            print.age(*last_heartbeat, pace);
        }
        if planned.ready.as_ref().is_some_and(|ready| ready.watchdog().is_some()) {
            print.time(*epoch);
        }
        print.option(run.as_ref(), |print, run| {
            let durations = backoff.map(|backoff| backoff.reset).into_iter().chain(planned.timeout);
            run.fingerprint(durations.max().unwrap_or_default(), print);
        });
    }
}

impl CheckModel {
    fn fingerprint(&self, planned: &Check, active: bool, print: &mut Fingerprint) {
        let Self { running, canceled, began, passed, passes, passes_in_a_row, fails, early_fails, due } =
            self;
        print.option(*running, |print, run| print.name(Name::Check, run.0));
        print.add(canceled);
        if !active {
            // Checks that begin forget all this.
            return;
        }
        if running.is_some() && !canceled {
            print.age(*began, planned.interval.max(planned.timeout));
        }
        // From some number on, all delays are the interval.
        let delay = |n: u32| Duration::from_millis(100) * (1 << n);
        let longest = (0..20).find(|n| delay(*n) >= planned.interval).unwrap_or(20);
        print.add((passed, (*fails).min(planned.failures), (!passed).then_some((*early_fails).min(longest))));
        print.add((passes, (*passes_in_a_row).min(planned.successes)));
        print.option(*due, Fingerprint::time);
    }
}

impl RunModel {
    /// `longest` is the longest duration that its age is compared with.
    fn fingerprint(&self, longest: Duration, print: &mut Fingerprint) {
        let Self {
            run,
            variables,
            exec_by,
            started,
            off_schedule,
            by_stop_event,
            is_hook,
            replaced,
            stopped,
            stop_timeout,
            escalated,
            stop_adjusted,
            killed,
            first_killed,
            ticks_from,
            timed_out,
            killed_for_reload,
            outlived,
            notices,
            // As many as the notices say.
            ready_sent: _,
        } = self;
        print.name(Name::Run, run.0);
        print.add(variables);
        if started.is_none() {
            print.time(*exec_by);
        }
        print.option(*started, |print, at| print.age(at, longest));
        print.option(*first_killed, |print, at| print.age(at, ABANDON_TIMEOUT));
        for time in [replaced, stopped] {
            print.option(*time, |print, at| print.age(at, *stop_timeout));
        }
        print.add((
            stop_timeout,
            escalated,
            killed.is_some(),
            timed_out,
            is_hook,
            killed_for_reload,
            outlived,
        ));
        print.add((off_schedule, stop_adjusted, by_stop_event));
        print.list(notices, |print, (_, notice)| print.add(std::mem::discriminant(notice)));
        print.option(*ticks_from, Fingerprint::time);
        print.option(self.alive(), Fingerprint::time);
    }
}
