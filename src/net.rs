//! The network's thread: everything that waits for a peer lives here, and nothing that supervises does.
//!
//! Consul, the control socket and telemetry are asynchronous tasks on one thread with one small runtime. They tell the
//! loop what they have found out through its [`LoopSender`], and are told what is wanted through channels of their own;
//! a slow or hostile peer can make them late, and never the loop. The thread is started when something first needs
//! it, so a supervisor that speaks to nobody has none.

mod body;
pub(crate) mod fuzz;
pub(crate) mod http;
pub(crate) mod resolve;
mod rest;
pub(crate) mod serve;
pub(crate) mod wire;
mod write_timeout;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle as TaskHandle;

pub(crate) use self::rest::Used;

/// A task as the runtime keeps it: one kind for all, because the runtime has much to say about each kind.
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins a task beside the one that calls.
pub(crate) fn begin(task: impl Future<Output = ()> + Send + 'static) {
    begin_on(&Handle::current(), task);
}

/// Begins a task on the network's thread, which can be ended early.
pub(crate) fn begin_on(tasks: &Handle, task: impl Future<Output = ()> + Send + 'static) -> TaskHandle<()> {
    let task: Task = Box::pin(task);
    tasks.spawn(task)
}

/// The thread, as the loop holds it.
#[derive(Debug)]
pub(crate) struct Net {
    tasks: Handle,
    used: Used,
    /// Dropped, it ends the thread.
    end: Option<oneshot::Sender<()>>,
    ended: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Net {
    /// Starts the thread. Signals are blocked in it as they are in the loop's, which holds them for the whole process.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let tasks = runtime.handle().clone();
        let (used, resting) = rest::rest();
        drop(begin_on(&tasks, resting));
        let (end, asked_to_end) = oneshot::channel::<()>();
        let (tell_ended, ended) = mpsc::channel();
        let thread = std::thread::Builder::new().name("network".to_owned()).spawn(move || {
            // An error means that the other end is gone, which is the same request.
            let _ = runtime.block_on(asked_to_end);
            // Tasks that wait for a name to be resolved have threads of their own, which nobody waits for.
            runtime.shutdown_background();
            drop(tell_ended);
        })?;
        Ok(Self { tasks, used, end: Some(end), ended, thread: Some(thread) })
    }

    /// Begins a task on the network's thread.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(begin_on(&self.tasks, task));
    }

    /// Where those who are asked note it.
    pub(crate) fn used(&self) -> Used {
        self.used.clone()
    }

    /// The thread's tasks, for whoever has to enter them.
    pub(crate) fn handle(&self) -> &Handle {
        &self.tasks
    }

    /// Ends every task, and waits for the thread, though not beyond the deadline.
    pub(crate) fn finish(mut self, deadline: Instant) {
        drop(self.end.take());
        let write_timeout = deadline.saturating_duration_since(Instant::now());
        // Nothing is ever sent: it is the end of the sender that is waited for.
        if self.ended.recv_timeout(write_timeout) == Err(mpsc::RecvTimeoutError::Disconnected)
            && let Some(thread) = self.thread.take()
        {
            // A panic in there was told by the hook.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn e7_a_task_runs_beside_the_caller_and_ends_with_the_thread() {
        let net = Net::start().unwrap();
        let (sender, receiver) = mpsc::channel();
        net.spawn(async move {
            sender.send("begun").unwrap();
            std::future::pending::<()>().await;
            drop(sender);
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok("begun"));
        net.finish(Instant::now() + Duration::from_secs(30));
        assert_eq!(
            receiver.recv_timeout(Duration::from_secs(30)),
            Err(mpsc::RecvTimeoutError::Disconnected),
            "the task is gone"
        );
    }

    #[test]
    fn e7_a_panic_in_a_task_does_not_end_the_others() {
        let net = Net::start().unwrap();
        net.spawn(async { panic!("for the test") });
        let (sender, receiver) = mpsc::channel();
        net.spawn(async move { sender.send(1).unwrap() });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(1));
        net.finish(Instant::now() + Duration::from_secs(30));
    }
}
