//! Loads the configuration at the start (C1, S1).
//!
//! Loading can take forever: the configuration may be a FIFO without a writer, or on a file system that does not
//! answer. So all looks at files are done on another thread, and this one waits for them or for a stop signal (P15).

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use containerpilot_config::diagnostics::Report;
use containerpilot_core::plan::Plan;
use containerpilot_process::signals;

use crate::config_source::{ConfigSource, LoadError};
use crate::host;
use crate::looks::Looks;

/// The source, with the text of standard input if it is that, and what was loaded from it.
pub type StartupLoad = (ConfigSource, Result<(Plan, Report), LoadError>);

/// Loads the configuration. Returns `None` if a stop signal arrives first: nothing has been started then.
pub fn load(mut source: ConfigSource) -> io::Result<Option<StartupLoad>> {
    let looks = Rc::new(Looks::reported_on_stderr().until(signals::stop_requested()?));
    let loaded = catch_unwind(AssertUnwindSafe(|| match source.read_stdin(&looks) {
        Ok(()) => source.load(host::supervisor_environment(), &looks),
        Err(error) => Err(error.into()),
    }));
    // The panic has been reported.
    let loaded = loaded.map_err(|_| io::Error::other("internal error while loading the configuration"))?;
    Ok((!looks.is_stopped()).then_some((source, loaded)))
}
