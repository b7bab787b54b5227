//! All limits for HTTP peers.
//!
//! | peer behaviour | bound | what the peer sees |
//! | --- | --- | --- |
//! | connects and sends nothing, or idles between requests | [`ServerLimits::head_timeout`] | the connection is closed |
//! | sends an endless request head | [`HEAD_BYTES`], [`HEAD_FIELDS`] | 431 or 414 |
//! | sends something that is not HTTP/1.x | hyper's parser | 400 |
//! | pipelines requests | [`HEAD_BYTES`] are buffered, the rest waits in the kernel | responses in order |
//! | sends a large body | [`ServerLimits::body_bytes`], [`LARGE_BODIES_BYTES`] for all of them together | 413, or 503 if no memory is left |
//! | sends a body slowly | [`ServerLimits::stall_timeout`], [`ServerLimits::request_timeout`] | 408 |
//! | sends a request that takes long | [`ServerLimits::request_timeout`] | 503 |
//! | does not read the response | [`ServerLimits::stall_timeout`], [`ServerLimits::request_timeout`] unless it is a stream | the connection is closed |
//! | reads a stream too slowly | [`STREAM_CHUNKS`], [`STREAM_BYTES`] | the stream ends with a message about it |
//! | opens many connections | [`ServerLimits::connections`] | the one that waits longest for its peer is closed, silent ones first |
//! | opens many streams | [`ServerLimits::streams`] | 503; other requests are still served |
//! | requests many explanations of the page | as many wait as there may be streams | 503; other requests are still served |
//!
//! A new connection takes the slot of another one in this order: one that has sent no complete head, one that idles
//! between requests, one whose body or response makes no progress, and one with a pipelined request; of each kind the
//! oldest. A request that is being handled is never cut off: if all slots have one, the new connection waits.
//!
//! At shutdown the listener closes, requests that have arrived get their complete response, and idle connections are
//! closed.

use std::time::Duration;

pub(crate) use containerpilot_api::{HEAD_BYTES, HEAD_FIELDS};

/// A request body up to this length does not count against [`LARGE_BODIES_BYTES`].
pub(super) const SMALL_BODY_BYTES: usize = 16 * 1024;
/// Memory for all larger request bodies that a server reads at the same time.
pub(super) const LARGE_BODIES_BYTES: usize = 16 << 20;
/// A body that is too long is read and discarded up to this length: a client that is cut off while it sends would not
/// read the 413.
pub(super) const DISCARDED_BODY_BYTES: usize = 16 << 20;
/// Most chunks of a stream that wait for a slow reader.
pub(super) const STREAM_CHUNKS: usize = 2048;
/// Most bytes of a stream that wait for a slow reader. A single longer chunk is accepted if nothing else waits.
pub(super) const STREAM_BYTES: usize = 1 << 20;
/// At shutdown, how long a server waits for a request whose bytes are already in the kernel's buffer.
pub(super) const LAST_READ: Duration = Duration::from_millis(5);
/// Pause after a failed `accept`, for example when the process is out of descriptors.
pub(super) const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// While every slot has a request that is being handled: when to look again for a connection to close.
pub(super) const SLOT_RETRY: Duration = Duration::from_millis(100);

/// The limits that differ between the two servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerLimits {
    /// Time for a request head, and how long a connection may idle.
    pub(crate) head_timeout: Duration,
    /// Time for a whole request, from its head to the end of a response that is not a stream.
    pub(crate) request_timeout: Duration,
    /// How long a peer may send nothing of a body, or read nothing of a response.
    pub(crate) stall_timeout: Duration,
    /// Longest request body.
    pub(crate) body_bytes: usize,
    /// Connections served at the same time.
    pub(crate) connections: usize,
    /// How many of them may be streams.
    pub(crate) streams: usize,
    /// Whether an HTTP/1.1 connection stays open unless the client sends `Connection: close`. If false, the client has
    /// to request it with `Connection: keep-alive`.
    pub(crate) keep_alive: bool,
}

impl ServerLimits {
    /// For the control socket. 3.8 closes every connection after its response, and scripts read to the end.
    pub(crate) const CONTROL: Self = Self {
        head_timeout: Duration::from_secs(10),
        request_timeout: Duration::from_secs(30),
        stall_timeout: Duration::from_secs(10),
        body_bytes: 1 << 20,
        connections: 256,
        streams: 64,
        keep_alive: false,
    };

    /// For the telemetry server: a few scrapers and probes, whose requests have no body, and viewers of the live page,
    /// each with a stream.
    pub(crate) const TELEMETRY: Self = Self {
        head_timeout: Duration::from_secs(10),
        request_timeout: Duration::from_secs(20),
        stall_timeout: Duration::from_secs(10),
        body_bytes: 16 * 1024,
        connections: 64,
        streams: 16,
        keep_alive: true,
    };
}
