//! Panics on purpose, so that tests can see what becomes of one. In builds with debug assertions only: the program that is
//! released has none of it.
//!
//! A panic is a fault of ours, and PID 1 must not die of it. Who catches what, and what then becomes of the work:
//!
//! | where | caught by | the work |
//! | --- | --- | --- |
//! | `step`: the core decides | `runtime` | news of the world is told once more; a command is refused |
//! | `effect`: a decision is carried out | `runtime` | a process or a check has failed to start; others are passed over |
//! | `request`: control or telemetry answers | `net::serve` | that request gets a 500 |
//! | `service`, `watch`: Consul is spoken to | `discovery` | it begins anew, and everything is told once more |
//! | `log`: the log's thread | `logs` | it goes on; what was in hand may be lost, and that is said |
//! | `load`: a reload reads the configuration | `reload` | whoever asked is told; nothing has changed |
//!
//! `CONTAINERPILOT_MISHAP=PLACE:N` panics when that place is reached for the N-th time.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Panics if a test wants that, here and now.
#[cfg(debug_assertions)]
#[expect(clippy::panic, reason = "that is what it is for")]
pub(crate) fn failpoint(place: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    static WANTED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("CONTAINERPILOT_MISHAP").ok()?;
        let (place, count) = text.split_once(':')?;
        Some((place.to_owned(), count.parse().ok()?))
    });
    if let Some((wanted, count)) = wanted
        && wanted == place
        && COUNT.fetch_add(1, Ordering::Relaxed) + 1 == *count
    {
        panic!("on purpose, at `{place}`");
    }
}

/// Nothing, where there are no tests.
#[cfg(not(debug_assertions))]
pub(crate) fn failpoint(_: &str) {}

/// Awaits a future; a panic in it becomes an error. The future is not polled again then.
pub(crate) async fn guarded<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}
