//! A violation as text: the plan, the moves, and everything that happened.

use std::fmt;

use super::limits::Limits;
use super::moves::Move;
use super::node::Node;
use super::plans::SmallPlan;
use crate::invariants::oracle::Violation;
use crate::runner::timeline;
use crate::shrink::write_job;

/// A broken rule, and the fewest moves that break it.
#[derive(Debug)]
pub struct Failure {
    /// The plan.
    pub plan: SmallPlan,
    /// The limits of the search.
    pub limits: Limits,
    /// The moves.
    pub moves: Vec<Move>,
    /// The violation.
    pub violation: Violation,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, limits, moves, violation } = self;
        let seconds = violation.at.as_nanos() as f64 / 1e9;
        writeln!(out, "{} is broken at {seconds:.6}s: {}", violation.rule, violation.what)?;
        writeln!(
            out,
            "plan `{}`, {} moves; search it again: cargo run -p containerpilot-oracle -- --exhaustive --plans {} \
             --depth {} --outside {} --faults {}",
            plan.name,
            moves.len(),
            plan.name,
            limits.depth,
            limits.outside,
            limits.faults
        )?;
        for (version, plan) in plan.versions.iter().enumerate() {
            writeln!(out, "\nversion {version}, stop timeout {:?}:", plan.stop_timeout)?;
            for (nth, job) in plan.jobs.iter().enumerate() {
                write_job(out, nth, job)?;
            }
        }
        writeln!(out, "\nmoves:")?;
        for choice in moves {
            writeln!(out, "    {choice:?}")?;
        }
        writeln!(out, "\n{}", self.timeline())
    }
}

impl Failure {
    fn timeline(&self) -> String {
        let scenario = self.plan.scenario();
        let mut node = Node::new(&scenario, self.limits);
        let mut text = String::new();
        for choice in &self.moves {
            let shown = node.apply_and_show(*choice, &scenario, |now, input, effects, core| {
                timeline::write(&mut text, now, &format!("{input:?}"), effects, core);
            });
            if shown.is_err() {
                break;
            }
        }
        text
    }
}
