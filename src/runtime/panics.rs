//! Handles panics: a panic is logged with its location, and the supervisor continues.

use std::any::Any;
use std::panic::PanicHookInfo;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use containerpilot_core::plan::Level;

use super::{Decider, Runtime};
use crate::runtime::channel::{LoopMessage, LoopSender};

/// How long the core's deadlines are ignored after a panic, so that it cannot fail in a busy loop.
const PAUSE: Duration = Duration::from_secs(1);

/// The last panic of the loop with its location, until it is logged.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

impl<D: Decider> Runtime<D> {
    /// Logs a panic that was caught.
    pub(super) fn survive_panic(&mut self, during: &str, panic: &(dyn Any + Send)) {
        let known = LAST_PANIC.lock().ok().and_then(|mut message| message.take());
        let message = known.unwrap_or_else(|| message(panic));
        self.log(Level::Panic, &format!("internal error while {during}: {message}; please report it"));
        self.paused_until = Some(Instant::now() + PAUSE);
    }
}

/// Installs the panic hook. Must be called on the loop's thread.
pub(super) fn install_hook(sender: LoopSender) {
    let loop_thread = thread::current().id();
    std::panic::set_hook(Box::new(move |info| report(info, loop_thread, &sender)));
}

/// Keeps a panic of the loop for the log, and sends those of other threads to it. During the exit, when no loop receives
/// them, they go to standard error.
fn report(info: &PanicHookInfo<'_>, loop_thread: ThreadId, sender: &LoopSender) {
    let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
    let message = format!("{}{}", message(info.payload()), place.unwrap_or_default());
    if thread::current().id() == loop_thread {
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = Some(message);
        }
        return;
    }
    let name = thread::current().name().unwrap_or("unnamed").to_owned();
    let message = format!("internal error on the {name} thread: {message}; please report it");
    if !sender.send(LoopMessage::Log(Level::Panic, message.clone())) {
        eprintln!("containerpilot: {message}");
    }
}

/// The message of a panic.
pub(super) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
