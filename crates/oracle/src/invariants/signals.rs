//! P3–P6, S2, S4, S9, H8: signals to runs, and runs that end because of them.

use std::time::Duration;

use containerpilot_core::effect::KillReason;
use containerpilot_core::ids::RunId;
use containerpilot_core::input::{ExitStatus, Remains, StartErrorKind};
use containerpilot_core::plan::{Escalation, OnUnhealthy, Signal, StopScope};
use containerpilot_core::{Phase, StopStage, Time};

use super::fixed_times::ABANDON_TIMEOUT;
use super::model::RunModel;
use super::oracle::{Check, Oracle};
use super::repetition::met_tick_at;

impl Oracle<'_> {
    /// S9: only stop signals may be for the process alone, and never SIGKILL.
    pub(super) fn see_scope(
        &self,
        run: RunId,
        signal: Signal,
        scope: StopScope,
        reason: KillReason,
    ) -> Check {
        let Some(job) = self.job_of(run) else { return Ok(()) };
        let is_stop = matches!(reason, KillReason::Stop | KillReason::Unhealthy | KillReason::Escalation);
        let alone = is_stop && signal != Signal::KILL && self.plan.jobs[job].stop.scope == StopScope::Process;
        if alone == (scope == StopScope::Process) {
            return Ok(());
        }
        self.job_violation("S9", job, &format!("signal {} for {reason:?} to {scope:?}", signal.0))
    }

    /// A signal is sent to a run. The reason it gives must be true.
    pub(super) fn see_signal(
        &mut self,
        run: RunId,
        signal: Signal,
        reason: KillReason,
        phase: Phase,
    ) -> Check {
        let Some(job) = self.job_of(run) else {
            return Err(self.violation("P4", "a signal to a run that has ended"));
        };
        let (plan, now, exact) = (self.plan, self.now, self.exact);
        let planned = &plan.jobs[job];
        let stopping = self.jobs[job].stopping.is_some();
        // Before it started to stop, in the same step, it was right to replace it.
        let was_up = self.previous[job].stop_stage.is_none();
        let unhealthy = self.seen[job].unhealthy > 0
            && planned.health.as_ref().is_some_and(|health| health.on_unhealthy == OnUnhealthy::Restart);
        let (runs, from) = (self.jobs[job].runs - self.jobs[job].off_schedule, self.jobs[job].ticks_from);
        let late_for_reload = self.is_late_for_reload(job);
        let kill_after = planned.stop.kill_after.unwrap_or(Duration::MAX).min(plan.stop_timeout);
        let asked = |model: &RunModel| {
            model.stopped.is_some() || model.killed.is_some() || model.outlived || model.is_hook
        };
        let all_asked = self.jobs.iter().filter_map(|job| job.run.as_ref()).all(asked);
        let deadlines = self.shutdown_deadlines();
        let Some(model) = &mut self.jobs[job].run else { return Ok(()) };
        let same = |due: Time| if exact { due == now } else { due <= now };
        let (rule, right) = match reason {
            KillReason::Stop => ("S2", signal == planned.stop.signal && stopping && model.stopped.is_none()),
            KillReason::Unhealthy => {
                let first = model.replaced.is_none() && model.stopped.is_none();
                ("H8", signal == planned.stop.signal && unhealthy && was_up && first)
            }
            KillReason::Timeout => {
                let timeout = Self::timeout_of(planned, model).is_some_and(same);
                let met = met_tick_at(planned, from, runs, model).is_some_and(same);
                ("P5", signal == Signal::KILL && (timeout || met) && !model.timed_out)
            }
            KillReason::StopTimeout => {
                let mut asked = [model.replaced, model.stopped].into_iter().flatten();
                // R5: the times of a stop that a reload has changed are not known, only their limit.
                let late = asked.any(|asked| same(asked + model.stop_timeout)) || late_for_reload;
                let late = late || model.stop_adjusted;
                ("S2", signal == Signal::KILL && late && model.started.is_some())
            }
            KillReason::KillAll => {
                let at_once = self.killing == Some(now) && model.started.is_some();
                // A second stop signal kills without asking (S1).
                let by_timeout = exact && deadlines.is_some_and(|deadlines| deadlines.kill_by <= now);
                let in_order = !by_timeout || all_asked;
                ("S4", signal == Signal::KILL && phase == Phase::Killing && at_once && in_order)
            }
            KillReason::Escalation => {
                // The times of all signals follow from the first one.
                let asked = model.stopped.or(model.replaced);
                let next = planned.stop.escalation.get(model.escalated);
                let sent = &planned.stop.escalation[..planned.stop.escalation.len().min(model.escalated)];
                let elapsed: Duration = sent.iter().map(|sent| sent.after).sum();
                let right = next.zip(asked).is_some_and(|(next, asked)| {
                    let due = asked + elapsed + next.after;
                    signal == next.signal && same(due) && elapsed + next.after < model.stop_timeout
                });
                let sends = |next: &Escalation| next.signal == signal;
                ("S9", right || model.stop_adjusted && planned.stop.escalation.iter().any(sends))
            }
            // The schedules have no locks.
            KillReason::LockLost => ("D14", false),
            KillReason::ByHand => ("X2", true),
            KillReason::Forwarded => ("S7", plan.pass_signals),
        };
        match reason {
            KillReason::Stop => {
                (model.stopped, model.stop_timeout, model.escalated) = (Some(now), kill_after, 0);
            }
            KillReason::Unhealthy => {
                (model.replaced, model.stop_timeout, model.escalated) = (Some(now), kill_after, 0);
                self.seen[job].replaced = true;
            }
            // A reload may have changed the global stop timeout.
            KillReason::Escalation => {
                let asked = model.stopped.or(model.replaced).unwrap_or(now);
                (model.stop_timeout, model.escalated) =
                    (kill_after.max(now.since(asked)), model.escalated + 1);
            }
            KillReason::Timeout => model.timed_out = true,
            KillReason::StopTimeout => model.killed_for_reload |= late_for_reload,
            KillReason::LockLost | KillReason::KillAll | KillReason::ByHand | KillReason::Forwarded => {}
        }
        if signal == Signal::KILL {
            model.killed = Some(now);
            model.first_killed = model.first_killed.or(Some(now));
        }
        if !right {
            let what = format!("signal {} for {reason:?} without a reason, or twice", signal.0);
            return self.job_violation(rule, job, &what);
        }
        Ok(())
    }

    /// P3: a start is given up, because it takes too long or because its run is killed. The run ends with that.
    pub(super) fn see_cancel_start(&mut self, run: RunId) -> Check {
        let (now, exact) = (self.now, self.exact);
        let same = |due: Time| if exact { due == now } else { due <= now };
        let Some(job) = self.job_of(run) else {
            return Err(self.violation("P3", "a start is given up that is not in progress"));
        };
        let Some(model) = &self.jobs[job].run else { return Ok(()) };
        if model.started.is_some() {
            return self.job_violation("P3", job, "its start is given up, although its program was executed");
        }
        let timed_out = self.start_pending == Some(run) && same(model.exec_by);
        let asked = model.stopped.map(|asked| asked + model.stop_timeout);
        let due = asked.filter(|due| same(*due));
        let due = due.or(Some(now).filter(|_| model.stop_adjusted));
        let killed = due.is_some() || self.killing == Some(now) || self.is_late_for_reload(job);
        if !timed_out && !killed {
            return self.job_violation("P3", job, "its start is given up without a reason");
        }
        let was_stopping = self.previous[job].stop_stage == Some(StopStage::Terminate);
        self.see_end(run, StartErrorKind::Other.status(), &Remains::Nothing, false);
        // A run that is killed has been told to stop. An input counts before a deadline.
        self.jobs[job].was_terminated = was_stopping || killed && !timed_out;
        Ok(())
    }

    pub(super) fn see_kill_orphans(&mut self, run: RunId, phase: Phase) -> Check {
        let Some(due) = self.orphans.remove(&run) else {
            return Err(
                self.violation("P4", format!("run {} has no orphans, or they were killed already", run.0))
            );
        };
        let ending = matches!(phase, Phase::Killing | Phase::Exited);
        if due > self.now && !ending {
            return Err(self.violation("P4", format!("the orphans of run {} are killed too early", run.0)));
        }
        Ok(())
    }

    /// P6, S14: a run, or what is left of it, is abandoned if SIGKILL has not ended it in time. It counts as an exit on SIGKILL.
    pub(super) fn see_abandon(&mut self, run: RunId) -> Check {
        let Some(job) = self.job_of(run) else {
            return Err(self.violation("P6", format!("run {} is abandoned, and is over already", run.0)));
        };
        let killed = self.jobs[job].run.as_ref().and_then(|run| run.first_killed);
        let due = killed.map(|killed| killed + ABANDON_TIMEOUT);
        if due.is_none_or(|due| if self.exact { due != self.now } else { due > self.now }) {
            return self.job_violation("P6", job, "it is abandoned at the wrong time");
        }
        if self.jobs[job].run.as_ref().is_some_and(|run| run.outlived) {
            // S14: only the rest of it. `KillOrphans` follows.
            self.see_gone(run);
            self.orphans.insert(run, self.now);
            return Ok(());
        }
        self.see_end(run, ExitStatus::Signal(Signal::KILL), &Remains::Nothing, true);
        Ok(())
    }
}
