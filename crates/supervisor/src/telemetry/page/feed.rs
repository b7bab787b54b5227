//! The state of everything for any number of viewers, as server-sent events.
//!
//! While there is a viewer, one task reads the state: when the journal has a new record, and at least every second,
//! because not every change is an event; five times a second at most. It ends with the last viewer, so a page without a
//! viewer costs nothing.
//!
//! The supervisor never waits for a viewer. A viewer has one message in progress. What changes meanwhile is joined: the
//! next message has the last state of each item that has changed since the one before. A viewer that does not read is
//! disconnected by the server's limit for stalled writes, and a browser that connects again starts with a complete
//! state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use containerpilot_core::plan;
use containerpilot_core::report::redact::Disclosure;
use containerpilot_views::clock::milliseconds;
use containerpilot_views::page::{self, Picture, Shown};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::shown;
use crate::messages::query::EventStream;
use crate::messages::query_handle::QueryHandle;
use crate::net::server::{Body, Offer, StreamSender};

/// The shortest and the longest time between two readings of the state.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(1);
/// Longest time without a byte: proxies may close a connection that is idle for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The browser connects again after two seconds.
const FIRST: &str = "retry: 2000\n\n";

pub(super) struct Feed {
    queries: QueryHandle,
    settings: watch::Receiver<Option<plan::Page>>,
    board: Mutex<Board>,
    picture: Mutex<Picture>,
    /// Wakes the viewers when the board has changed. Each has a receiver.
    updated: watch::Sender<()>,
    /// The last state that was requested without a stream.
    latest: tokio::sync::Mutex<Option<(Instant, Disclosure, Bytes)>>,
}

/// What viewers see.
#[derive(Default)]
struct Board {
    /// Whether a task keeps it up to date.
    is_kept: bool,
    /// Whether the event loop has exited.
    has_ended: bool,
    shown: Disclosure,
    states: page::Board,
    /// The last message, and after which version it begins: most viewers need the same.
    message: Option<(Option<u64>, u64, Bytes)>,
}

impl Board {
    /// The message for a viewer with the version `seen`, and the version it then has.
    fn message(&mut self, seen: Option<u64>) -> Option<(u64, Bytes)> {
        let (after, version) = (self.states.base(seen), self.states.version());
        match &self.message {
            Some((from, to, text)) if seen != Some(version) && *from == after && *to == version => {
                return Some((version, text.clone()));
            }
            _ => {}
        }
        let change = self.states.change(seen, milliseconds(SystemTime::now()))?;
        let name = if change.is_complete { "complete" } else { "change" };
        let text = Bytes::from(format!("event: {name}\ndata: {}\n\n", change.text));
        self.message = Some((after, version, text.clone()));
        Some((version, text))
    }
}

/// What the page says about itself.
fn about(settings: &plan::Page) -> Shown<'static> {
    Shown { version: crate::VERSION, arguments: settings.arguments, logs: settings.logs }
}

