//! Random stop signals, and signals that jobs wait for (S8).

use std::time::Duration;

use containerpilot_core::event::Source;
use containerpilot_core::plan::{EventPattern, FirstTick, Plan, Signal, Trigger};
use containerpilot_core::rng::Rng;

use super::times::time;
use crate::scenario::Action;

/// SIGINT, SIGQUIT, SIGUSR2, SIGALRM, SIGTERM, SIGWINCH and two real-time signals.
const SIGNALS: [Signal; 8] =
    [Signal::INT, Signal::QUIT, Signal::USR2, Signal(14), Signal::TERM, Signal(28), Signal(40), Signal(41)];

/// Changes the stop signals of a plan. Jobs wait only for other signals: both is an error of the configuration.
pub(super) fn change(rng: &mut Rng, plan: &mut Plan) {
    let count = rng.pick(&[1, 2, 2, 3]);
    let mut stop_on = Vec::new();
    for _ in 0..count {
        let signal = if rng.percent(10) { Signal::HUP } else { rng.pick(&SIGNALS) };
        if !stop_on.contains(&signal) {
            stop_on.push(signal);
        }
    }
    let others: Vec<Signal> = SIGNALS.into_iter().filter(|signal| !stop_on.contains(signal)).collect();
    // The same for all jobs, since replicas are made from their definition.
    let mut replaced = |old: Signal| {
        let new = others[rng.index(others.len())];
        (old, if stop_on.contains(&old) || rng.percent(50) { new } else { old })
    };
    let replaced = [Signal::HUP, Signal::USR2].map(&mut replaced);
    let templates = plan.replicas.iter_mut().map(|group| &mut group.template);
    for event in plan.jobs.iter_mut().chain(templates).flat_map(|job| patterns(&mut job.when.trigger)) {
        if let Source::Signal(signal) = &mut event.source
            && let Some((_, new)) = replaced.iter().find(|(old, _)| old == signal)
        {
            *signal = *new;
        }
    }
    plan.stop_on = stop_on;
}

fn patterns(trigger: &mut Trigger) -> Vec<&mut EventPattern> {
    match trigger {
        Trigger::Event { event, .. } => vec![event],
        Trigger::All { conditions, .. } | Trigger::Any { conditions, .. } => conditions.iter_mut().collect(),
        Trigger::Interval { first: FirstTick::AtEvent(event) | FirstTick::IntervalAfter(event), .. }
        | Trigger::Cron { after: Some(event), .. } => vec![event],
        Trigger::Interval { .. } | Trigger::Cron { .. } | Trigger::Manual | Trigger::Never => Vec::new(),
    }
}

/// Any of these signals.
pub(super) fn signals(rng: &mut Rng) -> Vec<(Duration, Action)> {
    let count = rng.pick(&[1, 2, 4]);
    let one = |rng: &mut Rng| {
        let at = time(rng, &[0, 1, 10, 50, 99, 100, 101, 200, 500, 1_000, 2_000]);
        (at, Action::Signal(rng.pick(&SIGNALS)))
    };
    (0..count).map(|_| one(rng)).collect()
}
