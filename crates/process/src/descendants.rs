//! No process outlives the supervisor (S4).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use containerpilot_core::plan::Signal;

use crate::proc;
use crate::sys::{self, WaitState};

/// How long to wait for the exit of killed processes.
const WAIT: Duration = Duration::from_millis(1);

/// Kills every descendant, generation by generation: the children of a process that exits become ours. As PID 1 that is
/// left to the kernel, which kills the whole PID namespace.
///
/// Nothing is reaped before all have exited: until then they count for the limits on processes, and a fork bomb cannot
/// replace those that were killed.
///
/// Returns how many killed children have not exited at the deadline.
pub fn kill_descendants(deadline: Instant) -> usize {
    if std::process::id() == 1 || sys::wait_nowait() == Ok(WaitState::NoChild) {
        return 0;
    }
    let mut killed = BTreeSet::new();
    loop {
        // Before the list is read: the children of a process that has exited are in the list.
        let running =
            killed.iter().filter(|pid| sys::wait_pid_nowait(**pid) == Ok(WaitState::Running)).count();
        let Ok(children) = proc::all_children() else { return 0 };
        let count = killed.len();
        for pid in children {
            if killed.insert(pid) {
                let _ = sys::kill_process(pid, Signal::KILL);
            }
        }
        if killed.len() == count {
            if running == 0 {
                for pid in killed {
                    let _ = sys::reap(pid);
                }
                return 0;
            }
            std::thread::sleep(WAIT);
        }
        if Instant::now() >= deadline {
            return running + killed.len() - count;
        }
    }
}
