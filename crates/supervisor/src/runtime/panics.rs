//! Handles panics: a panic is logged with its location, and the supervisor continues.

use std::any::Any;
use std::cell::Cell;
use std::io::Write;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use containerpilot_core::effect::Exit;
use containerpilot_core::plan::Level;

use super::{Decider, Runtime};
use crate::messages::{LoopMessage, LoopSender};

/// How long deadlines, starts, connections and checks are ignored after a panic, so that it cannot fail in a busy loop.
const PAUSE: Duration = Duration::from_secs(1);

/// The last panic of the loop with its location, until it is logged.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// How many calls of [`caught`] are active on this thread.
    static CAUGHT: Cell<u32> = const { Cell::new(0) };
}

/// Does some work of the loop. A panic becomes an error: its message and location, which is all that is known of it.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    CAUGHT.set(CAUGHT.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(CAUGHT.get() - 1);
    done.map_err(|panic| {
        let known = LAST_PANIC.lock().ok().and_then(|mut message| message.take());
        known.unwrap_or_else(|| message(panic.as_ref()))
    })
}

impl<D: Decider> Runtime<D> {
    /// Handles one source of the loop. After a panic the other sources are handled as usual, and so is what this source
    /// has queued. Returns `None` after a panic.
    pub(super) fn guarded<T>(&mut self, during: &str, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        match caught(|| work(self)) {
            Ok(result) => Some(result),
            Err(message) => {
                self.survive_panic(during, &message);
                None
            }
        }
    }

    /// See [`Runtime::guarded`].
    pub(super) fn guarded_flow(
        &mut self,
        during: &str,
        work: impl FnOnce(&mut Self) -> ControlFlow<Exit>,
    ) -> ControlFlow<Exit> {
        self.guarded(during, work).unwrap_or(ControlFlow::Continue(()))
    }

    /// Logs a panic that was caught, and pauses what may have caused it.
    pub(super) fn survive_panic(&mut self, during: &str, message: &str) {
        self.log_panic(during, message);
        self.paused_until = Some(Instant::now() + PAUSE);
    }

    /// Ends the recording after a panic in it: it may be half written. Nothing else depends on it.
    pub(super) fn survive_recording(&mut self, recorded: Result<(), String>) {
        if let Err(message) = recorded {
            self.recording.give_up();
            self.log_panic("recording, nothing more is recorded", &message);
        }
    }

    pub(super) fn log_panic(&self, during: &str, message: &str) {
        self.log(Level::Panic, &format!("internal error while {during}: {message}; please report it"));
    }
}

/// Installs the panic hook. Must be called on the loop's thread.
pub(super) fn install_hook(sender: LoopSender) {
    let loop_thread = thread::current().id();
    std::panic::set_hook(Box::new(move |info| report(info, loop_thread, &sender)));
}

/// Keeps a panic of the loop for the log, and sends those of other threads to it. A panic that is not caught, and one
/// during the exit, when no loop receives it, go to standard error.
fn report(info: &PanicHookInfo<'_>, loop_thread: ThreadId, sender: &LoopSender) {
    let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
    let message = format!("{}{}", message(info.payload()), place.unwrap_or_default());
    if thread::current().id() == loop_thread {
        if CAUGHT.get() == 0 {
            return print(&format!("internal error: {message}; please report it"));
        }
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = Some(message);
        }
        return;
    }
    let name = thread::current().name().unwrap_or("unnamed").to_owned();
    let message = format!("internal error on the {name} thread: {message}; please report it");
    if !sender.send(LoopMessage::Log(Level::Panic, message.clone())) {
        print(&message);
    }
}

/// Prints a message to standard error, if it is open.
pub(super) fn print(message: &str) {
    let _ = writeln!(std::io::stderr(), "containerpilot: {message}");
}

/// The message of a panic.
pub(super) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
