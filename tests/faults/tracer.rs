//! Runs a supervisor and makes one of its system calls fail.
//!
//! `strace --inject` counts calls per thread: "the first read" would fail in every thread, and a call that every new
//! process makes would fail in all of them. This tracer counts calls per role (the loop, the log, the network, a new
//! process before `execve`), and exactly one call fails. Programs are not traced after `execve`.

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

/// The number of calls by role and name.
pub(crate) type Counts = BTreeMap<(String, String), u32>;

/// A call that is made to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) role: String,
    pub(crate) call: String,
    /// Counted from 1, per role and call.
    pub(crate) nth: u32,
    pub(crate) errno: Errno,
}

/// The state of the traced supervisor, shared with the scenario.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    /// The pid of the supervisor, once it runs.
    pub(crate) pid: AtomicI32,
    /// The number of calls that were made to fail.
    pub(crate) hits: AtomicU32,
    /// The exit code, or 128+N for signal N.
    pub(crate) exit_code: Mutex<Option<i32>>,
}

impl RunState {
    pub(crate) fn exit_code(&self) -> Option<i32> {
        *self.exit_code.lock().unwrap()
    }
}

#[derive(Debug, Default)]
struct Thread {
    /// Whether it is a new process (`fork`) that has not called `execve` yet.
    is_child: bool,
    /// Whether the current call is `brk`, which returns the unchanged heap end as its error.
    in_brk: bool,
    /// The error that the current call will return.
    failing: Option<Errno>,
}

struct Tracer<'a> {
    fault: Option<&'a Fault>,
    state: &'a RunState,
    main: Pid,
    is_supervisor: bool,
    /// The end of the heap, which a failed `brk` returns.
    heap_end: u64,
    threads: HashMap<Pid, Thread>,
    counts: Counts,
}

/// Runs and traces a command on this thread until it exits; returns the number of its calls.
#[expect(clippy::zombie_processes, reason = "the tracer waits for every process")]
pub(crate) fn run(command: &mut Command, fault: Option<&Fault>, state: &RunState) -> Counts {
    // The shell reads a line before it executes the supervisor, so that the tracer can attach first.
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let main = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options).unwrap();
    ptrace::interrupt(main).unwrap();
    let mut gate = child.stdin.take().unwrap();
    gate.write_all(b"\n").unwrap();
    let mut tracer = Tracer {
        fault,
        state,
        main,
        is_supervisor: false,
        heap_end: 0,
        threads: HashMap::new(),
        counts: Counts::new(),
    };
    let code = tracer.follow();
    *state.exit_code.lock().unwrap() = Some(code);
    tracer.counts
}

impl Tracer<'_> {
    fn follow(&mut self) -> i32 {
        // Only tracees of this thread: other threads trace other supervisors.
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
                        // The shell itself also stops here.
                        let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                        self.is_supervisor = program.trim() == "containerpilot";
                        self.state.pid.store(pid.as_raw(), Ordering::SeqCst);
                        resume(pid);
                    } else {
                        self.threads.remove(&pid);
                        let _ = ptrace::detach(pid, None);
                    }
                }
                WaitStatus::PtraceEvent(pid, _, event) => {
                    if event == libc::PTRACE_EVENT_FORK {
                        let child = ptrace::getevent(pid).unwrap_or_default();
                        let child = Pid::from_raw(i32::try_from(child).unwrap());
                        self.threads.entry(child).or_default().is_child = true;
                    }
                    resume(pid);
                }
                // A signal that is being delivered.
                WaitStatus::Stopped(pid, signal) => drop(ptrace::syscall(pid, signal)),
                WaitStatus::Continued(_) | WaitStatus::StillAlive => {}
            }
        }
    }

    /// Handles a thread that has stopped at the entry or exit of a call.
    fn call(&mut self, pid: Pid) {
        // These fail if the thread was killed meanwhile; its exit is reported separately.
        let (Ok(info), Ok(mut regs)) = (ptrace::syscall_info(pid), ptrace::getregs(pid)) else { return };
        if !self.is_supervisor {
            return;
        }
        let thread = self.threads.entry(pid).or_default();
        let call = regs.orig_rax.cast_signed();
        if info.op == libc::PTRACE_SYSCALL_INFO_EXIT {
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
            "fcntl" => fcntl_kind(regs.rsi),
            "brk" if regs.rdi == 0 || page(regs.rdi) == page(self.heap_end) => "query",
            "brk" => "pages",
            // FUTEX_WAIT and FUTEX_WAIT_BITSET; the other operations wake threads and cannot fail.
            "futex" if matches!(regs.rsi & 0x7f, 0 | 9) => "wait",
            "futex" => "wake",
            _ => descriptor_kind(self.main, regs.rdi),
        });
        let count = self.counts.entry((role.clone(), name.clone())).or_default();
        *count += 1;
        if let Some(fault) = self.fault
            && (fault.nth, &fault.call, &fault.role) == (*count, &name, &role)
        {
            thread.failing = Some(fault.errno);
            self.state.hits.fetch_add(1, Ordering::SeqCst);
            // The kernel closes a descriptor even if close() returns an error, so that call is still made.
            if call != libc::SYS_close {
                regs.orig_rax = u64::MAX;
                let _ = ptrace::setregs(pid, regs);
            }
        }
    }
}

/// The number of the page that ends at or after an address.
fn page(address: u64) -> u64 {
    address.div_ceil(4096)
}

fn resume(pid: Pid) {
    // Fails if the thread was killed meanwhile.
    let _ = ptrace::syscall(pid, None);
}

/// The role of a thread: `loop`, the name of the thread, or `new process` or `new thread`.
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

/// The kind of an `fcntl` command.
fn fcntl_kind(number: u64) -> &'static str {
    match i32::try_from(number).unwrap_or_default() {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => "copy",
        libc::F_SETFL | libc::F_SETFD => "flags",
        libc::F_SETPIPE_SZ => "pipe",
        _ => "get",
    }
}

/// The kind of file that a descriptor refers to.
fn descriptor_kind(main: Pid, fd: u64) -> &'static str {
    let path = format!("/proc/{main}/fd/{fd}");
    let name = fs::read_link(&path).unwrap_or_default();
    let name = name.to_string_lossy();
    let known = ["pipe", "socket", "eventfd", "signalfd", "eventpoll"];
    match known
        .into_iter()
        .find(|kind| name.starts_with(&format!("{kind}:")) || name.ends_with(&format!("[{kind}]")))
    {
        Some(kind) => kind,
        None if fs::metadata(&path).is_ok_and(|metadata| metadata.is_dir()) => "directory",
        None => "file",
    }
}
