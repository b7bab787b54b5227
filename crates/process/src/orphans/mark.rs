//! The variable by which the processes of a run are found (P4, P7).
//!
//! The processes of a job's checks have the mark of the job's run: a daemon that a check starts ends with that run.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use containerpilot_core::ids::RunId;

/// The name of the variable.
pub const MARK: &str = "CONTAINERPILOT_RUN";

/// The key of the codes. Only this process has it.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The value of the variable: `PID-RUN-CODE`. It has the pid of the supervisor, because a job may be a supervisor itself,
/// and a code that follows from both: a process cannot pretend to belong to a run whose mark it has not seen.
pub fn mark(run: RunId) -> String {
    let supervisor = std::process::id();
    format!("{supervisor}-{}-{:016x}", run.0, KEY.hash_one((supervisor, run.0)))
}

/// The run with this mark. `None` if this supervisor has not set it.
pub(super) fn run_of(found: &[u8]) -> Option<RunId> {
    let run = std::str::from_utf8(found).ok()?.split('-').nth(1)?;
    let run = RunId(run.parse().ok()?);
    (mark(run).as_bytes() == found).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p7_marks_name_a_run_of_this_supervisor() {
        for run in [RunId(7), RunId(u64::MAX)] {
            assert_eq!(run_of(mark(run).as_bytes()), Some(run));
        }
        let known = mark(RunId(7));
        let invented = known.replacen("-7-", "-8-", 1);
        let own = format!("{}-7", std::process::id());
        for foreign in ["", "7", "0-7", "x-7", &own, &format!("{own}-"), &format!("{own}-0"), &invented] {
            assert_eq!(run_of(foreign.as_bytes()), None, "{foreign}");
        }
    }
}
