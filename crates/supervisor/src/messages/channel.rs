//! A channel to a thread that waits in a system call: sending also wakes it.

use std::io;
use std::sync::Arc;

use containerpilot_process::sys::Waker;

use super::sync::mpsc;

/// The receiving end. It keeps a sender, so the channel never closes while it exists.
#[derive(Debug)]
pub(crate) struct Receiver<T> {
    receiver: mpsc::Receiver<T>,
    sender: Sender<T>,
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sender<T> {
    sender: mpsc::Sender<T>,
    waker: Arc<Waker>,
}

impl<T> Receiver<T> {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        Ok(Self { receiver, sender: Sender { sender, waker: Arc::new(Waker::new()?) } })
    }

    pub(crate) fn sender(&self) -> Sender<T> {
        self.sender.clone()
    }

    /// Its descriptor is readable when there are messages.
    pub(crate) fn waker(&self) -> &Waker {
        &self.sender.waker
    }

    /// Takes all messages that have arrived. The waker is cleared first: a message that arrives meanwhile sets it
    /// again.
    pub(crate) fn take(&self) -> impl Iterator<Item = T> {
        self.waker().clear();
        std::iter::from_fn(|| self.receiver.try_recv().ok())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }
}

impl<T> Sender<T> {
    /// Sends a message. Returns false if the receiver is gone.
    pub(crate) fn send(&self, message: T) -> bool {
        let sent = self.sender.send(message).is_ok();
        if sent {
            self.waker.wake();
        }
        sent
    }
}
