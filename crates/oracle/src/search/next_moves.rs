//! Everything that can happen next in a state.

use containerpilot_core::Readiness;
use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::ExitStatus;

use super::moves::Move;
use super::node::Node;
use super::plans::signal_of;
use super::world::Program;
use crate::scenario::Scenario;

/// How a program fails by itself.
const FAILURE: ExitStatus = ExitStatus::Code(3);

impl Node<'_> {
    /// Everything that can happen next.
    #[must_use]
    pub fn moves(&self, scenario: &Scenario) -> Vec<Move> {
        let mut moves = Vec::new();
        let world = &self.world;
        for (run, program) in &world.runs {
            self.moves_of(*run, *program, &mut moves);
        }
        moves.extend(world.inspected.iter().map(|run| Move::StartPending(*run)));
        self.notices(&mut moves);
        for (check, cancelled) in &world.checks {
            moves.push(Move::Checked(*check, false));
            if !cancelled {
                moves.push(Move::Checked(*check, true));
            }
        }
        moves.extend(world.rests.iter().map(|run| Move::Gone(*run)));
        moves.extend(world.leaving.iter().map(|job| Move::Deregistered(*job)));
        // The runtime answers before it waits for anything else.
        if self.has_timer() && world.inspected.is_empty() {
            moves.push(Move::Timer);
            // A moment between two timers: what starts now has timers of its own between theirs.
            if world.faults > 0 && !world.terminated {
                moves.push(Move::Pause);
            }
            if world.faults > 0 && self.core.next_deadline() > Some(self.now) {
                moves.push(Move::Race);
            }
        }
        if !world.ready {
            moves.push(Move::Ready);
        }
        if !world.terminated {
            moves.push(Move::Terminate);
        } else if !world.interrupted {
            moves.push(Move::Interrupt);
        }
        if world.outside > 0 && (world.ready || !world.early) {
            self.moves_from_outside(scenario, &mut moves);
        }
        moves
    }

    fn moves_of(&self, run: RunId, program: Program, moves: &mut Vec<Move>) {
        let faults = self.world.faults > 0;
        match program {
            Program::Starting(signal) => {
                moves.push(Move::Started(run));
                moves.extend(signal.map(|signal| Move::KilledBeforeExec(run, signal)));
                if faults {
                    moves.push(Move::StartFailed(run));
                }
            }
            Program::Running(signal) => {
                // A process that was sent a signal may have exited by itself just before.
                moves.push(Move::Exited(run, ExitStatus::Code(0), false));
                moves.push(Move::Exited(run, FAILURE, false));
                if let Some(signal) = signal {
                    moves.push(Move::Exited(run, ExitStatus::Signal(signal), false));
                }
                if faults {
                    moves.push(Move::Exited(run, ExitStatus::Code(0), true));
                }
            }
        }
    }

    /// What processes say about themselves (H11).
    fn notices(&self, moves: &mut Vec<Move>) {
        for job in (0..self.core.plan().jobs.len()).map(JobIx::at) {
            let status = self.core.status(job);
            match (status.run, status.readiness) {
                (Some(run), Some(Readiness::Starting)) => moves.push(Move::SaysReady(run)),
                (Some(run), Some(Readiness::Ready)) if self.world.faults > 0 => {
                    moves.push(Move::SaysStopping(run));
                }
                _ => {}
            }
        }
    }

    fn moves_from_outside(&self, scenario: &Scenario, moves: &mut Vec<Move>) {
        // During a shutdown all of these are ignored or refused, which one of them shows.
        if self.world.terminated {
            return moves.push(Move::Start(JobIx(0)));
        }
        let plan = self.core.plan();
        let waits_for_signal = plan.jobs.iter().flat_map(|job| job.when.patterns());
        for signal in waits_for_signal.filter_map(signal_of).take(1) {
            moves.push(Move::Signal(signal));
        }
        if !plan.watches.is_empty() {
            moves.push(Move::Instance(!self.world.instance));
        }
        if plan.jobs.iter().any(|job| job.health.is_some()) {
            moves.push(Move::Maintenance(!self.world.maintenance));
        }
        for job in (0..plan.jobs.len()).map(JobIx::at) {
            moves.extend([Move::Start(job), Move::Stop(job), Move::Restart(job)]);
        }
        let is_configured = |version: &usize| scenario.versions[*version].scaled_from.is_none();
        moves.extend((0..scenario.versions.len()).filter(is_configured).map(Move::Reload));
        if !plan.replicas.is_empty() {
            moves.extend([1, 2, 3].map(Move::Scale));
        }
    }
}
