//! Runs a supervisor and makes one of its system calls fail.
//!
//! `strace --inject` counts the calls of every thread by itself, so that "the first read" would fail in each of them, and a
//! step that every new process makes would fail for all of them for ever. This tracer has one count for each role (the loop,
//! the log, the network, a process that has not become its program yet), and a call fails once in all. A program is left
//! alone as soon as it is executed.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::calls;

/// Who made how many calls.
pub(crate) type Counts = BTreeMap<(String, String), u32>;

/// A call that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Who makes it.
    pub(crate) role: String,
    /// What it is called.
    pub(crate) call: String,
    /// Which of those it makes, from 1 on.
    pub(crate) nth: u32,
    /// How it fails.
    pub(crate) errno: Errno,
}

/// What the world outside may know of a run.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// The supervisor, once it runs.
    pub(crate) pid: AtomicI32,
    /// How often a call was made to fail.
    pub(crate) hits: AtomicU32,
    /// How it ended: the exit code, or 128 and the signal.
    pub(crate) ended: Mutex<Option<i32>>,
}

impl Watched {
    pub(crate) fn has_ended(&self) -> Option<i32> {
        *self.ended.lock().unwrap()
    }
}

/// What is going on in one thread.
#[derive(Debug, Default)]
struct Thread {
    /// Whether it is a new process that shares our memory until it has its program.
    is_child: bool,
    /// Whether the call that it is in is `brk`, which tells a failure in a way of its own.
    in_brk: bool,
    /// What the call that it is in will seem to have come to.
    failing: Option<Errno>,
}

struct Tracer<'a> {
    fault: Option<&'a Fault>,
    watched: &'a Watched,
    main: Pid,
    begun: bool,
    /// Where the heap ends: the answer of a `brk` that has failed.
    heap_end: u64,
    threads: HashMap<Pid, Thread>,
    counts: Counts,
}

/// Runs a command to its end, on this thread; who made how many calls.
#[expect(clippy::zombie_processes, reason = "the tracer waits for it, as for everybody")]
pub(crate) fn run(command: &mut Command, fault: Option<&Fault>, watched: &Watched) -> Counts {
    // Whoever is traced has to wait for the tracer: a shell reads a line first.
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let main = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options).unwrap();
    ptrace::interrupt(main).unwrap();
    let mut gate = child.stdin.take().unwrap();
    gate.write_all(b"\n").unwrap();
    let mut tracer = Tracer {
        fault,
        watched,
        main,
        begun: false,
        heap_end: 0,
        threads: HashMap::new(),
        counts: Counts::new(),
    };
    let code = tracer.follow();
    *watched.ended.lock().unwrap() = Some(code);
    tracer.counts
}

impl Tracer<'_> {
    fn follow(&mut self) -> i32 {
        // Of this thread's own: others trace, too.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            match waitpid(None, Some(flags)).unwrap() {
                WaitStatus::Exited(pid, code) if pid == self.main => return code,
                WaitStatus::Signaled(pid, signal, _) if pid == self.main => return 128 + signal as i32,
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                    self.threads.remove(&pid);
                }
                WaitStatus::PtraceSyscall(pid) => {
                    self.call(pid);
                    resume(pid);
                }
                WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_EXEC) => {
                    if pid == self.main {
                        // The shell before it is executed, too.
                        let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                        self.begun = program.trim() == "containerpilot";
                        self.watched.pid.store(pid.as_raw(), Ordering::SeqCst);
                        resume(pid);
                    } else {
                        self.threads.remove(&pid);
                        let _ = ptrace::detach(pid, None);
                    }
                }
                WaitStatus::PtraceEvent(pid, _, event) => {
                    if event == libc::PTRACE_EVENT_VFORK {
                        let child = ptrace::getevent(pid).unwrap_or_default();
                        let child = Pid::from_raw(i32::try_from(child).unwrap());
                        self.threads.entry(child).or_default().is_child = true;
                    }
                    resume(pid);
                }
                // A signal on its way.
                WaitStatus::Stopped(pid, signal) => drop(ptrace::syscall(pid, signal)),
                WaitStatus::Continued(_) | WaitStatus::StillAlive => {}
            }
        }
    }

    /// A thread stands at the beginning or at the end of a call.
    fn call(&mut self, pid: Pid) {
        // Whoever is killed while it stands there is gone; that is told by itself.
        let (Ok(about), Ok(mut regs)) = (ptrace::syscall_info(pid), ptrace::getregs(pid)) else { return };
        if !self.begun {
            return;
        }
        let thread = self.threads.entry(pid).or_default();
        let call = regs.orig_rax.cast_signed();
        if about.op == libc::PTRACE_SYSCALL_INFO_EXIT {
            if let Some(errno) = thread.failing.take() {
                let failed = (-i64::from(errno as i32)).cast_unsigned();
                regs.rax = if thread.in_brk { self.heap_end } else { failed };
                let _ = ptrace::setregs(pid, regs);
            } else if thread.in_brk {
                self.heap_end = regs.rax;
            }
            return;
        }
        thread.in_brk = call == libc::SYS_brk;
        let role = role(self.main, pid, thread.is_child);
        let name = calls::name(call, |name| match name {
            "fcntl" => command(regs.rsi),
            // Two that wait, with or without a mask; all others wake somebody, which cannot fail.
            "futex" if matches!(regs.rsi & 0x7f, 0 | 9) => "wait",
            "futex" => "wake",
            _ => descriptor(self.main, regs.rdi),
        });
        let count = self.counts.entry((role.clone(), name.clone())).or_default();
        *count += 1;
        if let Some(fault) = self.fault
            && (fault.nth, &fault.call, &fault.role) == (*count, &name, &role)
        {
            thread.failing = Some(fault.errno);
            self.watched.hits.fetch_add(1, Ordering::SeqCst);
            // The kernel closes a descriptor also when it reports an error.
            if call != libc::SYS_close {
                regs.orig_rax = u64::MAX;
                let _ = ptrace::setregs(pid, regs);
            }
        }
    }
}

fn resume(pid: Pid) {
    // It may have been killed meanwhile.
    let _ = ptrace::syscall(pid, None);
}

/// Who a thread is.
fn role(main: Pid, thread: Pid, is_child: bool) -> String {
    if is_child {
        return "new process".to_owned();
    }
    if thread == main {
        return "loop".to_owned();
    }
    let name = fs::read_to_string(format!("/proc/{main}/task/{thread}/comm")).unwrap_or_default();
    match name.trim() {
        "" | "containerpilot" => "new thread".to_owned(),
        name => name.to_owned(),
    }
}

/// What a call on descriptors is about.
fn command(number: u64) -> &'static str {
    match i32::try_from(number).unwrap_or_default() {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => "copy",
        libc::F_SETFL | libc::F_SETFD => "flags",
        libc::F_SETPIPE_SZ => "pipe",
        _ => "get",
    }
}

/// What is behind a descriptor.
fn descriptor(main: Pid, fd: u64) -> &'static str {
    let path = format!("/proc/{main}/fd/{fd}");
    let name = fs::read_link(&path).unwrap_or_default();
    let name = name.to_string_lossy();
    let known = ["pipe", "socket", "eventfd", "signalfd", "eventpoll"];
    match known
        .into_iter()
        .find(|kind| name.starts_with(&format!("{kind}:")) || name.ends_with(&format!("[{kind}]")))
    {
        Some(kind) => kind,
        None if fs::metadata(&path).is_ok_and(|about| about.is_dir()) => "directory",
        None => "file",
    }
}
