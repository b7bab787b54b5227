//! Whether an unhealthy process is ended, so that a new one takes its place (H8).

use crate::effect::KillReason;
use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::LogEvent;
use crate::plan::Level;
use crate::state::phase::Phase;
use crate::supervisor::Core;

impl Core {
    /// H8: sends the stop signal to an unhealthy run, so that the job is restarted.
    pub(crate) fn replace_unhealthy_run(&mut self, job: JobIx) {
        if self.phase != Phase::Running || !self.job(job).is_up() {
            return;
        }
        let Some(run) = self.job_mut(job).run_mut() else { return };
        // A check that flaps while the process exits must not extend its time.
        if core::mem::replace(&mut run.replaced, true) {
            return;
        }
        if !self.may_restart(job, true) {
            // No process would be worse than an unhealthy one.
            let why = match self.planned(job).restart_on.includes(true) {
                true => "no restarts left",
                false => "it is only restarted after a success",
            };
            let message = format_args!("unhealthy, not restarting: {why}");
            return self.log(Level::Warn, Some(job), Code::Unhealthy, message);
        }
        let signal = self.planned(job).stop.signal;
        let fields = LogEvent::Restarting.fields().signal(signal).cause(Code::Unhealthy.name());
        self.log(Level::Info, Some(job), fields, format_args!("unhealthy, restarting: sent {signal}"));
        self.send_stop_signal(job, signal, KillReason::Unhealthy);
        self.begin_escalation(job);
    }
}
