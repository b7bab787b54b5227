//! Starts a process: create a child, set it up, execute the program.
//!
//! The supervisor does not wait for the child. A child with another user or group is a copy of the supervisor, as by
//! `fork`: no process of that user ever shares memory with the supervisor. So is one with a cgroup. Any other child
//! shares its memory until it executes its program: copying the page tables would take longer than all the rest of a
//! start. What such a child uses is kept until its result pipe is closed. The kernel closes it when the child has
//! executed its program or has exited, and has left the shared memory before.
#![expect(unsafe_code, reason = "raw system calls; every block has its SAFETY comment")]

mod capabilities;
mod examine;
mod secrets;

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use containerpilot_core::plan::LimitedResource;
use nix::errno::Errno;
use nix::libc;

use self::examine::examine;
use super::checked;
use super::exec_spec::{ExecError, ExecSpec, HEAD_BYTES, RecordHead, SecretPipe, SpawnStep};
use super::raw::{self, call};
use super::signals::{KernelAction, SET_SIZE};

/// Much more than the child needs, also in a debug build. From 64 KiB on, the allocator tidies its whole heap at each
/// release.
const STACK_BYTES: usize = 32 * 1024;

/// A variable with the pid of the child: ten digits are enough for a pid.
type PidVariable = [u8; 24];
const WATCHDOG_PREFIX: usize = 13;
const WATCHDOG_PID: PidVariable = *b"WATCHDOG_PID=\0\0\0\0\0\0\0\0\0\0\0";

/// Everything that a child uses until it has executed its program: its stack and its description, with the strings as
/// null-terminated pointer lists.
#[derive(Debug)]
struct ChildMemory {
    spec: ExecSpec,
    files: Vec<*const c_char>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    cwd: Vec<*const c_char>,
    /// Where the child puts its secrets, which `environment` has room for.
    secrets: Vec<u8>,
    stack: Box<[MaybeUninit<u8>]>,
    /// `WATCHDOG_PID=` and room for the pid, which the child writes itself. A string of the environment if it is there.
    watchdog_pid: Option<Box<UnsafeCell<PidVariable>>>,
    /// Whether the child was created in its cgroup.
    is_in_cgroup: bool,
    /// Whether the child calls `execve` just now.
    is_executing: AtomicBool,
}

impl ChildMemory {
    fn new(spec: ExecSpec) -> Box<Self> {
        let (secrets, secret_bytes) = spec.secrets.map_or((0, 0), |pipe| (pipe.count, pipe.max_bytes));
        let watchdog_pid = spec.watchdog_pid.then(|| Box::new(UnsafeCell::new(WATCHDOG_PID)));
        let own = watchdog_pid.iter().map(|variable| variable.get().cast_const().cast::<c_char>());
        let mut environment: Vec<*const c_char> = own.chain(spec.environment.list()).collect();
        environment.extend(std::iter::repeat_n(std::ptr::null(), secrets));
        Box::new(Self {
            files: spec.files.list(),
            arguments: spec.arguments.list(),
            environment,
            cwd: spec.cwd.list(),
            // Untouched pages take no memory.
            secrets: vec![0; secret_bytes],
            stack: Box::new_uninit_slice(STACK_BYTES),
            is_in_cgroup: spec.cgroup.is_some(),
            is_executing: AtomicBool::new(false),
            watchdog_pid,
            spec,
        })
    }
}

/// A child on the way to its program.
#[derive(Debug)]
pub struct NewChild {
    pub pid: i32,
    /// The read end of its result pipe, until that is closed.
    result: Option<OwnedFd>,
    /// What the child may still use. It is freed when the pipe is closed; if that is never read, it is not freed.
    memory: ManuallyDrop<Option<Box<ChildMemory>>>,
}

/// What a child has reported.
#[derive(Debug)]
pub enum StartReport {
    /// Nothing yet, or nothing new.
    Nothing,
    /// The pipe is closed: the child has executed its program, or has exited. A child that shared memory has told
    /// whether `execve` was its last call.
    Closed { executing: Option<bool> },
    /// The child cannot execute its program, and exits; `None` if what it wrote cannot be read.
    Failure(Option<ExecError>),
}

