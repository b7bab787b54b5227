//! Actions of the supervisor in place of a program (W19).
//!
//! A run of an action begins and ends in one step. It is queued when the job is started, and performed before the next
//! event is dispatched: an action that starts another action does not nest.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::effect::Effect;
use crate::event::Code;
use crate::ids::{JobIx, RunId};
use crate::input::ExitStatus;
use crate::log_entry::Fields;
use crate::plan::{Action, Level};
use crate::request::{JobReply, Refusal, Reply};
use crate::state::exit_codes::ExitReason;
use crate::state::phase::Phase;
use crate::state::run::LastExit;
use crate::supervisor::Core;

impl Core {
    /// Performs the action of a job, unless the job was stopped meanwhile.
    pub(crate) fn perform_action(&mut self, job: JobIx) {
        let plan = self.shared_plan();
        let action = plan.jobs.get(job.index()).and_then(|planned| planned.exec.action());
        let (Some(run), Some(action)) = (self.job(job).action_run(), action) else { return };
        self.begin_run(job);
        self.job_mut(job).started_at = Some(self.now);
        // What the action causes is caused by what started it.
        self.current_event = self.job(job).cause_event().map(|event| event.id);
        self.acting = Some(job);
        let result = self.perform(job, action);
        self.acting = None;
        let shuts_down = result.is_ok() && matches!(action, Action::Shutdown(_));
        self.action_ended(job, run, result);
        if let (true, Action::Shutdown(code)) = (shuts_down, action) {
            let name = &self.planned(job).name;
            let (words, cause) = (format!("requested by {name}"), format!("{name} {}", Code::ExitSuccess));
            self.exit_codes.decided = Some(ExitReason { code: *code, words, cause });
            self.shut_down();
        }
        self.current_event = None;
    }

    /// Ends the run of an action: with success, or with the reason why it was refused.
    fn action_ended(&mut self, job: JobIx, run: RunId, result: Result<String, Refusal>) {
        let status = ExitStatus::Code(u8::from(result.is_err()));
        let cause = self.cause_words(job);
        let fields = |code| Fields { cause: cause.map(Into::into), ..Fields::from(code) };
        match &result {
            Ok(done) => self.log(Level::Info, Some(job), fields(Code::ExitSuccess), format_args!("{done}")),
            Err(why) => {
                let level = self.failure_level(job, status);
                self.log(level, Some(job), fields(Code::ExitFailed), format_args!("refused: {why}"));
            }
        }
        let now = self.now;
        let state = self.job_mut(job);
        state.set_failure(result.is_err().then_some(status.code()), false);
        state.start_error = result.err().map(|refusal| refusal.to_string());
        let exit = LastExit::new(run, self.planned(job), status, now, None);
        self.run_ended(job, exit);
    }

    /// Performs an action. Returns what was done, or why it was refused.
    fn perform(&mut self, job: JobIx, action: &Action) -> Result<String, Refusal> {
        match action {
            Action::Signal(signal, _) => self.on_targets(job, |core, job| core.request_signal(job, *signal)),
            Action::Start(_) => {
                self.on_targets(job, |core, job| core.request_for_job(job, Self::request_start))
            }
            Action::Stop(_) => {
                self.on_targets(job, |core, job| core.request_for_job(job, Self::request_stop))
            }
            Action::Restart(_) => {
                self.on_targets(job, |core, job| core.request_for_job(job, Self::request_restart))
            }
            Action::Maintenance(on) => match (self.set_maintenance(*on), on) {
                (Reply::Refused(why), _) => Err(why),
                (Reply::Updated(false), true) => Ok("already in maintenance mode".into()),
                (Reply::Updated(false), false) => Ok("not in maintenance mode".into()),
                (_, true) => Ok("entered maintenance mode".into()),
                (_, false) => Ok("left maintenance mode".into()),
            },
            Action::SetEnv(variables) => {
                self.set_variables(variables.clone());
                let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
                Ok(format!("set {}", names.join(", ")))
            }
            Action::Reload | Action::Shutdown(_) if self.phase != Phase::Running => {
                Err(Refusal::ShuttingDown)
            }
            Action::Reload => {
                self.effects.push(Effect::Reload);
                Ok("reloading the configuration".into())
            }
            Action::Shutdown(code) => Ok(format!("shutting down with code {code}")),
        }
    }

    /// Does something to each target.
    fn on_targets(
        &mut self,
        job: JobIx,
        request: impl Fn(&mut Self, JobIx) -> Reply,
    ) -> Result<String, Refusal> {
        let targets = self.plan_state.graph.targets(job).to_vec();
        let replies: Vec<(JobIx, Reply)> =
            targets.into_iter().map(|target| (target, request(self, target))).collect();
        match self.job_replies(replies).as_slice() {
            [] => Err(Refusal::NoTarget),
            replies => JobReply::combined(replies),
        }
    }
}
