//! Says after a failure where the recording of it is (B2).

use crate::ids::JobIx;
use crate::log_entry::LogEvent;
use crate::plan::Level;
use crate::supervisor::Core;

impl Core {
    /// A job has failed for good, or the supervisor exits with a failure.
    pub(crate) fn name_recording(&mut self, job: Option<JobIx>) {
        let Some(file) = &self.plan().record.file else { return };
        let path = file.path.clone();
        self.log(
            Level::Warn,
            job,
            LogEvent::Recorded,
            format_args!("what led to this is recorded in {path}"),
        );
    }
}