impl NewChild {
    /// Readable when there is something to [read](Self::read); `None` if nothing more comes.
    pub fn poll_fd(&self) -> Option<RawFd> {
        self.result.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Reads the next report. Never waits.
    pub fn read(&mut self) -> StartReport {
        let Some(result) = &self.result else { return StartReport::Nothing };
        let mut record = [0; ExecError::MAX_BYTES];
        match nix::unistd::read(result.as_fd(), &mut record) {
            Err(Errno::EAGAIN | Errno::EINTR) => StartReport::Nothing,
            Ok(length) if length > 0 => {
                StartReport::Failure(ExecError::from_record(record.get(..length).unwrap_or_default()))
            }
            Ok(_) => {
                self.result = None;
                let executing =
                    self.memory.as_ref().map(|memory| memory.is_executing.load(Ordering::Relaxed));
                // SAFETY: it is dropped only here, and only once, because `result` is `None` from now on.
                unsafe { ManuallyDrop::drop(&mut self.memory) };
                StartReport::Closed { executing }
            }
            // It is not known whether the child still uses the memory, which is therefore not freed.
            Err(_) => {
                self.result = None;
                StartReport::Closed { executing: None }
            }
        }
    }

    /// Whether the child may still use memory of the supervisor.
    pub fn uses_memory(&self) -> bool {
        self.result.is_some() && self.memory.is_some()
    }
}

/// Why a child cannot execute its program.
struct Failure {
    step: SpawnStep,
    errno: Errno,
    /// See [`ExecError::file`].
    file: usize,
}

/// Returns true if a child may share the supervisor's memory. Before Linux 5.16 the kernel ended all processes that
/// share memory when one of them dumped core, as a child does that gets SIGQUIT.
pub fn may_share_memory() -> bool {
    let release = nix::sys::utsname::uname().ok();
    let release = release.as_ref().and_then(|name| name.release().to_str()).unwrap_or_default();
    let mut numbers = release.split(['.', '-', '+']).map_while(|number| number.parse::<u32>().ok());
    raw::LEAVES_ERRNO && (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 16)
}

/// Creates a process, and does not wait for it. The child executes its program, or writes an [`ExecError`] to
/// `spec.result` and exits. `result` is the read end of that pipe.
pub fn start(spec: ExecSpec, result: OwnedFd) -> Result<NewChild, Errno> {
    let shared = if spec.share_memory { libc::CLONE_VM } else { 0 };
    let leads_session = spec.leads_session();
    let mut memory = ChildMemory::new(spec);
    let in_cgroup = match memory.spec.cgroup {
        Some(cgroup) => clone_into(&mut memory, cgroup).ok(),
        None => None,
    };
    memory.is_in_cgroup = false;
    let (pid, shared) = match in_cgroup {
        Some(pid) => (pid, 0),
        None => match clone(&mut memory, shared) {
            // An emulator of another architecture knows only `fork`.
            Err(Errno::EINVAL) if shared != 0 => (clone(&mut memory, 0)?, 0),
            pid => (pid?, shared),
        },
    };
    if !leads_session {
        // The child does the same; once the first of them has done it, a signal to its process group reaches it.
        // SAFETY: no memory is involved. It fails if the child has executed its program.
        unsafe { libc::setpgid(pid, pid) };
    }
    let memory = ManuallyDrop::new(Some(memory).filter(|_| shared != 0));
    Ok(NewChild { pid, result: Some(result), memory })
}

fn clone(memory: &mut ChildMemory, shared: c_int) -> Result<i32, Errno> {
    let stack = memory.stack.as_mut_ptr_range().end;
    // SAFETY: the child runs on its own stack, only makes system calls, and does not return. It reads `memory`, which
    // `NewChild` keeps while the child shares it.
    let pid = unsafe {
        libc::clone(
            run_child,
            stack.cast::<c_void>(),
            libc::SIGCHLD | shared,
            std::ptr::from_mut(memory).cast::<c_void>(),
        )
    };
    i32::try_from(checked(pid.into())?).map_err(|_| Errno::EINVAL)
}

/// As [`clone`], without sharing, with the new process in another cgroup (Linux 5.7). Some container engines do not
/// permit `clone3`.
fn clone_into(memory: &mut ChildMemory, cgroup: RawFd) -> Result<i32, Errno> {
    /// `CLONE_INTO_CGROUP`; the `libc` crate has it as a type that is too small.
    const INTO_CGROUP: u64 = 1 << 33;
    // `struct clone_args`.
    let mut arguments = [0_u64; 11];
    arguments[0] = INTO_CGROUP;
    arguments[4] = libc::SIGCHLD as u64;
    arguments[10] = cgroup as u64;
    // SAFETY: the kernel only reads the arguments, whose length is passed. Without a stack and without sharing, this is
    // `fork`: the child continues on its copy of this stack, only makes system calls, and does not return.
    let pid = unsafe {
        let pid = call(libc::SYS_clone3, [at(arguments.as_ptr()), size_of_val(&arguments)])?;
        if pid == 0 {
            run_child(std::ptr::from_mut(memory).cast());
        }
        pid
    };
    i32::try_from(pid).map_err(|_| Errno::EINVAL)
}

/// The new process: executes its program, or reports why not.
///
/// It must not allocate, take a lock, panic or use thread-local storage: it may share the memory of the supervisor, and
/// if it has a copy, other threads may have held locks when the copy was made.
extern "C" fn run_child(memory: *mut c_void) -> c_int {
    let mut head = [0_u8; HEAD_BYTES];
    // SAFETY: `clone` has passed a pointer to this structure, which the supervisor does not change while it is shared.
    // All other pointers are valid, and each length is that of its buffer.
    unsafe {
        let memory = &mut *memory.cast::<ChildMemory>();
        let (record, length) = try_program(memory, &mut head);
        let parts = [
            libc::iovec { iov_base: (&raw const record).cast_mut().cast(), iov_len: size_of::<RecordHead>() },
            libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: length },
        ];
        let _ = call(libc::SYS_writev, [fd(memory.spec.result), at(&raw const parts), 2]);
        loop {
            let _ = call(libc::SYS_exit_group, [127]);
        }
    }
}

