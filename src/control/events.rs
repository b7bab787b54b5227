//! Events as a stream that never slows the supervisor: what is remembered first, then what comes.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::timeout;

use super::render;
use crate::net::begin;
use crate::net::serve::{Body, Feed, First, Taken, first};
use crate::runtime::query::{EventRecord, EventStream};

/// How long a stream may be silent: whoever stands between may take silence for the end.
const SILENCE: Duration = Duration::from_secs(15);
/// How much is gathered into one piece, if so much comes at once.
const PIECE: usize = 32 * 1024;

const STILL_HERE: &str = ": still here\n\n";
const END: &str = "event: end\ndata: {\"reason\":\"the supervisor has left\"}\n\n";
const DROPPED: &str =
    "event: dropped\ndata: {\"reason\":\"the reader was too slow, and events are missing from here on\"}\n\n";

/// The body of an answer: what is remembered, from an event on, and, if that is wanted, what comes.
pub(super) fn body(listening: EventStream, follow: bool, since: Option<u64>) -> Body {
    let mut text = String::new();
    let remembered = listening.past.iter();
    remembered.filter(|told| is_after(told, since)).for_each(|told| write(&mut text, told));
    if !follow {
        return text.into();
    }
    let (mut feed, body) = Body::stream();
    if text.is_empty() {
        // A head alone may stay in a buffer somewhere until something follows it.
        STILL_HERE.clone_into(&mut text);
    }
    begin(async move {
        if feed.offer(text.into(), DROPPED) == Taken::Yes {
            follow_on(feed, listening, since).await;
        }
    });
    body
}

fn is_after(told: &EventRecord, since: Option<u64>) -> bool {
    since.is_none_or(|since| told.id.0 > since)
}

fn write(text: &mut String, told: &EventRecord) {
    let data = render::event(told);
    // Writing to a string cannot fail; JSON has no line breaks.
    let _ = std::fmt::Write::write_fmt(text, format_args!("id: {}\ndata: {data}\n\n", told.id.0));
}

/// Tells what comes, until nobody reads or nothing can come any more.
async fn follow_on(mut feed: Feed, listening: EventStream, since: Option<u64>) {
    let mut coming = listening.live;
    loop {
        let next = match first(feed.gone(), timeout(SILENCE, coming.recv())).await {
            First::One(()) => return,
            First::Other(Err(_)) => {
                if feed.offer(Bytes::from_static(STILL_HERE.as_bytes()), DROPPED) == Taken::Never {
                    return;
                }
                continue;
            }
            First::Other(Ok(next)) => next,
        };
        let mut text = String::new();
        let mut next = next.map_err(|error| match error {
            RecvError::Closed => END,
            RecvError::Lagged(_) => DROPPED,
        });
        loop {
            match next {
                Ok(told) if is_after(&told, since) => write(&mut text, &told),
                Ok(_) => {}
                Err(last_words) => {
                    if feed.offer(text.into(), DROPPED) == Taken::Yes {
                        feed.finish(last_words);
                    }
                    return;
                }
            }
            if text.len() >= PIECE {
                break;
            }
            next = match coming.try_recv() {
                Ok(told) => Ok(told),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Closed) => Err(END),
                Err(TryRecvError::Lagged(_)) => Err(DROPPED),
            };
        }
        if !text.is_empty() && feed.offer(text.into(), DROPPED) == Taken::Never {
            return;
        }
    }
}
