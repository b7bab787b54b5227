//! Watches: their answers and the events that these cause (E6, D13).

pub(crate) mod report;
mod state;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, WatchResult};
use crate::catalog::connectivity::Trouble;
use crate::context::{Context, Decision};
use crate::event::Code;
use crate::ids::WatchIx;
use crate::log_entry::LogEvent;
use crate::plan::diff::Moves;
use crate::plan::{Level, Plan};
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::Fingerprint;
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::variables::WatchText;
use crate::watches::state::WatchState;

pub use report::WatchOverview;

/// The watches of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Watches {
    states: Vec<WatchState>,
}

impl Watches {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { states: plan.watches.iter().map(|_| WatchState::default()).collect() }
    }

    fn state(&self, watch: WatchIx) -> Option<&WatchState> {
        self.states.get(watch.index())
    }

    /// The last answer; `None` before the first one.
    pub(crate) fn answer(&self, watch: WatchIx) -> Option<&Answer> {
        self.state(watch)?.known.as_ref()
    }

    /// What files are rendered with (D15): the last answer, or the value of a peer that is down.
    pub(crate) fn data(&self, watch: WatchIx) -> Option<Answer> {
        self.state(watch)?.data()
    }

    /// The text of a watch's variable (D12).
    pub(crate) fn variable(&self, watch: WatchIx) -> Option<WatchText> {
        self.state(watch)?.variable()
    }

    /// Returns true if there is an instance, a value or a peer.
    pub(crate) fn is_healthy(&self, watch: WatchIx) -> bool {
        self.state(watch).is_some_and(WatchState::is_healthy)
    }

    /// Returns true if the last answer is empty, absent or down.
    pub(crate) fn is_unhealthy(&self, watch: WatchIx) -> bool {
        self.state(watch).is_some_and(WatchState::is_unhealthy)
    }

    /// Returns true if a watch will send an event by itself.
    pub(crate) fn will_change(&self, watch: WatchIx) -> bool {
        self.state(watch).is_some_and(WatchState::will_change)
    }

    /// Returns true if an event of a watch has come and still describes its state.
    pub(crate) fn event_holds(&self, watch: WatchIx, code: Code) -> bool {
        matches!(code, Code::Healthy | Code::Changed) && self.is_healthy(watch)
    }

    /// Handles an answer, or the reason why there is none.
    pub(crate) fn answered(&mut self, watch: WatchIx, answer: WatchResult, context: &mut Context<'_>) {
        let Some(state) = self.states.get_mut(watch.index()) else { return };
        if context.phase != Phase::Running {
            return;
        }
        match answer {
            Ok(answer) => {
                if state.trouble.take().is_some() {
                    let name = context.name(Origin::Watch(watch));
                    context.log(Level::Info, LogEvent::WatchRecovered, format!("{name} is answered again"));
                }
                if context.is_paused {
                    state.postponed = Some(answer);
                } else {
                    state.postponed = None;
                    learn(state, watch, answer, context);
                }
            }
            Err(error) => not_answered(state, watch, error, context),
        }
    }

    /// C8: maintenance mode has ended, and a watch compares its last answer with what it knew before.
    pub(crate) fn resume(&mut self, watch: WatchIx, context: &mut Context<'_>) {
        let Some(state) = self.states.get_mut(watch.index()) else { return };
        if let Some(answer) = state.postponed.take() {
            learn(state, watch, answer, context);
        }
    }

    /// A reload has replaced the plan: unchanged watches keep what they know.
    pub(crate) fn continue_from(&mut self, old: Self, moves: &Moves) {
        for (state, to) in old.states.into_iter().zip(&moves.watches) {
            if let Some(to) = to.and_then(|to| self.states.get_mut(to.index())) {
                *to = state;
            }
        }
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, print: &mut Fingerprint) {
        print.list(&self.states, |print, state| print.add(state.fingerprint()));
    }
}

/// A change of the contents sends `changed`. `healthy` or `unhealthy` follows if the health has changed, and after
/// every change of instances.
fn learn(state: &mut WatchState, watch: WatchIx, answer: Answer, context: &mut Context<'_>) {
    let has_instances = matches!(answer, Answer::Instances(_));
    let is_first = state.known.is_none();
    let is_used = !context.graph.files_of_watch(watch).is_empty();
    let before = is_used.then(|| state.data());
    let change = state.learn(answer);
    let is_new = before.is_some_and(|before| state.data() != before);
    context.decide(Decision::Recheck(Origin::Watch(watch)));
    let list = change.list.map(Arc::new);
    if change.contents || is_first {
        context.decide(Decision::SetWatchVariable(watch));
    }
    if change.contents {
        context.decide(Decision::SendChange(watch, Code::Changed, list.clone()));
    }
    // Also without an event: tags and metadata are in templates, too.
    if is_new {
        context.decide(Decision::RenderFilesOf(watch));
    }
    if change.health || (change.contents && has_instances) {
        let code = if state.is_healthy() { Code::Healthy } else { Code::Unhealthy };
        context.decide(Decision::SendChange(watch, code, list));
    }
}

/// D7: the last answer stays. The log has one entry for each reason.
fn not_answered(state: &mut WatchState, watch: WatchIx, error: String, context: &mut Context<'_>) {
    let before = state.trouble.as_ref();
    if before.is_some_and(|trouble| trouble.error == error) {
        return;
    }
    let since = before.map_or(context.now, |trouble| trouble.since);
    let name = context.name(Origin::Watch(watch));
    context.log(Level::Warn, LogEvent::WatchFailed, format!("{name} is not answered: {error}"));
    state.trouble = Some(Trouble { since, error });
}
