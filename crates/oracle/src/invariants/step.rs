//! A step of the core: its parts are observed and checked one by one, then the step as a whole.

use containerpilot_core::effect::Effect;
use containerpilot_core::event::Source;
use containerpilot_core::ids::JobIx;
use containerpilot_core::input::Input;
use containerpilot_core::plan::Signal;
use containerpilot_core::state::journal::Origin;
use containerpilot_core::{Core, JobStatus, Phase, State, Time};

use super::model::Seen;
use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    /// One step of the core, with a check of each of its parts.
    ///
    /// # Errors
    /// The rule that was broken. The step is complete then, too.
    pub fn step(&mut self, core: &mut Core, now: Time, input: &Input, effects: &mut Vec<Effect>) -> Check {
        self.before(now, core);
        core.begin(now, input.clone(), effects);
        let mut checked = self.part(Some(input), effects, core);
        while core.advance(effects) {
            if checked.is_ok() {
                checked = self.part(None, effects, core);
            }
        }
        checked?;
        self.after(input, effects, core)
    }

    /// Observes the core before a step.
    fn before(&mut self, now: Time, core: &Core) {
        self.now = self.now.max(now);
        (self.phase_before, self.phase) = (core.phase(), core.phase());
        self.stop_on.clone_from(&self.plan.stop_on);
        self.maintenance_before = self.maintenance;
        self.see_pause();
        self.before.clear();
        self.before.extend(statuses(core));
        self.previous.clone_from(&self.before);
        (self.effects_seen, self.reloading.done, self.reloading.moved) = (0, None, None);
        self.events.clear();
        self.released.clear();
        self.seen.clear();
        self.seen.extend(self.jobs.iter().map(|job| Seen { had_run: job.run.is_some(), ..Seen::default() }));
    }

    /// Checks a part of a step. The first part has the input.
    fn part(&mut self, input: Option<&Input>, effects: &[Effect], core: &Core) -> Check {
        self.reloading.changing = false;
        self.generations_before = self.generations;
        self.find_late_jobs();
        let new = effects.get(self.effects_seen..).unwrap_or_default();
        self.effects_seen = effects.len();
        let mut switched = false;
        if let Some(moves) = new.iter().find_map(|effect| match effect {
            Effect::PlanReplaced { moves, .. } => Some(moves),
            _ => None,
        }) {
            self.switch_plan(moves, core)?;
            for (_, jobs) in &mut self.rolling {
                *jobs = jobs.iter().filter_map(|job| moves.job(*job)).collect();
            }
            switched = true;
        }
        let mut after = std::mem::take(&mut self.spare);
        after.clear();
        after.extend(statuses(core));
        let quiet = input.is_none() && new.is_empty() && core.phase() == self.phase;
        if quiet && !self.has_new_events(core) && after == self.previous {
            self.spare = after;
            return Ok(());
        }
        self.check_unreachable(&after)?;
        for seen in &mut self.seen {
            (seen.ends_now, seen.ran_within_part, seen.leaves_catalog_now) = (false, false, false);
        }
        if let Some(input) = input {
            self.see_input(input);
        }
        if core.phase() != Phase::Starting {
            self.see_early_requests();
        }
        if core.phase() == Phase::Terminating && self.terminating.is_none() {
            self.terminating = Some(self.now);
        }
        if core.phase() == Phase::Killing && self.killing.is_none() {
            self.killing = Some(self.now);
        }
        for effect in new {
            match effect {
                Effect::Abandon { run } => self.see_abandon(*run)?,
                Effect::KillOrphans { run } if self.job_of(*run).is_some() => self.see_abandon(*run)?,
                Effect::CancelStart { run } => self.see_cancel_start(*run)?,
                _ => {}
            }
        }
        let known = self.events.len();
        self.take_events(core)?;
        for nth in known..self.events.len() {
            let event = self.events[nth];
            self.see_event(&event, input, &after)?;
        }
        self.check_watch_events(known)?;
        if switched {
            self.see_smaller_groups(&after);
        }
        for (job, status) in after.iter().enumerate() {
            self.see_new_generation(job, status)?;
            if self.jobs[job].generation != status.generation {
                return self.job_violation("W9", job, "it has more generations than ends");
            }
        }
        self.end_epochs(&after);
        self.begin_epochs(input, &after);
        for (nth, effect) in new.iter().enumerate() {
            self.see_effect(effect, core.phase(), &after)?;
            if matches!(effect, Effect::Exit(_)) && nth + 1 != new.len() {
                return Err(self.violation("S4", "an effect follows the exit"));
            }
        }
        self.check_acted(new, &after)?;
        self.check_adjusted(&after)?;
        for job in 0..after.len() {
            self.check_leaving(job, &after, core.phase())?;
            self.check_hooks_of_new_generation(job, &after)?;
            let model = &mut self.jobs[job];
            model.is_spaced |= after[job].state == State::Delaying && model.runs == 0;
        }
        self.spare = std::mem::replace(&mut self.previous, after);
        (self.phase, self.maintenance_before) = (core.phase(), self.maintenance);
        self.see_pause();
        Ok(())
    }

    /// Checks a complete step.
    fn after(&mut self, input: &Input, effects: &[Effect], core: &Core) -> Check {
        let after = std::mem::take(&mut self.previous);
        let phase = core.phase();
        let most = 60 + 40 * self.plan.jobs.len().max(self.before.len());
        let orphans = effects.iter().filter(|effect| matches!(effect, Effect::KillOrphans { .. })).count();
        if effects.len() - orphans > most {
            return Err(self.violation("core", format!("{} effects in one step", effects.len())));
        }
        let deadlines = core.timer_count();
        if phase != Phase::Exited && deadlines > self.most_deadlines() + self.orphans.len() {
            return Err(self.violation("core", format!("{deadlines} deadlines")));
        }
        self.check_answers(input, effects, &after, phase)?;
        self.check_reloads(&after, phase)?;
        self.check_answers_reported(phase)?;
        self.check_shutdown(input, phase, &after)?;
        self.check_signal(input)?;
        let replaced = effects.iter().any(|effect| matches!(effect, Effect::PlanReplaced { .. }));
        for (nth, status) in after.iter().enumerate() {
            // After a reload the entries of this step may be about other indices. A job that triggers itself is delayed
            // for another run (W14), not for a restart.
            let restarts = status.state == State::Delaying && !replaced && !self.is_in_ring(nth);
            if self.seen[nth].failed_finally && restarts {
                return self.job_violation("L7", nth, "a run that is restarted is logged as the last one");
            }
            self.check_state(nth, status)?;
            self.check_runs(nth, &after, phase)?;
            self.check_requirements(nth, &after, phase)?;
            self.check_health(nth, status, phase)?;
            self.check_advertised(nth, status, phase)?;
            self.check_stop(nth, &after, phase)?;
        }
        self.check_rolling_restarts(phase)?;
        self.check_reachability(&after, phase)?;
        self.check_all_done(&after, phase)?;
        self.check_deadlock(core, &after)?;
        self.previous = after;
        Ok(())
    }

    /// S8, W3: a signal that jobs may wait for is an event.
    fn check_signal(&self, input: &Input) -> Check {
        let Input::Signal(signal) = *input else { return Ok(()) };
        if self.phase_before != Phase::Running || self.reloading.done.is_some() {
            return Ok(());
        }
        let mut patterns = self.plan.jobs.iter().flat_map(|job| job.when.patterns());
        let is_awaited = patterns.any(|event| event.source == Source::Signal(signal));
        let toggles = signal == Signal::USR1 && self.plan.legacy_maintenance;
        let has_meaning = self.plan.pass_signals || self.is_stop_signal(input) || toggles;
        let expected = !has_meaning && (matches!(signal, Signal::HUP | Signal::USR2) || is_awaited);
        if self.events.iter().any(|event| event.origin == Origin::Signal(signal)) == expected {
            return Ok(());
        }
        Err(self.violation("S8", format!("{signal} is an event, and should not be, or the other way round")))
    }

    fn most_deadlines(&self) -> usize {
        let checks: usize = self.jobs.iter().map(|job| job.checks.len()).sum();
        5 * self.jobs.len() + 2 * checks + 3
    }
}

/// The status of every job.
fn statuses(core: &Core) -> impl Iterator<Item = JobStatus> + '_ {
    (0..core.plan().jobs.len()).map(|nth| core.status(JobIx::at(nth)))
}
