//! Exhaustive search: every order of everything that can happen to a small plan, up to a number of moves.
//!
//! A [`node::Node`] is a core, the [`Oracle`](crate::invariants::oracle::Oracle) that checks it, and everything
//! that can happen next: processes that start or run, checks, deregistrations, and a few inputs from outside. A
//! [`moves::Move`] is one of these, or the next timer; time passes in no other way, so that every order of inputs
//! and timers is tried. The search goes breadth first and expands each state once; states are compared by
//! fingerprint. The first violation is thus the one with the fewest moves.
//!
//! Every step is checked by the same invariants as a random schedule. In addition:
//!
//! - a state in which nothing can happen any more, except from outside, must be one in which jobs wait for that;
//! - from each state at the end of the search, the supervisor is sent SIGTERM and then nothing happens except for its own
//!   timers: it must exit, in the time that S4 allows. Every other state has such a state, or an exit, after it.

pub mod limits;
pub mod moves;
mod next_moves;
pub mod node;
pub mod plans;
mod report;
mod world;

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use containerpilot_core::Phase;

use self::limits::Limits;
use self::moves::Move;
use self::node::Node;
use self::plans::SmallPlan;
pub use self::report::Failure;
use crate::invariants::oracle::Violation;
use crate::scenario::Scenario;

/// What a search has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Different states.
    pub states: u64,
    /// Steps of the core.
    pub steps: u64,
    /// Steps with which the supervisor exited.
    pub exits: u64,
    /// States in which nothing can happen any more, except from outside.
    pub quiet: u64,
    /// The number of moves after which all states are known.
    pub depth: usize,
    /// True if there are no further states, however many moves are made.
    pub complete: bool,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.states += other.states;
        self.steps += other.steps;
        self.exits += other.exits;
        self.quiet += other.quiet;
    }
}

/// What the searches of several plans have seen.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The sums of all plans.
    pub totals: Totals,
    /// The number of plans.
    pub plans: usize,
    /// How many plans have no further states.
    pub complete: usize,
    /// How many plans were searched to each depth and not further.
    pub depths: BTreeMap<usize, usize>,
    /// The plan with the most states, and how many it has.
    pub largest: (u64, String),
}

impl Summary {
    fn add(&mut self, plan: &SmallPlan, totals: &Totals) {
        self.totals.add(totals);
        self.plans += 1;
        self.complete += usize::from(totals.complete);
        if !totals.complete {
            *self.depths.entry(totals.depth).or_default() += 1;
        }
        self.totals.depth = self.totals.depth.max(totals.depth);
        if totals.states > self.largest.0 {
            self.largest = (totals.states, plan.name.clone());
        }
    }
}

/// Searches several plans, on all processors, up to the first violation of a rule.
///
/// # Errors
/// The violation that was found first.
pub fn search_all(plans: &[SmallPlan], limits: Limits) -> Result<Summary, Box<Failure>> {
    let (next, result) = (AtomicUsize::new(0), Mutex::new(Ok(Summary::default())));
    let result_now = || result.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = search(plan, limits);
            let mut result = result_now();
            match (&mut *result, found) {
                (Ok(summary), Ok(totals)) => summary.add(plan, &totals),
                (result @ Ok(_), Err(failure)) => *result = Err(failure),
                (Err(_), _) => {}
            }
            if result.is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
        work();
    });
    result.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The visited states. A fingerprint is a hash already.
type Visited = HashSet<u128, BuildHasherDefault<FirstWord>>;

#[derive(Default)]
struct FirstWord(u64);

impl Hasher for FirstWord {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for (to, byte) in [0, 8, 16, 24, 32, 40, 48, 56].iter().zip(bytes) {
            self.0 |= u64::from(*byte) << to;
        }
    }
}

/// For each state, the state before it and the move between them.
type Trail = Vec<(u32, Move)>;

/// Searches one plan, up to the first violation of a rule.
///
/// # Errors
/// The violation with the fewest moves, and those moves.
pub fn search(plan: &SmallPlan, limits: Limits) -> Result<Totals, Box<Failure>> {
    let scenario = plan.scenario();
    let failure = |trail: &Trail, last: u32, more: Vec<Move>, violation: Violation| {
        let moves = path(trail, last).into_iter().chain(more).collect();
        Box::new(Failure { plan: plan.clone(), limits, moves, violation })
    };
    let root = Node::new(&scenario, limits);
    let mut totals = Totals { states: 1, ..Totals::default() };
    let mut visited = Visited::default();
    visited.insert(root.fingerprint());
    let mut trail: Trail = vec![(0, Move::Ready)];
    let mut frontier = vec![(root, 0)];
    while totals.depth < limits.depth && !frontier.is_empty() && visited.len() <= limits.states {
        let mut next = Vec::new();
        for (node, id) in frontier.drain(..) {
            for choice in node.moves(&scenario) {
                let mut child = node.clone();
                totals.steps += 1;
                if let Err(violation) = child.apply(choice, &scenario) {
                    return Err(failure(&trail, id, vec![choice], violation));
                }
                if child.phase() == Phase::Exited {
                    totals.exits += 1;
                } else if visited.insert(child.fingerprint()) {
                    match child.is_quiet() {
                        Ok(quiet) => totals.quiet += u64::from(quiet),
                        Err(violation) => return Err(failure(&trail, id, vec![choice], violation)),
                    }
                    next.push((child, u32::try_from(trail.len()).unwrap_or(u32::MAX)));
                    trail.push((id, choice));
                }
            }
        }
        frontier = next;
        totals.depth += 1;
    }
    totals.complete = frontier.is_empty();
    for (node, id) in frontier {
        totals.steps +=
            shut_down(node, &scenario).map_err(|(moves, violation)| failure(&trail, id, moves, violation))?;
    }
    totals.states = visited.len() as u64;
    Ok(totals)
}

/// The most timers of a shutdown in which nothing else happens.
const MAX_SHUTDOWN_STEPS: usize = 100;

/// Sends SIGTERM and then lets timers fire until the supervisor exits. No process reports anything. Returns the number
/// of steps.
fn shut_down(mut node: Node<'_>, scenario: &Scenario) -> Result<u64, (Vec<Move>, Violation)> {
    let mut moves = Vec::new();
    if matches!(node.phase(), Phase::Starting | Phase::Running) {
        moves.push(Move::Terminate);
        node.apply(Move::Terminate, scenario).map_err(|violation| (moves.clone(), violation))?;
    }
    while node.phase() != Phase::Exited {
        if !node.has_timer() || moves.len() > MAX_SHUTDOWN_STEPS {
            let violation = node.violation("S4", "the shutdown waits for something that never happens");
            return Err((moves, violation));
        }
        let choice = node.inspected_start().map_or(Move::Timer, Move::StartPending);
        moves.push(choice);
        node.apply(choice, scenario).map_err(|violation| (moves.clone(), violation))?;
    }
    Ok(moves.len() as u64)
}

/// The moves to a state.
fn path(trail: &Trail, mut id: u32) -> Vec<Move> {
    let mut moves = Vec::new();
    while id != 0 {
        let (before, choice) = trail[id as usize];
        moves.push(choice);
        id = before;
    }
    moves.reverse();
    moves
}
