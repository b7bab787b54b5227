//! One request and its response: reads the body within its bounds, calls the handler, and decides whether the
//! connection stays open.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use containerpilot_process::error_text::root_cause;
use containerpilot_process::failpoints::{failpoint, guarded};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, EXPECT, HOST, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{StatusCode, Version};
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};

use super::connections::{ConnectionActivity, RequestGuard};
use super::{Body, Handler, ServerRequest, Shared, error};
use crate::net::limits::{DISCARDED_BODY_BYTES, SMALL_BODY_BYTES};

/// Handles one request. Never fails: every problem becomes a response.
pub(super) async fn respond<H: Handler>(
    shared: Arc<Shared<H>>,
    activity: Arc<ConnectionActivity>,
    request: hyper::Request<Incoming>,
    peer_uid: Option<u32>,
) -> Result<hyper::Response<BodyInProgress>, Infallible> {
    let guard = activity.begin_request();
    let deadline = Instant::now() + shared.limits.request_timeout;
    activity.set_write_deadline(Some(deadline));
    let (head, incoming) = request.into_parts();
    let mut keep_alive = wants_keep_alive(&head, shared.limits.keep_alive);
    let body = match has_one_host(&head) {
        true => timeout_at(deadline, read_body(&shared, &head.headers, incoming)).await,
        false => Ok(Err(Refusal::Host)),
    };
    activity.body_done();
    let mut response = match body.unwrap_or(Err(Refusal::Timeout)) {
        Err(why) => {
            keep_alive = false;
            error(why.status(), &why.to_string())
        }
        Ok(body) => {
            let handled = guarded(async {
                failpoint("request");
                shared.handler.handle(ServerRequest { head, body, peer_uid }).await
            });
            match timeout_at(deadline, handled).await {
                Ok(Ok(response)) => response,
                Ok(Err(_panic)) => {
                    keep_alive = false;
                    error(StatusCode::INTERNAL_SERVER_ERROR, "internal error of containerpilot; see its log")
                }
                Err(_) => {
                    let limit = shared.limits.request_timeout;
                    error(StatusCode::SERVICE_UNAVAILABLE, &format!("no response within {limit:?}"))
                }
            }
        }
    };
    let mut stream_slot = None;
    if response.body().is_stream() {
        match Arc::clone(&shared.stream_slots).try_acquire_owned() {
            Ok(slot) => {
                activity.set_write_deadline(None);
                stream_slot = Some(slot);
            }
            Err(_) => {
                let reason = "too many streams are open; close one and try again";
                response = error(StatusCode::SERVICE_UNAVAILABLE, reason);
            }
        }
    }
    if !keep_alive || shared.is_shutting_down() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| BodyInProgress { body, _guard: guard, _stream_slot: stream_slot }))
}

/// Whether the client wants to send further requests on this connection. With `by_default`, HTTP/1.1 clients do unless
/// they send `Connection: close`.
fn wants_keep_alive(head: &Parts, by_default: bool) -> bool {
    let has_token = |token: &str| {
        let values = head.headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(token))
    };
    !has_token("close") && (has_token("keep-alive") || (by_default && head.version == Version::HTTP_11))
}

/// HTTP/1.1 requires the header `Host`, once (RFC 9112, 3.2).
fn has_one_host(head: &Parts) -> bool {
    head.version != Version::HTTP_11 || head.headers.get_all(HOST).iter().count() == 1
}

/// Why a request is refused before its handler sees it.
#[derive(Debug, Error)]
enum Refusal {
    #[error("an HTTP/1.1 request must have one Host header, for example `Host: localhost`")]
    Host,
    #[error("the request body is longer than {0} bytes")]
    TooLarge(usize),
    #[error("timed out while reading the request body")]
    Timeout,
    #[error("malformed request body: {}", root_cause(.0))]
    Malformed(#[source] hyper::Error),
    #[error("too many large request bodies at the same time; try again")]
    Busy,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::Host | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

async fn read_body<H>(
    shared: &Shared<H>,
    headers: &HeaderMap,
    mut incoming: Incoming,
) -> Result<Bytes, Refusal> {
    let limit = shared.limits.body_bytes;
    let announced = incoming.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    let refused = announced.is_some_and(|length| length > limit);
    if refused && (headers.contains_key(EXPECT) || announced > Some(DISCARDED_BODY_BYTES)) {
        return Err(Refusal::TooLarge(limit));
    }
    let mut body = BytesMut::new();
    let mut received = 0_usize;
    let mut permit = None;
    loop {
        let frame = timeout(shared.limits.stall_timeout, incoming.frame()).await;
        let Some(frame) = frame.map_err(|_| Refusal::Timeout)? else { break };
        let Ok(chunk) = frame.map_err(Refusal::Malformed)?.into_data() else { continue };
        received = received.saturating_add(chunk.len());
        if received > DISCARDED_BODY_BYTES {
            return Err(Refusal::TooLarge(limit));
        }
        if refused || received > limit {
            (body, permit) = (BytesMut::new(), None);
            continue;
        }
        // Only once bytes have arrived: a client that announces a body and sends nothing must not block others. One
        // permit is enough for the whole body, so that two half-read bodies never wait for each other.
        if received > SMALL_BODY_BYTES && permit.is_none() {
            let acquired = timeout(shared.limits.stall_timeout, shared.large_bodies.acquire()).await;
            permit = acquired.map_err(|_| Refusal::Busy)?.ok();
        }
        body.extend_from_slice(&chunk);
    }
    drop(permit);
    if received > limit { Err(Refusal::TooLarge(limit)) } else { Ok(body.freeze()) }
}

/// A response body that counts as a request in progress until hyper has sent all of it.
#[derive(Debug)]
pub(super) struct BodyInProgress {
    body: Body,
    _guard: RequestGuard,
    _stream_slot: Option<OwnedSemaphorePermit>,
}

impl hyper::body::Body for BodyInProgress {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
