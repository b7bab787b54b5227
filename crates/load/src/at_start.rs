//! Loads the configuration at the start (C1, S1).
//!
//! Loading can take forever: the configuration may be a FIFO without a writer, or name a program on a file system that
//! does not answer. So it is loaded on its own thread, while this one waits for a stop signal.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, mpsc};

use containerpilot_config::diagnostics::Report;
use containerpilot_core::plan::Plan;
use containerpilot_process::signals;
use containerpilot_process::sys::{self, Waker};

use crate::command_line::{LoadError, Source};
use crate::host;

/// The source, with the text of standard input if it is that, and what was loaded from it.
pub type Loaded = (Source, Result<(Plan, Report), LoadError>);

/// Loads the configuration. Returns `None` if a stop signal arrives first: nothing has been started then.
pub fn load(source: Source) -> io::Result<Option<Loaded>> {
    let stop = signals::stop_requested()?;
    let done = Arc::new(Waker::new()?);
    let (sender, receiver) = mpsc::channel();
    let work = {
        let (source, done) = (source.clone(), WakeOnDrop(Arc::clone(&done)));
        move || {
            let _done = done;
            let _ = sender.send(load_now(source));
        }
    };
    if std::thread::Builder::new().name("load".to_owned()).spawn(work).is_err() {
        // Without a thread it is still better to load than not to start.
        return Ok(Some(load_now(source)));
    }
    let mut fds = [done.as_fd(), stop.as_fd()].map(|fd| sys::poll_fd(fd.as_raw_fd(), sys::POLLIN));
    loop {
        let failed = sys::poll(&mut fds, None).is_err();
        if failed {
            std::thread::sleep(sys::POLL_FAILED_DELAY);
        }
        match receiver.try_recv() {
            Ok(loaded) => return Ok(Some(loaded)),
            // The panic was reported on the thread.
            Err(mpsc::TryRecvError::Disconnected) => {
                return Err(io::Error::other("internal error while loading the configuration"));
            }
            Err(mpsc::TryRecvError::Empty) if !failed && fds[1].revents != 0 => return Ok(None),
            Err(mpsc::TryRecvError::Empty) => {}
        }
    }
}

fn load_now(mut source: Source) -> Loaded {
    let loaded = match source.read_stdin() {
        Ok(()) => source.load(host::supervisor_environment()),
        Err(error) => Err(error.into()),
    };
    (source, loaded)
}

/// Wakes the waiting thread, also after a panic.
struct WakeOnDrop(Arc<Waker>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}
