//! Events are queued and recorded in the journal (E2). `rules/dispatch.rs` gives them to the jobs that wait for them.

use crate::event::Code;
use crate::ids::EventId;
use crate::state::journal::{Detail, Event, Origin};
use crate::supervisor::Core;

impl Core {
    /// Queues an event. Its cause is the event being dispatched.
    pub(crate) fn send(&mut self, origin: Origin, code: Code) {
        self.send_with(origin, code, Detail::None);
    }

    /// Queues an event with details.
    pub(crate) fn send_with(&mut self, origin: Origin, code: Code, detail: Detail) {
        self.last_ids.event += 1;
        let id = EventId(self.last_ids.event);
        let event = Event { id, cause: self.current_event, at: self.now, origin, code, detail };
        self.journal.write(event);
        *self.event_counts.entry((origin, code)).or_default() += 1;
        self.queue.push_back(event);
    }
}
