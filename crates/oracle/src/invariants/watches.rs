//! E6: the events of a watch report its answers.

use containerpilot_core::Phase;
use containerpilot_core::event::Code;
use containerpilot_core::ids::WatchIx;
use containerpilot_core::input::Instance;
use containerpilot_core::state::journal::Origin;

use super::answers::Places;
use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    pub(super) fn see_instances(&mut self, watch: usize, instances: &[Instance]) {
        let Some(answers) = self.watches.get_mut(watch) else { return };
        match self.phase_before {
            // Those that come before the startup are handled with it, one by one.
            Phase::Starting => {}
            Phase::Running => answers.new.clear(),
            Phase::Stopping | Phase::Terminating | Phase::Killing | Phase::Exited => return,
        }
        let places = instances.iter().map(|it| (it.id.clone(), it.address.clone(), it.port));
        answers.new.push(places.collect());
    }

    /// Returns true if maintenance mode may have paused watches between answers that are handled in this step.
    fn may_skip_answers(&self) -> bool {
        self.phase_before == Phase::Starting && self.plan.legacy_maintenance
    }

    /// The events of watches in a part of a step, which begin at `first`: each pair reports another answer.
    pub(super) fn check_watch_events(&mut self, first: usize) -> Check {
        let (paused, may_skip) = (self.is_paused(), self.may_skip_answers());
        for watch in 0..self.watches.len() {
            let of_watch =
                self.events[first..].iter().filter(|it| it.origin == Origin::Watch(WatchIx::at(watch)));
            let sent: Vec<Code> = of_watch.map(|event| event.code).collect();
            for pair in sent.chunks(2) {
                let answers = &mut self.watches[watch];
                let reports = |new: &Places| {
                    let health = if new.is_empty() { Code::Unhealthy } else { Code::Healthy };
                    answers.is_changed_by(new) && pair == [Code::Changed, health]
                };
                match answers.new.iter().position(reports).filter(|_| !paused) {
                    Some(nth) => answers.reported = answers.new.drain(..=nth).next_back(),
                    None if may_skip && !paused => {}
                    None => return Err(self.violation("E6", format!("watch {watch} sends {pair:?}"))),
                }
            }
        }
        Ok(())
    }

    /// After a step, every change is reported. While maintenance mode pauses watches, the last answer waits (C8).
    pub(super) fn check_answers_reported(&mut self, phase: Phase) -> Check {
        if ![self.phase_before, phase].contains(&Phase::Running) {
            return Ok(());
        }
        let (paused, may_skip) = (self.is_paused(), self.may_skip_answers());
        for watch in 0..self.watches.len() {
            let answers = &mut self.watches[watch];
            let Some(last) = answers.new.drain(..).next_back() else { continue };
            if paused {
                answers.new.push(last);
            } else if answers.is_changed_by(&last) && !may_skip {
                return Err(self.violation("E6", format!("watch {watch} does not report {last:?}")));
            } else {
                answers.reported = Some(last);
            }
        }
        Ok(())
    }
}
