//! The fingerprint of a supervisor.

use alloc::format;

use crate::ids::JobIx;
use crate::input::Input;
use crate::request::Request;
use crate::state::exit_codes::{ExitCodes, ExitReason};
use crate::state::fingerprint::{Fingerprint, Name};
use crate::state::shutdown_deadlines::ShutdownDeadlines;
use crate::supervisor::plan_state::{Parts, PlanState};
use crate::supervisor::{Core, PendingReload, SAME_REQUEST};

impl Core {
    /// Adds everything that decides the future of this supervisor, except for the current plan and the one of
    /// a pending reload, which the caller must add. Only for a state between two steps.
    pub fn fingerprint(&self, print: &mut Fingerprint) {
        let Self {
            plan_state,
            now: _,
            clock: _,
            asleep,
            phase,
            maintenance,
            timers,
            starts,
            shutdown_timer,
            shutdown_deadlines,
            effects,
            orphans,
            oom_kills,
            exit_codes,
            // Logged only.
            ignored_signals: _,
            stop_signal,
            early_inputs,
            queue,
            // Set only during a step.
            acting: _,
            shutdown_due: _,
            current_event: _,
            // These only report.
            journal: _,
            // The text of environments.
            watch_changes: _,
            event_counts: _,
            removed_sources: _,
            // Any number that is not in use has the same effect.
            last_ids: _,
            reload,
            rolling_restart,
            telemetry_error,
            manager,
        } = self;
        let telemetry_failed = telemetry_error.is_some();
        print.add((phase, manager, maintenance, effects.len(), oom_kills, queue.len(), telemetry_failed));
        // A code that is decided wins, and stays decided.
        let ExitCodes { decided, first_failure, first_hook_failure, has_worked } = exit_codes;
        let code = |reason: &Option<ExitReason>| reason.as_ref().map(|reason| reason.code);
        let failures = (code(first_failure), code(first_hook_failure));
        print.add((code(decided), decided.is_none().then_some((failures, has_worked))));
        // The times of a schedule are those of the system clock (W15).
        let has_cron = self.plan().has_cron();
        print.add(has_cron.then(|| self.unix_now()));
        print.add(asleep);
        timers.fingerprint(print);
        if 2 * self.plan().most_processes() > starts.most() {
            // With fewer processes, none ever waits.
            starts.fingerprint(self.now, print);
        }
        print.option(*shutdown_timer, |print, timer| timer.fingerprint(print));
        print.option(
            *shutdown_deadlines,
            |print, ShutdownDeadlines { signal_by, kill_by, longest: _, without_hooks: _ }| {
                print.time(signal_by);
                print.time(kill_by);
            },
        );
        print.list(orphans.iter(), |print, (run, timer)| {
            print.name(Name::Run, run.0);
            timer.fingerprint(print);
        });
        print.option(*stop_signal, |print, (signal, at)| {
            print.add(signal);
            print.age(at, SAME_REQUEST);
        });
        print.list(early_inputs, |print, input| match input {
            Input::Request { id, request: Request::Reload(_) } => print.add(("reload", id)),
            input => print.add(format!("{input:?}")),
        });
        print.option(reload.as_ref(), |print, pending| {
            let PendingReload { plan: _, renews_variables, requests, timer } = pending;
            print.add(renews_variables);
            print.list(requests, |print, request| print.name(Name::Request, request.0));
            print.option(*timer, |print, timer| timer.fingerprint(print));
        });
        print.option(rolling_restart.as_ref(), |print, rolling| rolling.fingerprint(print));
        plan_state.fingerprint(print);
    }
}

impl PlanState {
    fn fingerprint(&self, print: &mut Fingerprint) {
        let Self {
            plan,
            // Follows from the plan.
            graph,
            jobs,
            health,
            parts: Parts { watches, files, locks },
            // The text of environments. Which processes run is in `jobs`.
            variables: _,
            runs,
            check_runs,
            recheck,
            start_again,
            // Empty between two steps.
            unhealthy: _,
            actions,
            // Follows from `jobs`.
            waiting: _,
            reachability_dirty,
            // Only the log depends on it.
            deadlock_reported: _,
            holding_open,
            incomplete,
            // Follows from the plan.
            secondary: _,
            startup_only_for,
        } = self;
        print.list(jobs.iter().zip(&plan.jobs).enumerate(), |print, (index, (job, planned))| {
            job.fingerprint(planned, graph.is_in_ring(JobIx::at(index)), print);
        });
        watches.fingerprint(print);
        files.fingerprint(print);
        locks.fingerprint(print);
        health.fingerprint(plan, print);
        print.add((recheck, start_again, reachability_dirty, holding_open, incomplete));
        print.add((startup_only_for, actions));
        print.named(Name::Run, runs.iter().map(|(run, job)| (run.0, job)));
        print.named(Name::Check, check_runs.iter().map(|(run, place)| (run.0, place)));
    }
}