impl Feed {
    pub(super) fn new(queries: QueryHandle, settings: watch::Receiver<Option<plan::Page>>) -> Self {
        Self {
            queries,
            settings,
            board: Mutex::default(),
            picture: Mutex::default(),
            updated: watch::channel(()).0,
            latest: tokio::sync::Mutex::default(),
        }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        // After a panic it is still consistent enough: the next reading replaces it.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn picture(&self) -> MutexGuard<'_, Picture> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of everything without records, for a browser that gets no stream. It is at most [`SHORTEST`] old.
    pub(super) async fn state_now(&self, settings: &plan::Page) -> Option<Bytes> {
        let mut latest = self.latest.lock().await;
        let shown = shown(settings);
        match &*latest {
            Some((at, of, text)) if at.elapsed() < SHORTEST && *of == shown => return Some(text.clone()),
            _ => {}
        }
        let public = self.queries.public_overview(shown).await?;
        let mut states = page::Board::default();
        states.update(&public, &mut self.picture(), &about(settings), &[]);
        let text = Bytes::from(states.text(None, milliseconds(SystemTime::now())));
        *latest = Some((Instant::now(), shown, text.clone()));
        Some(text)
    }

    /// The body of a response: a complete state, then what changes.
    pub(super) fn stream(feed: &Arc<Self>, shutdown: watch::Receiver<()>) -> Body {
        let (sender, body) = Body::stream();
        let updated = feed.updated.subscribe();
        let mut board = feed.board();
        if !board.is_kept {
            *board = Board { is_kept: true, ..Board::default() };
            tokio::spawn(keep(Arc::clone(feed)));
        }
        drop(board);
        tokio::spawn(view(Arc::clone(feed), sender, updated, shutdown));
        body
    }

    /// Ends the task that keeps the board, if there is no viewer.
    fn is_abandoned(&self) -> bool {
        let mut board = self.board();
        // A new viewer is counted before it looks at the board.
        if self.updated.receiver_count() == 0 {
            *board = Board::default();
        }
        !board.is_kept
    }
}

/// Keeps the board up to date while there is a viewer.
async fn keep(feed: Arc<Feed>) {
    if keep_until_exit(&feed).await.is_none() {
        // The event loop has exited.
        *feed.board() = Board { has_ended: true, ..Board::default() };
        feed.updated.send_replace(());
    }
}

/// `None` if the event loop has exited, `Some` without a viewer.
async fn keep_until_exit(feed: &Feed) -> Option<()> {
    let EventStream { past, mut live } = feed.queries.events().await?;
    let mut records = past;
    loop {
        let settings = feed.settings.borrow().clone().unwrap_or_default();
        let shown = shown(&settings);
        let public = feed.queries.public_overview(shown).await?;
        {
            let mut board = feed.board();
            if board.shown != shown {
                let states = page::Board::after(board.states.version());
                *board = Board { is_kept: true, shown, states, ..Board::default() };
            }
            board.states.update(&public, &mut feed.picture(), &about(&settings), &records);
        }
        feed.updated.send_replace(());
        records.clear();
        sleep(SHORTEST).await;
        tokio::select! {
            received = timeout(LONGEST.saturating_sub(SHORTEST), live.recv()) => match received {
                Ok(Ok(record)) => records.push(record),
                Ok(Err(RecvError::Closed)) => return None,
                // What was lost is older than what is shown.
                Ok(Err(RecvError::Lagged(_))) | Err(_) => {}
            },
            () = feed.updated.closed() => {}
        }
        while let Ok(record) = live.try_recv() {
            records.push(record);
        }
        if feed.is_abandoned() {
            return Some(());
        }
    }
}

/// Sends changes to one viewer until it leaves, the page is reconfigured, the server stops or the event loop exits.
async fn view(
    feed: Arc<Feed>,
    mut sender: StreamSender,
    mut updated: watch::Receiver<()>,
    mut shutdown: watch::Receiver<()>,
) {
    let mut settings = feed.settings.clone();
    settings.mark_unchanged();
    let stopped = async {
        tokio::select! {
            _ = settings.changed() => {}
            _ = shutdown.changed() => {}
        }
    };
    let told = async {
        let mut seen = None;
        let mut next = Some(Bytes::from_static(FIRST.as_bytes()));
        loop {
            if let Some(chunk) = next.take()
                && sender.send(chunk).await == Offer::Closed
            {
                return;
            }
            let (message, has_ended) = {
                let mut board = feed.board();
                (board.message(seen), board.has_ended)
            };
            if let Some((version, text)) = message {
                (seen, next) = (Some(version), Some(text));
                continue;
            }
            if has_ended {
                return;
            }
            tokio::select! {
                () = sender.closed() => return,
                changed = updated.changed() => if changed.is_err() { return },
                () = sleep(KEEP_ALIVE) => next = Some(Bytes::from_static(b": keep-alive\n\n")),
            }
        }
    };
    tokio::select! {
        () = stopped => {}
        () = told => {}
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::telemetry::testing::TestCore;

    /// A board that a test updates.
    #[derive(Default)]
    pub(in super::super) struct Viewed(Board, Picture);

    impl Viewed {
        pub(in super::super) fn update(&mut self, core: &TestCore) {
            self.0.states.update(&core.public_snapshot(), &mut self.1, &about(&plan::Page::default()), &[]);
        }

        pub(in super::super) fn message(&mut self, seen: Option<u64>) -> Option<(u64, String)> {
            let (version, text) = self.0.message(seen)?;
            Some((version, String::from_utf8(text.to_vec()).unwrap()))
        }
    }
}