/// Executes the program. Returns only if that fails: the record of it, and the length of what is in `head`.
///
/// # Safety
/// As for [`run_child`].
unsafe fn try_program(memory: &mut ChildMemory, head: &mut [u8; HEAD_BYTES]) -> (RecordHead, usize) {
    // SAFETY: the caller promises it.
    let (failure, (mode, length)) = unsafe {
        let mut failure = exec_child(memory);
        let examined = examine(memory, &mut failure, head);
        (failure, examined)
    };
    ([failure.step as u32, failure.errno as i32 as u32, failure.file as u32, mode], length)
}

/// Executes a program in the present process (X12), which must have no other threads. Returns only if that fails.
pub fn execute_in_place(spec: ExecSpec) -> Option<ExecError> {
    let mut memory = ChildMemory::new(spec);
    let mut head = [0; HEAD_BYTES];
    // SAFETY: the memory is that of this process, which nothing else uses.
    let (words, length) = unsafe { try_program(&mut memory, &mut head) };
    let words = words.iter().flat_map(|word| word.to_ne_bytes());
    let record: Vec<u8> = words.chain(head.into_iter().take(length)).collect();
    ExecError::from_record(&record)
}

/// A descriptor as an argument of a system call.
fn fd(fd: RawFd) -> usize {
    fd as usize
}

/// A pointer as an argument of a system call.
fn at<T>(pointer: *const T) -> usize {
    pointer.expose_provenance()
}

