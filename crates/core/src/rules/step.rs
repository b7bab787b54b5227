//! A step: one input, and everything that follows from it.
//!
//! First the input, and then the deadlines that have passed: whoever is late must not kill a process whose end
//! it is just being told. Each may queue events, and the queue is drained before the next (`dispatch.rs`). When it is
//! empty, whatever has become hopeless is given up (W10), jobs that wait for hooks go on (S2), plans change places
//! (R3), and the whole ends when the last job is complete. Nothing waits for anything outside.
//!
//! A step is made of parts, and whoever wants to look on (the simulator does) can make them one by one.

use alloc::vec::Vec;

use crate::effect::Effect;
use crate::ids::JobIx;
use crate::input::Input;
use crate::plan::Level;
use crate::rules::command::Command;
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::TimerKind;
use crate::time::Time;

impl Core {
    /// Takes note of something that has happened, and says what is to be done about it.
    pub fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        self.begin(now, input, effects);
        while self.advance(effects) {}
    }

    /// The first part of a step: the input itself. [`Core::advance`] must follow until it says that nothing is left.
    pub fn begin(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Left {
            return;
        }
        // What a step had decided that a fault has cut short: whoever survives that must not lose it.
        effects.append(&mut self.effects);
        core::mem::swap(&mut self.effects, effects);
        self.now = self.now.max(now);
        self.handling = None;
        if self.phase == Phase::Beginning && self.can_wait(&input) {
            self.early.push_back(input);
        } else {
            self.input(input);
        }
        core::mem::swap(&mut self.effects, effects);
    }

    /// The next part of a step, as small as what it does can be told apart. Says whether there was one.
    pub fn advance(&mut self, effects: &mut Vec<Effect>) -> bool {
        core::mem::swap(&mut self.effects, effects);
        let more = self.phase != Phase::Left && self.part();
        core::mem::swap(&mut self.effects, effects);
        more
    }

    fn part(&mut self) -> bool {
        if !self.queue.is_empty() {
            self.drain_events();
        } else if self.phase != Phase::Beginning
            && let Some(input) = self.early.pop_front()
        {
            // Before anything is concluded from there being nothing to do.
            self.handling = None;
            self.input(input);
        } else if let Some(job) = self.pending_restarts.pop_front() {
            self.live_again(job);
        } else if let Some(job) = self.recheck.pop() {
            self.settle(job);
        } else if self.conclude() {
            return true;
        } else if self.phase != Phase::Left
            && let Some(alarm) = self.timers.due(self.now)
        {
            self.handling = None;
            self.alarm(alarm);
        } else {
            return false;
        }
        true
    }

    /// Whether an input means something only after the startup.
    fn can_wait(&self, input: &Input) -> bool {
        match input {
            Input::Instances { .. } => true,
            Input::Command { command, .. } => {
                !matches!(command, Command::Maintenance(_) | Command::SetVariables(_))
            }
            Input::Signal(signal) => !self.plan.pass_signals && matches!(signal.0, 1 | 12),
            Input::Ready
            | Input::Started { .. }
            | Input::StartFailed { .. }
            | Input::Exited { .. }
            | Input::OutOfMemory { .. }
            | Input::CheckDone { .. }
            | Input::Withdrawn { .. }
            | Input::Tick => false,
        }
    }

    /// What this and [`Core::part`] choose between are functions of their own (`inline(never)`): a signal, for which somebody
    /// waits, then brings no other's code into memory.
    fn input(&mut self, input: Input) {
        match input {
            Input::Ready => self.ready(),
            Input::Started { run, pid } => self.started(run, pid),
            Input::StartFailed { run, why } => self.start_failed(run, &why),
            Input::Exited { run, status, orphans } => self.exited(run, status, orphans),
            Input::OutOfMemory { processes } => {
                self.out_of_memory = Some(self.out_of_memory.unwrap_or(0).saturating_add(processes));
            }
            Input::CheckDone { check, result } => self.check_done(check, result),
            Input::Instances { watch, instances } => self.instances(watch, instances),
            Input::Signal(signal) => self.signal(signal),
            Input::Withdrawn { job } => self.withdrawn(job),
            Input::Command { id, command } => self.command(id, command),
            Input::Tick => {}
        }
    }

    #[inline(never)]
    fn alarm(&mut self, alarm: TimerKind) {
        match alarm {
            TimerKind::GiveUp(job) => self.give_up(job),
            TimerKind::Turn(job) => self.turn(job),
            TimerKind::RunTimeout(job) => self.run_timeout(job),
            TimerKind::Restart(job) => self.restart_now(job),
            TimerKind::Hooks(job) => self.hooks_late(job),
            TimerKind::Withdrawn(job) => self.withdrawn_late(job),
            TimerKind::Drained(job) => self.terminate(job),
            TimerKind::KillAfterTimeout(job) => self.kill_after_timeout(job),
            TimerKind::Check(job, check) => self.check_due(job, check),
            TimerKind::CheckTimeout(job, check) => self.check_timeout(job, check),
            TimerKind::Heartbeat(job) => self.heartbeat_due(job),
            TimerKind::OrphanedGroup(run) => self.kill_orphans(run),
            TimerKind::Reload => self.reload_late(),
            TimerKind::StopTime => self.kill_everything("the stop time has passed"),
            TimerKind::LastWait => self.leave(),
        }
    }

    #[inline(never)]
    fn settle(&mut self, job: JobIx) {
        if self.is_unreachable(job) {
            self.mark_unreachable(job);
        }
        self.hooks_progress(job);
    }

    /// Ends the whole when there is nothing left to do. Says whether something more follows.
    fn conclude(&mut self) -> bool {
        match self.phase {
            Phase::Running if self.pending.is_some() => self.reload_progress(),
            Phase::Running if self.holding == 0 => {
                self.log(Level::Info, None, format_args!("all jobs are complete"));
                self.shut_down();
                true
            }
            Phase::Stopping | Phase::Killing if self.incomplete == 0 => {
                self.leave();
                false
            }
            Phase::Running if core::mem::take(&mut self.reachability_dirty) => self.mark_unreachable_cycles(),
            Phase::Stopping => self.stop_coprocesses() || (self.runs.is_empty() && self.break_stop_cycle()),
            _ => false,
        }
    }
}
