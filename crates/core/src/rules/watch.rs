//! Watches: their answers and the events that these cause (E6, D13).

use alloc::string::String;
use alloc::sync::Arc;

use crate::answer::Answer;
use crate::catalog::connectivity::Trouble;
use crate::event::Code;
use crate::ids::{EventId, WatchIx};
use crate::log_entry::LogEvent;
use crate::plan::Level;
use crate::state::journal::Origin;
use crate::state::watch_changes::ListChange;
use crate::supervisor::{Core, Phase};

impl Core {
    /// Handles an answer, or the reason why there is none.
    pub(crate) fn watched(&mut self, watch: WatchIx, answer: Result<Answer, String>) {
        if self.phase != Phase::Running {
            return;
        }
        match answer {
            Ok(answer) => {
                self.end_trouble(watch);
                self.answered(watch, answer);
            }
            Err(error) => self.not_answered(watch, error),
        }
    }

    /// A change of the contents sends `changed`. `healthy` or `unhealthy` follows if the health has changed, and after
    /// every change of instances.
    fn answered(&mut self, watch: WatchIx, answer: Answer) {
        let paused = self.is_paused();
        let Some(state) = self.plan_state.watches.get_mut(watch.index()) else { return };
        if paused {
            return state.held = Some(answer);
        }
        state.held = None;
        let has_instances = matches!(answer, Answer::Instances(_));
        let is_first = state.known.is_none();
        let is_used = !self.plan_state.graph.files_of_watch(watch).is_empty();
        let before = is_used.then(|| state.data());
        let change = state.learn(answer);
        let is_new = before.is_some_and(|before| state.data() != before);
        let is_healthy = state.is_healthy();
        // Jobs that wait for this watch may have become unreachable (W10).
        self.plan_state.reachability_dirty = true;
        let state = &mut self.plan_state;
        if let Some(requirers) = state.graph.watch_requirers().get(watch.index()) {
            state.recheck.extend(requirers);
        }
        let list = change.list.map(Arc::new);
        if change.contents || is_first {
            self.set_watch_variable(watch);
        }
        if change.contents {
            self.send_change(watch, Code::Changed, list.as_ref());
        }
        // Also without an event: tags and metadata are in templates, too.
        if is_new {
            self.render_files_of(watch);
        }
        if change.health || (change.contents && has_instances) {
            let code = if is_healthy { Code::Healthy } else { Code::Unhealthy };
            self.send_change(watch, code, list.as_ref());
        }
    }

    /// Sends an event, and remembers what it has added and removed for the processes that it starts (D12).
    fn send_change(&mut self, watch: WatchIx, code: Code, list: Option<&Arc<ListChange>>) {
        self.send(Origin::Watch(watch), code);
        let watchers = self.plan_state.graph.watchers.get(watch.index());
        if let Some(list) = list.filter(|_| watchers.is_some_and(|jobs| !jobs.is_empty())) {
            self.watch_changes.record(EventId(self.last_ids.event), Arc::clone(list));
        }
    }

    /// D7: the last answer stays. The log has one entry for each reason.
    fn not_answered(&mut self, watch: WatchIx, error: String) {
        let now = self.now;
        let Some(state) = self.plan_state.watches.get_mut(watch.index()) else { return };
        let before = state.trouble.as_ref();
        if before.is_some_and(|trouble| trouble.error == error) {
            return;
        }
        let since = before.map_or(now, |trouble| trouble.since);
        state.trouble = Some(Trouble { since, error: error.clone() });
        let name = self.origin_name(Origin::Watch(watch));
        self.log(Level::Warn, None, LogEvent::WatchFailed, format_args!("{name} is not answered: {error}"));
    }

    fn end_trouble(&mut self, watch: WatchIx) {
        let state = self.plan_state.watches.get_mut(watch.index());
        if state.and_then(|state| state.trouble.take()).is_some() {
            let name = self.origin_name(Origin::Watch(watch));
            self.log(Level::Info, None, LogEvent::WatchRecovered, format_args!("{name} is answered again"));
        }
    }

    /// C8: maintenance mode has ended, and watches compare their last answers with what they knew before.
    pub(crate) fn send_held_answers(&mut self) {
        for index in 0..self.plan_state.watches.len() {
            if let Some(answer) = self.plan_state.watches[index].held.take() {
                self.answered(WatchIx::at(index), answer);
            }
        }
    }
}