/// Sets up the child and executes its program. Returns only if a step fails.
///
/// # Safety
/// As for [`run_child`].
unsafe fn exec_child(memory: &mut ChildMemory) -> Failure {
    macro_rules! must {
        ($step:ident, $number:ident, $($argument:expr),+) => {
            if let Err(errno) = call(libc::$number, [$($argument),+]) {
                return Failure { step: SpawnStep::$step, errno, file: 0 };
            }
        };
    }
    let spec = &memory.spec;
    // SAFETY: all pointers are valid. User and group are set for this process only, not, as by the library, for threads
    // that it does not have.
    unsafe {
        if let Some(first) = spec.close_from {
            must!(Descriptors, SYS_close_range, first as usize, u32::MAX as usize, 0);
        }
        if let Some(cgroup) = spec.cgroup.filter(|_| !memory.is_in_cgroup) {
            // This waits several milliseconds for the kernel. `execve` closes the file.
            let (file, flags) = (at(c"cgroup.procs".as_ptr()), libc::O_WRONLY | libc::O_CLOEXEC);
            if let Ok(file) = call(libc::SYS_openat, [fd(cgroup), file, flags as usize]) {
                let _ = call(libc::SYS_write, [file, at(c"0".as_ptr()), 1]);
            }
        }
        if spec.leads_session() {
            must!(ProcessGroup, SYS_setsid, 0);
        } else if !spec.in_place {
            must!(ProcessGroup, SYS_setpgid, 0, 0);
        }
        if let Some(pipe) = spec.secrets
            && let Err(failure) = secrets::read(pipe, &mut memory.secrets, &mut memory.environment)
        {
            return failure;
        }
        let (memory, spec) = (&*memory, &memory.spec);
        match spec.stdin {
            Some(null) => must!(Descriptors, SYS_dup3, fd(null), 0, 0),
            None if spec.in_place => {}
            // As tini does: on a terminal the program is in the foreground. Without a terminal this fails, harmlessly.
            None => {
                let own = call(libc::SYS_getpid, []).unwrap_or(0) as libc::pid_t;
                let _ = call(libc::SYS_ioctl, [0, libc::TIOCSPGRP as usize, at(&raw const own)]);
            }
        }
        if let Some((out, err)) = spec.output {
            must!(Descriptors, SYS_dup3, fd(out), 1, 0);
            must!(Descriptors, SYS_dup3, fd(err), 2, 0);
        }
        if let Some(mask) = spec.umask {
            let _ = call(libc::SYS_umask, [mask.into()]);
        }
        if let Some((soft, hard)) = spec.descriptor_limit {
            let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
            must!(Limits, SYS_prlimit64, 0, libc::RLIMIT_NOFILE as usize, at(&raw const limit));
        }
        for (nth, limit) in spec.limits.iter().enumerate() {
            let value = |value: Option<u64>| value.unwrap_or(libc::RLIM64_INFINITY);
            let pair = libc::rlimit64 { rlim_cur: value(limit.soft), rlim_max: value(limit.hard) };
            let arguments = [0, resource(limit.resource) as usize, at(&raw const pair)];
            if let Err(errno) = call(libc::SYS_prlimit64, arguments) {
                return Failure { step: SpawnStep::Limits, errno, file: nth + 1 };
            }
        }
        if let Some(nice) = spec.nice {
            must!(Nice, SYS_setpriority, libc::PRIO_PROCESS as usize, 0, nice as isize as usize);
        }
        if let Some(score) = &spec.oom_score_adj {
            let (file, flags) = (at(c"/proc/self/oom_score_adj".as_ptr()), libc::O_WRONLY | libc::O_CLOEXEC);
            let opened = call(libc::SYS_openat, [fd(libc::AT_FDCWD), file, flags as usize]);
            let written =
                opened.and_then(|file| call(libc::SYS_write, [file, at(score.as_ptr()), score.len()]));
            if let Err(errno) = written {
                return Failure { step: SpawnStep::OomScore, errno, file: 0 };
            }
        }
        if let Some(kept) = spec.capabilities
            && let Err(failure) = capabilities::limit(kept, spec.user.is_some())
        {
            return failure;
        }
        if let Some(groups) = &spec.groups {
            must!(User, SYS_setgroups, groups.len(), at(groups.as_ptr()));
        }
        if spec.group.is_some() || spec.user.is_some() {
            let keep = u32::MAX as usize;
            let (group, user) = (spec.group.map(|id| id as usize), spec.user.map(|id| id as usize));
            // The kernel makes a process that changes its effective ids readable to its new user if `fs.suid_dumpable`
            // is 1. As long as its real ids differ, that user has no access yet; when they change, too, the process is
            // no longer dumpable. This memory is a copy of the supervisor's: no process of that user may ever read it.
            if let Some(group) = group {
                must!(User, SYS_setresgid, keep, group, keep);
            }
            if let Some(user) = user {
                must!(User, SYS_setresuid, keep, user, keep);
            }
            must!(User, SYS_prctl, libc::PR_SET_DUMPABLE as usize, 0, 0, 0, 0);
            if let Some(group) = group {
                must!(User, SYS_setresgid, group, keep, group);
            }
            if let Some(user) = user {
                must!(User, SYS_setresuid, user, keep, user);
            }
        }
        if let Some(kept) = spec.capabilities
            && let Err(failure) = capabilities::keep(kept)
        {
            return failure;
        }
        // After the user is set: its permissions decide.
        if let [directory, _] = memory.cwd.as_slice() {
            must!(Directory, SYS_chdir, at(*directory));
        }
        if spec.no_new_privileges {
            must!(Privileges, SYS_prctl, libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0);
        }
        if let Some((from, to)) = spec.ready {
            // After all others: `to` may be the number of one of them, which is not needed any more.
            if from == to {
                must!(Descriptors, SYS_fcntl, fd(from), libc::F_SETFD as usize, 0);
            } else {
                must!(Descriptors, SYS_dup3, fd(from), fd(to), 0);
            }
        }
        if let Some(variable) = &memory.watchdog_pid {
            let own = call(libc::SYS_getpid, []).unwrap_or(0);
            // Only this child uses the variable.
            write_pid(variable.get(), own);
        }
        // `execve` resets handlers, but keeps ignored signals ignored.
        let default: KernelAction = [0; 8];
        for signal in spec.ignored.numbers() {
            let _ = call(libc::SYS_rt_sigaction, [signal.into(), at(&raw const default), 0, SET_SIZE]);
        }
        let empty = 0_u64;
        let set = libc::SIG_SETMASK as usize;
        let _ = call(libc::SYS_rt_sigprocmask, [set, at(&raw const empty), 0, SET_SIZE]);
        execute(memory)
    }
}

