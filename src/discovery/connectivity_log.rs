//! What the log is told of the conversation with Consul: every change once.

use std::sync::{Mutex, PoisonError};

use containerpilot_core::catalog::contact::{Contact, Fared, News as Change};
use containerpilot_core::plan::Level;

use crate::runtime::channel::{LoopMessage, LoopSender};

/// Why something did not go well.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// What that says about Consul.
    pub(super) fared: Fared,
    /// In words.
    pub(super) why: String,
}

/// The voice of all who ask.
#[derive(Debug)]
pub(super) struct Voice {
    address: String,
    sender: LoopSender,
    contact: Mutex<Contact<String>>,
}

impl Voice {
    pub(super) fn new(address: String, sender: LoopSender) -> Self {
        Self { address, sender, contact: Mutex::default() }
    }

    /// Somebody has asked, for example `service web`, and this came of it.
    pub(super) fn heard(&self, who: &str, failure: Option<&Failure>) {
        let fared = failure.map_or(Fared::Well, |failure| failure.fared);
        let why = failure.map_or("", |failure| &failure.why);
        let changes =
            self.contact.lock().unwrap_or_else(PoisonError::into_inner).heard(who.to_owned(), fared);
        for change in changes.into_iter().flatten() {
            self.say(change, who, why);
        }
    }

    /// Somebody asks no more.
    pub(super) fn forget(&self, who: &str) {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner).forget(&who.to_owned());
    }

    fn say(&self, change: Change, who: &str, why: &str) {
        let address = &self.address;
        let (level, message) = match change {
            Change::Away => (
                Level::Warn,
                format!("Consul at {address} cannot be used: {why}; jobs go on, and it is tried again"),
            ),
            Change::Back => (Level::Info, format!("Consul at {address} can be used again")),
            Change::Refused => (Level::Warn, format!("Consul refuses {who}: {why}; it is tried again")),
            Change::Accepted => (Level::Info, format!("Consul takes {who} again")),
        };
        self.sender.send(LoopMessage::Log(level, message));
    }
}
