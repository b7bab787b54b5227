//! The network thread: everything that waits for a peer runs here.
//!
//! Consul, the control socket and telemetry are tasks of one single-threaded tokio runtime. They report to the event
//! loop through its [`LoopSender`](crate::messages::LoopSender) and receive commands through channels. A slow or
//! hostile peer can delay these tasks, never the event loop. The thread is started when something first needs it.

pub(crate) mod connect;
pub(crate) mod http_client;
pub(crate) mod http_probe;
pub(crate) mod limits;
pub(crate) mod resolve;
mod response_body;
pub(crate) mod server;
pub(crate) mod tls;

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The event loop's handle of the network thread.
#[derive(Debug)]
pub(crate) struct Net {
    runtime: Handle,
    /// Dropping it stops the thread.
    stop: Option<oneshot::Sender<()>>,
    /// Disconnected when the thread has stopped.
    stopped: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Net {
    /// Starts the thread. It inherits the event loop's signal mask, which blocks every signal.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stop_requested) = oneshot::channel::<()>();
        let (stopped_sender, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("network".to_owned()).spawn(move || {
            // An error means that the sender was dropped, which is the request.
            let _ = runtime.block_on(stop_requested);
            drop(runtime);
            drop(stopped_sender);
        })?;
        Ok(Self { runtime: handle, stop: Some(stop), stopped, thread: Some(thread) })
    }

    /// Starts a task on the network thread.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.runtime
    }

    /// Stops every task and waits for the thread, at most until the deadline.
    pub(crate) fn finish(mut self, deadline: Instant) {
        drop(self.stop.take());
        let left = deadline.saturating_duration_since(Instant::now());
        if self.stopped.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Disconnected)
            && let Some(thread) = self.thread.take()
        {
            // The panic hook has logged a panic in there.
            let _ = thread.join();
        }
    }
}

/// The network thread, started when something first needs it. If that fails, the next use tries again.
#[derive(Debug, Default)]
pub(crate) struct LazyNet(Option<Net>);

impl LazyNet {
    /// The thread; started on first use.
    pub(crate) fn get(&mut self) -> io::Result<&Net> {
        match &mut self.0 {
            Some(net) => Ok(net),
            none => Ok(none.insert(Net::start()?)),
        }
    }

    /// The thread, if it was started.
    pub(crate) fn into_started(self) -> Option<Net> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn e7_a_task_runs_concurrently_and_stops_with_the_thread() {
        let net = Net::start().unwrap();
        let (sender, receiver) = mpsc::channel();
        net.spawn(async move {
            sender.send("started").unwrap();
            std::future::pending::<()>().await;
            drop(sender);
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok("started"));
        net.finish(Instant::now() + Duration::from_secs(30));
        let after = receiver.recv_timeout(Duration::from_secs(30));
        assert_eq!(after, Err(mpsc::RecvTimeoutError::Disconnected), "the task was dropped");
    }

    #[test]
    fn e7_a_panic_in_a_task_does_not_stop_the_others() {
        let net = Net::start().unwrap();
        net.spawn(async { panic!("for the test") });
        let (sender, receiver) = mpsc::channel();
        net.spawn(async move { sender.send(1).unwrap() });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(1));
        net.finish(Instant::now() + Duration::from_secs(30));
    }
}
