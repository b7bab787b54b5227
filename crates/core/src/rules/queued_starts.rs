//! Processes that had to wait in the start queue for their turn (P14), and programs that are done: checks, drain
//! programs and tests of files. `state/start_queue.rs` decides whose turn it is.

use crate::ids::CheckRunId;
use crate::input::CheckError;
use crate::state::start_queue::NewProcess;
use crate::supervisor::Core;
use crate::supervisor::plan_state::Parts;

impl Core {
    /// P14: it is the turn of a start that had to wait.
    pub(crate) fn begin_turn(&mut self, process: NewProcess) {
        match process {
            NewProcess::Job(run) => {
                let job = self.plan_state.runs.get(&run).copied();
                if let Some(job) = job.filter(|job| self.job(*job).queued_run() == Some(run)) {
                    let environment = self.environment_of_decision(job);
                    self.create_process(job, run, environment);
                }
            }
            NewProcess::Program(run) => self.create_program(run),
        }
    }

    fn create_program(&mut self, run: CheckRunId) {
        if let Some((job, check)) = self.plan_state.check_runs.get(&run).copied() {
            self.create_check(job, check, run);
        } else if let Some(job) = self.job_of_drain(run) {
            self.run_drain(job, run);
        } else {
            self.tell(|parts, context| parts.files.run_test(run, context));
        }
    }

    /// A program is done: a check, a drain program or the test of a file, unless it was cancelled.
    pub(crate) fn program_done(&mut self, run: CheckRunId, result: Result<(), CheckError>) {
        self.starts.end(NewProcess::Program(run));
        if self.plan_state.check_runs.contains_key(&run) {
            self.check_done(run, result);
        } else if !self.drain_done(run, &result) {
            self.tell(|Parts { files, watches, .. }, context| files.test_done(run, result, watches, context));
        }
    }
}
