//! The queue between the event loop and the log thread (L4, L9), and the channel from other threads to the event loop (E7), in
//! every interleaving of the threads.
//!
//! `logs/queue.rs` and `messages/channel.rs` of the supervisor are compiled here with the primitives of `loom`. A wait
//! has no timeout here: a wake-up that is lost is a deadlock, which `loom` reports.
#![cfg(test)]
#![expect(dead_code, reason = "the tests use a part of the queue")]

// The sources name the waker of another crate: here it is the one below.
extern crate self as containerpilot_process;
pub(crate) use process::sys;

// Paths are relative to this file.
#[path = "."]
mod logs {
    #[path = "../../../crates/supervisor/src/logs/loss.rs"]
    mod loss;
    #[path = "../../../crates/supervisor/src/logs/queue.rs"]
    pub(crate) mod queue;

    #[derive(Debug)]
    pub(crate) struct Source;

    #[derive(Debug)]
    pub(crate) struct ReadyLine;

    mod sync {
        use std::time::Duration;

        pub(super) use loom::sync::{Mutex, MutexGuard};
        pub(super) use std::sync::PoisonError;
        use std::sync::{LockResult, WaitTimeoutResult};

        /// A condition variable whose timeouts never pass.
        #[derive(Debug)]
        pub(super) struct Condvar(loom::sync::Condvar);

        type Waited<'a, T> = LockResult<(MutexGuard<'a, T>, Option<WaitTimeoutResult>)>;

        impl Condvar {
            pub(super) fn new() -> Self {
                Self(loom::sync::Condvar::new())
            }

            pub(super) fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, _: Duration) -> Waited<'a, T> {
                Ok((self.0.wait(guard).unwrap(), None))
            }

            pub(super) fn wait_timeout_while<'a, T>(
                &self,
                mut guard: MutexGuard<'a, T>,
                _: Duration,
                mut holds: impl FnMut(&mut T) -> bool,
            ) -> Waited<'a, T> {
                while holds(&mut guard) {
                    guard = self.0.wait(guard).unwrap();
                }
                Ok((guard, None))
            }

            pub(super) fn notify_one(&self) {
                self.0.notify_one();
            }

            pub(super) fn notify_all(&self) {
                self.0.notify_all();
            }
        }
    }

    #[path = "queue_tests.rs"]
    mod tests;
}

#[path = "."]
mod messages {
    #[path = "../../../crates/supervisor/src/messages/channel.rs"]
    pub(crate) mod channel;

    mod sync {
        pub(super) use loom::sync::mpsc;
    }

    #[path = "channel_tests.rs"]
    mod tests;
}

mod process {
    pub(crate) mod sys {
        use std::io;

        use loom::sync::{Condvar, Mutex};

        /// The eventfd of the waiting thread.
        #[derive(Debug)]
        pub(crate) struct Waker {
            is_set: Mutex<bool>,
            woken: Condvar,
        }

        impl Waker {
            pub(crate) fn new() -> io::Result<Self> {
                Ok(Self { is_set: Mutex::new(false), woken: Condvar::new() })
            }

            pub(crate) fn wake(&self) {
                *self.is_set.lock().unwrap() = true;
                self.woken.notify_one();
            }

            pub(crate) fn clear(&self) {
                *self.is_set.lock().unwrap() = false;
            }

            /// What `ppoll` and epoll do: waits until the waker is set, and leaves it set.
            pub(crate) fn wait(&self) {
                let mut is_set = self.is_set.lock().unwrap();
                while !*is_set {
                    is_set = self.woken.wait(is_set).unwrap();
                }
            }
        }
    }
}
