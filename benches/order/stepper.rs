//! Runs a program one instruction after the other.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::map::Map;
use crate::{PATIENCE, QUIET};

/// What happens to the supervisor, after nothing has happened in it for so many times, or after a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) quiet: u32,
    pub(crate) signal: Signal,
}

/// When a function was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// As one of the last before a thread came to rest: these stay in memory.
    Resting,
    /// After everything had been started.
    Lasting,
    /// Before that.
    Starting,
}

/// Which functions were used, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    used: Vec<(Phase, usize)>,
    known: HashSet<(Phase, usize)>,
}

impl Seen {
    fn add(&mut self, phase: Phase, function: usize) {
        if self.known.insert((phase, function)) {
            self.used.push((phase, function));
        }
    }

    /// Their names.
    pub(crate) fn names<'a>(&self, map: &'a Map, phase: Phase) -> Vec<&'a str> {
        self.used.iter().filter(|(used, _)| *used == phase).map(|(_, place)| map.name(*place)).collect()
    }
}

/// The last functions of a thread.
type Recent = VecDeque<usize>;
const RECENT: usize = 12;

/// Runs the binary to its end.
#[expect(clippy::zombie_processes, reason = "the tracer waits for it, as for everybody")]
pub(crate) fn run(binary: &Path, words: &[String], steps: &[Step], map: &Map, seen: &mut Seen) {
    // A shell reads a line first, so that there is time to begin.
    let mut child = Command::new("sh")
        .args(["-c", "read go && exec \"$0\" \"$@\" </dev/null"])
        .arg(binary)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let main = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let options = Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    // When the supervisor gives its code back to the kernel, everything is started.
    let settled = map.start("__madvise").or_else(|| map.start("madvise")).expect("the binary calls madvise");
    let (mut begun, mut lasting) = (false, false);
    let mut steps = steps.iter();
    let (mut next, mut quiet) = (steps.next(), 0);
    let (mut last, mut since) = (Instant::now(), Instant::now());
    let mut recent: HashMap<Pid, Recent> = HashMap::new();
    loop {
        let status = waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)).unwrap();
        if lasting && let Some(step) = next.filter(|step| quiet >= step.quiet || since.elapsed() > PATIENCE) {
            kill(main, step.signal).unwrap();
            (quiet, since, next) = (0, Instant::now(), steps.next());
        }
        let (pid, pass_on) = match status {
            WaitStatus::StillAlive => {
                if last.elapsed() > QUIET {
                    (quiet, last) = (quiet + 1, Instant::now());
                    for function in recent.values().flatten().filter(|_| lasting) {
                        seen.add(Phase::Resting, *function);
                    }
                }
                continue;
            }
            WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) if pid == main => return,
            WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_EXEC) if pid != main => {
                // From here on it is somebody else's program.
                let _ = ptrace::detach(pid, None);
                recent.remove(&pid);
                continue;
            }
            WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_EXEC) => {
                begun = true;
                (pid, None)
            }
            WaitStatus::PtraceEvent(pid, ..) => (pid, None),
            WaitStatus::Stopped(pid, signal) => {
                (pid, Some(signal).filter(|signal| *signal != Signal::SIGTRAP))
            }
            _ => continue,
        };
        last = Instant::now();
        if !begun {
            let _ = ptrace::cont(pid, pass_on);
            continue;
        }
        if let Ok(registers) = ptrace::getregs(pid) {
            lasting |= registers.rip == settled && registers.rdx == libc::MADV_DONTNEED as u64;
            if let Some(function) = map.place(registers.rip) {
                seen.add(if lasting { Phase::Lasting } else { Phase::Starting }, function);
                let recent = recent.entry(pid).or_default();
                recent.retain(|other| *other != function);
                recent.push_back(function);
                if recent.len() > RECENT {
                    recent.pop_front();
                }
            }
        }
        let _ = ptrace::step(pid, pass_on);
    }
}
