//! What the network's thread gives back when nobody asks.
//!
//! A question from outside brings most of the program's code back into memory, and a container's health check asks for ever. So
//! when nobody has asked for a second or two, the code goes back to the kernel, as it does after the start. That costs a wake-up or
//! two after the last of many questions, and nothing while there are none. Consul's answers do not count: they come all the time.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::process::sys;

/// How long nobody must have asked.
const A_MOMENT: Duration = Duration::from_secs(1);

/// Where the use of the network is noted.
#[derive(Clone, Debug)]
pub(crate) struct Used(watch::Sender<()>);

impl Used {
    /// Somebody has asked something.
    pub(crate) fn note(&self) {
        self.0.send_replace(());
    }
}

/// A place to note the use of the network, and what becomes of that: a task without end, which begins with the thread's start,
/// the first use of all.
pub(super) fn rest() -> (Used, impl Future<Output = ()> + Send) {
    let (used, mut uses) = watch::channel(());
    let task = async move {
        loop {
            sleep(A_MOMENT).await;
            match uses.has_changed() {
                Ok(true) => uses.mark_unchanged(),
                Ok(false) => {
                    // A program that runs alone has nobody to ask about it.
                    sys::release_unused_memory();
                    if uses.changed().await.is_err() {
                        return;
                    }
                }
                // Nobody can use it any more.
                Err(_) => return,
            }
        }
    };
    (Used(used), task)
}
