//! Deliberate panics for tests, in builds with debug assertions or the feature `failpoints` only.
//!
//! A panic is a bug, and PID 1 must survive it. Where a panic is caught, and what happens to the work:
//!
//! | failpoint | caught by | the work |
//! | --- | --- | --- |
//! | `step`: the core decides | `runtime::decide` | an event is passed again; a command is refused |
//! | `effect`, `effect.KIND`: a decision is carried out | `runtime::decide` | a process or check has failed to start; others are skipped |
//! | `request`: the control socket or telemetry handles a request | `net` | the request gets a 500 |
//! | `poll`, `files`: a look of a watch | `watches` | the task or thread goes on after a second |
//! | `service`, `watch`: a request to Consul | `discovery` | the task restarts and sends everything again |
//! | `log`: the log thread | `logs` | the thread continues; lines in progress may be lost, which is logged |
//! | `spans`, `export`: the spans of a step, a request to an OpenTelemetry collector | `runtime::decide`, `telemetry::otlp` | those spans, or that batch, are lost |
//! | `load`: a reload reads the configuration | `runtime::reload` | the request fails; nothing has changed |
//! | `wait`, `signal`, `message`, `reap`, `probe`, `check-output`, `network`: the loop handles a source | `runtime::event_loop` | the other sources go on; this one continues with what comes next |
//! | `query`: the loop answers a client | `runtime::event_loop` | the client gets a 503 |
//! | `exit`, `state`: the last output of a process, events for clients | `runtime::event_loop`, `decide` | the exit still reaches the core |
//! | `top`: the command draws its screen | nothing | the terminal is restored before the message |
//! | `shutdown`: the last part of the exit | `runtime::shutdown` | the log is still written, the exit code is kept |
//!
//! `CONTAINERPILOT_FAILPOINT=NAME:N` panics when that failpoint is reached for the N-th time, `NAME:N+` also every time
//! after that.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Panics if the test has selected this failpoint.
#[cfg(any(debug_assertions, feature = "failpoints"))]
#[expect(clippy::panic, reason = "the purpose of a failpoint")]
pub fn failpoint(name: &str) {
    use std::ops::RangeInclusive;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    static SELECTED: OnceLock<Option<(String, RangeInclusive<u32>)>> = OnceLock::new();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let selected = SELECTED.get_or_init(|| {
        let text = std::env::var("CONTAINERPILOT_FAILPOINT").ok()?;
        let (name, count) = text.split_once(':')?;
        let first = count.trim_end_matches('+').parse().ok()?;
        Some((name.to_owned(), first..=if count.ends_with('+') { u32::MAX } else { first }))
    });
    if let Some((selected, counts)) = selected
        && selected == name
        && counts.contains(&(COUNT.fetch_add(1, Ordering::Relaxed) + 1))
    {
        panic!("on purpose, at `{name}`");
    }
}

#[cfg(not(any(debug_assertions, feature = "failpoints")))]
pub fn failpoint(_: &str) {}

/// Awaits a future. A panic in it becomes an error, and the future is not polled again.
pub async fn guarded<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}
