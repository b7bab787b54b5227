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

use crate::map::{Map, Things};
use crate::touched::{Registers, touched};
use crate::{PATIENCE, QUIET};

/// What happens to the supervisor, after nothing has happened in it for so many times, or after a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) quiet: u32,
    pub(crate) signal: Signal,
}

/// What is run, with what words, and what happens to it.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) words: Vec<String>,
    pub(crate) steps: Vec<Step>,
    /// Nothing happens in it but a signal.
    pub(crate) calm: bool,
}

/// When a function or a constant was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// As one of the last before a thread came to rest, where nothing happens: these stay in memory.
    Resting,
    /// From a signal until it was passed on: somebody waits for that.
    Urgent,
    /// As one of the last before everything rested, where something happens now and then.
    Waiting,
    /// After everything had been started.
    Lasting,
    /// Before that.
    Starting,
}

/// What was used, in the order of the first use.
#[derive(Debug, Default)]
pub(crate) struct Used {
    used: Vec<(Phase, usize)>,
    known: HashSet<(Phase, usize)>,
}

impl Used {
    fn add(&mut self, phase: Phase, place: usize) {
        if self.known.insert((phase, place)) {
            self.used.push((phase, place));
        }
    }

    /// The names of what was used in a phase.
    pub(crate) fn names<'a>(&self, things: &'a Things, phase: Phase) -> Vec<&'a str> {
        let places = self.used.iter().filter(|(used, _)| *used == phase);
        places.map(|(_, place)| things.name(*place)).filter(|name| !name.is_empty()).collect()
    }
}

/// What was used of each kind.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) functions: Used,
    pub(crate) constants: Used,
}

/// What a thread has used last.
#[derive(Debug, Default)]
struct Recent {
    functions: VecDeque<usize>,
    constants: VecDeque<usize>,
    /// It has given the code back, and has not come to rest since: whatever it uses stays in memory.
    released: bool,
}

/// So many of them count as used at rest.
const RECENT: usize = 12;

fn remember(recent: &mut VecDeque<usize>, place: usize, all: bool) {
    recent.retain(|other| *other != place);
    recent.push_back(place);
    if recent.len() > RECENT && !all {
        recent.pop_front();
    }
}

/// Runs the binary to its end.
#[expect(clippy::zombie_processes, reason = "the tracer waits for it, as for everybody")]
pub(crate) fn run(binary: &Path, scene: &Scene, map: &Map, seen: &mut Seen) {
    let Scene { words, steps, calm } = scene;
    let resting = if *calm { Phase::Resting } else { Phase::Waiting };
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
    let start = |names: [&str; 2]| names.iter().find_map(|name| map.functions.start(name));
    let settled = start(["__madvise", "madvise"]).expect("the binary calls madvise");
    let passed_on = start(["__kill", "kill"]).expect("the binary calls kill");
    let (mut begun, mut lasting, mut urgent) = (false, false, false);
    let mut steps = steps.iter();
    let (mut next, mut quiet) = (steps.next(), 0);
    let (mut last, mut since) = (Instant::now(), Instant::now());
    let mut recent: HashMap<Pid, Recent> = HashMap::new();
    loop {
        let status = waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)).unwrap();
        if lasting && let Some(step) = next.filter(|step| quiet >= step.quiet || since.elapsed() > PATIENCE) {
            kill(main, step.signal).unwrap();
            urgent = *calm;
            (quiet, since, next) = (0, Instant::now(), steps.next());
        }
        let (pid, pass_on) = match status {
            WaitStatus::StillAlive => {
                if last.elapsed() > QUIET {
                    (quiet, last) = (quiet + 1, Instant::now());
                    for recent in recent.values_mut().filter(|_| lasting) {
                        let Recent { functions, constants, .. } = std::mem::take(recent);
                        functions.iter().for_each(|place| seen.functions.add(resting, *place));
                        constants.iter().for_each(|place| seen.constants.add(resting, *place));
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
            let releases = registers.rip == settled && registers.rdx == libc::MADV_DONTNEED as u64;
            if releases && !lasting {
                (lasting, since) = (true, Instant::now());
            }
            let phase = match (lasting, urgent && pid == main) {
                (false, _) => Phase::Starting,
                (true, false) => Phase::Lasting,
                (true, true) => Phase::Urgent,
            };
            urgent &= pid != main || registers.rip != passed_on;
            let recent = recent.entry(pid).or_default();
            if releases {
                *recent = Recent { released: true, ..Recent::default() };
            }
            if let Some(function) = map.functions.place(registers.rip) {
                seen.functions.add(phase, function);
                remember(&mut recent.functions, function, recent.released);
            }
            let touched = touched(map.code(registers.rip), &Registers::from(&registers));
            for constant in touched.into_iter().filter_map(|address| map.constants.place(address)) {
                seen.constants.add(phase, constant);
                remember(&mut recent.constants, constant, recent.released);
            }
        }
        let _ = ptrace::step(pid, pass_on);
    }
}