/// Appends a number to the variable.
///
/// # Safety
/// The variable is valid, and nothing else uses it.
unsafe fn write_pid(variable: *mut PidVariable, pid: usize) {
    let start = variable.cast::<u8>();
    let (mut rest, mut digits) = (pid % 10_000_000_000, 1);
    while rest >= 10 {
        (rest, digits) = (rest / 10, digits + 1);
    }
    let (mut rest, mut at) = (pid, WATCHDOG_PREFIX + digits);
    while at > WATCHDOG_PREFIX {
        at -= 1;
        // SAFETY: at most ten digits follow the prefix, and the array has room for eleven bytes there.
        unsafe { start.add(at).write(b'0' + (rest % 10) as u8) };
        rest /= 10;
    }
}

/// Executes the first file that can be executed, as `execvp` does: EACCES is remembered, and the search continues.
///
/// # Safety
/// As for [`run_child`].
unsafe fn execute(memory: &ChildMemory) -> Failure {
    let mut worst = Failure { step: SpawnStep::Execute, errno: Errno::ENOENT, file: 0 };
    let (arguments, environment) = (at(memory.arguments.as_ptr()), at(memory.environment.as_ptr()));
    for (nth, file) in memory.files.iter().enumerate().filter(|(_, file)| !file.is_null()) {
        memory.is_executing.store(true, Ordering::Relaxed);
        // SAFETY: null-terminated strings and lists.
        let Err(errno) = (unsafe { call(libc::SYS_execve, [at(*file), arguments, environment]) }) else {
            continue;
        };
        memory.is_executing.store(false, Ordering::Relaxed);
        match errno {
            // With a single candidate its own error is the most precise one.
            only if memory.files.len() == 2 => return Failure { errno: only, file: nth, ..worst },
            Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE | Errno::ENODEV | Errno::ETIMEDOUT => {}
            Errno::EACCES if worst.errno == Errno::EACCES => {}
            Errno::EACCES => (worst.errno, worst.file) = (Errno::EACCES, nth),
            other => return Failure { errno: other, file: nth, ..worst },
        }
    }
    worst
}

#[cfg(target_env = "musl")]
type ResourceNumber = c_int;
#[cfg(not(target_env = "musl"))]
type ResourceNumber = libc::__rlimit_resource_t;

fn resource(resource: LimitedResource) -> ResourceNumber {
    match resource {
        LimitedResource::As => libc::RLIMIT_AS,
        LimitedResource::Core => libc::RLIMIT_CORE,
        LimitedResource::Cpu => libc::RLIMIT_CPU,
        LimitedResource::Data => libc::RLIMIT_DATA,
        LimitedResource::Fsize => libc::RLIMIT_FSIZE,
        LimitedResource::Locks => libc::RLIMIT_LOCKS,
        LimitedResource::Memlock => libc::RLIMIT_MEMLOCK,
        LimitedResource::Msgqueue => libc::RLIMIT_MSGQUEUE,
        LimitedResource::Nice => libc::RLIMIT_NICE,
        LimitedResource::Nofile => libc::RLIMIT_NOFILE,
        LimitedResource::Nproc => libc::RLIMIT_NPROC,
        LimitedResource::Rss => libc::RLIMIT_RSS,
        LimitedResource::Rtprio => libc::RLIMIT_RTPRIO,
        LimitedResource::Rttime => libc::RLIMIT_RTTIME,
        LimitedResource::Sigpending => libc::RLIMIT_SIGPENDING,
        LimitedResource::Stack => libc::RLIMIT_STACK,
    }
}
