//! The event stream: journaled events first, then events as they happen. It never slows the supervisor down.

use std::fmt::Write;
use std::time::Duration;

use containerpilot_views::journal::JournalRecord;

use bytes::Bytes;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::timeout;

use super::render;
use crate::messages::query::EventStream;
use crate::net::server::{Body, Offer, StreamSender};

/// Longest time without a byte: proxies may close a connection that is idle for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that arrive together are joined to chunks of about this size.
const CHUNK: usize = 32 * 1024;

const KEEP_ALIVE_COMMENT: &str = ": keep-alive\n\n";
const END: &str = "event: end\ndata: {\"reason\":\"the supervisor has exited\"}\n\n";
const DROPPED: &str =
    "event: dropped\ndata: {\"reason\":\"the reader was too slow; events from here on are missing\"}\n\n";

/// The body of a response: journaled events after `since`, and with `follow` also new events.
pub(super) fn body(stream: EventStream, follow: bool, since: Option<u64>) -> Body {
    let mut text = String::new();
    let journaled = stream.past.iter();
    journaled.filter(|event| is_after(event, since)).for_each(|event| write_message(&mut text, event));
    if !follow {
        return text.into();
    }
    let (mut sender, body) = Body::stream();
    if text.is_empty() {
        // Some clients and proxies hold a response back until its first body byte.
        KEEP_ALIVE_COMMENT.clone_into(&mut text);
    }
    tokio::spawn(async move {
        if sender.offer(text.into(), DROPPED) == Offer::Queued {
            stream_events(sender, stream, since).await;
        }
    });
    body
}

/// A start that follows the event `since` may have been seen before; its run is its identity.
fn is_after(record: &JournalRecord, since: Option<u64>) -> bool {
    since.is_none_or(|since| match record {
        JournalRecord::Event(event) => event.id.0 > since,
        JournalRecord::Start(start) => start.after.0 >= since,
    })
}

fn write_message(text: &mut String, record: &JournalRecord) {
    // Writing to a string cannot fail. The JSON is a single line.
    let _ = match record {
        JournalRecord::Event(event) => write!(text, "id: {}\ndata: {}\n\n", event.id.0, render::event(event)),
        // Without an id, a client continues after the last event.
        JournalRecord::Start(start) => write!(text, "event: start\ndata: {}\n\n", render::start(start)),
    };
}

/// Sends events until the reader disconnects or the supervisor exits.
async fn stream_events(mut sender: StreamSender, stream: EventStream, since: Option<u64>) {
    let mut events = stream.live;
    loop {
        let received = tokio::select! {
            () = sender.closed() => return,
            received = timeout(KEEP_ALIVE, events.recv()) => received,
        };
        let Ok(first) = received else {
            if sender.offer(Bytes::from_static(KEEP_ALIVE_COMMENT.as_bytes()), DROPPED) == Offer::Closed {
                return;
            }
            continue;
        };
        let mut text = String::new();
        let mut next = first.map_err(|error| match error {
            RecvError::Closed => END,
            RecvError::Lagged(_) => DROPPED,
        });
        loop {
            match next {
                Ok(event) if is_after(&event, since) => write_message(&mut text, &event),
                Ok(_) => {}
                Err(last_message) => {
                    if sender.offer(text.into(), DROPPED) == Offer::Queued {
                        sender.close_with(last_message);
                    }
                    return;
                }
            }
            if text.len() >= CHUNK {
                break;
            }
            next = match events.try_recv() {
                Ok(event) => Ok(event),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Closed) => Err(END),
                Err(TryRecvError::Lagged(_)) => Err(DROPPED),
            };
        }
        if !text.is_empty() && sender.offer(text.into(), DROPPED) == Offer::Closed {
            return;
        }
    }
}
