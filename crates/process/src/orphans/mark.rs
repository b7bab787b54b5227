//! The variable by which the processes of a run are found (P4, P7).
//!
//! The processes of a job's checks have the mark of the job's run: a daemon that a check starts ends with that run.

use containerpilot_core::ids::RunId;

/// The name of the variable.
pub const MARK: &str = "CONTAINERPILOT_RUN";

/// The value of the variable: `PID-RUN`. It has the pid of the supervisor, because a job may be a supervisor itself.
pub fn mark(run: RunId) -> String {
    format!("{}-{}", std::process::id(), run.0)
}

/// The run with this mark. `None` if another supervisor has set it.
pub(super) fn run_of(mark: &[u8]) -> Option<RunId> {
    let (supervisor, run) = std::str::from_utf8(mark).ok()?.split_once('-')?;
    let is_own = supervisor == std::process::id().to_string();
    run.parse().ok().filter(|_| is_own).map(RunId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p7_marks_name_a_run_of_this_supervisor() {
        for run in [RunId(7), RunId(u64::MAX)] {
            assert_eq!(run_of(mark(run).as_bytes()), Some(run));
        }
        for foreign in ["", "7", "0-7", "x-7", &format!("{}-", std::process::id())] {
            assert_eq!(run_of(foreign.as_bytes()), None, "{foreign}");
        }
    }
}
