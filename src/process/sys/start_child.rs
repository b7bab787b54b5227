//! Starts a process: `clone`, set up the child, execute the program.
#![expect(unsafe_code, reason = "raw system calls; every block has its SAFETY comment")]

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use containerpilot_core::plan::Resource;
use nix::errno::Errno;
use nix::libc;

use super::exec_spec::{ExecError, ExecSpec, SpawnStep};
use super::signals::{KernelAction, SET_SIZE};

/// The stack of a child until it has executed its program, and the kernel's lists of strings. Reused for every child.
pub(crate) struct ChildStack {
    stack: Box<[MaybeUninit<u128>]>,
    lists: PointerLists,
}

/// The strings of an [`ExecSpec`] as null-terminated pointer lists. Valid only while [`start`] borrows the spec.
#[derive(Default)]
struct PointerLists {
    files: Vec<*const c_char>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    cwd: Vec<*const c_char>,
}

impl ChildStack {
    /// More than the calls in [`exec_child`] need, also in a debug build.
    const BYTES: usize = 64 * 1024;

    pub(crate) fn new() -> Self {
        Self { stack: Box::new_uninit_slice(Self::BYTES / size_of::<u128>()), lists: PointerLists::default() }
    }
}

/// What the child reads, and where it writes its error.
struct ChildContext<'a> {
    spec: &'a ExecSpec<'a>,
    lists: &'a PointerLists,
    error: Cell<Option<(SpawnStep, Errno, usize)>>,
}

/// Starts a process. When this returns, the child has executed its program or has failed.
///
/// The child shares our memory until then (`CLONE_VM | CLONE_VFORK`, as in `posix_spawn`). No memory is copied, other
/// threads keep running, and the child reports which step failed by writing to memory.
pub(crate) fn start(spec: &ExecSpec<'_>, stack: &mut ChildStack) -> Result<i32, ExecError> {
    let ChildStack { stack, lists } = stack;
    spec.files.list(&mut lists.files);
    spec.arguments.list(&mut lists.arguments);
    spec.environment.list(&mut lists.environment);
    spec.cwd.list(&mut lists.cwd);
    let context = ChildContext { spec, lists, error: Cell::new(None) };
    let mut flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    if spec.copy_below.is_some() {
        flags |= libc::CLONE_FILES;
    }
    let context_pointer = (&raw const context).cast_mut().cast::<c_void>();
    // SAFETY: the child runs `child` on its own aligned stack, which is borrowed exclusively. This thread sleeps until
    // the child has executed a program or exited; until then `context` and everything it borrows stay untouched. The
    // child only makes system calls and writes to `error`.
    let pid = unsafe { libc::clone(child, stack.as_mut_ptr_range().end.cast(), flags, context_pointer) };
    if pid < 0 {
        return Err(ExecError { step: SpawnStep::Clone, errno: Errno::last(), file: 0, pid: None });
    }
    match context.error.get() {
        None => Ok(pid),
        Some((step, errno, file)) => Err(ExecError { step, errno, file, pid: Some(pid) }),
    }
}

extern "C" fn child(context: *mut c_void) -> c_int {
    // SAFETY: `start` passes its context, which outlives the child's use of our memory.
    let context = unsafe { &*context.cast::<ChildContext<'_>>() };
    // SAFETY: this is the new process.
    context.error.set(Some(unsafe { exec_child(context) }));
    127
}

/// Sets up the child and executes its program. Returns only if a step fails.
///
/// # Safety
/// Only for the new process of [`start`]: it changes the calling process. It shares the supervisor's memory, so it must
/// not allocate, take a lock or panic.
unsafe fn exec_child(context: &ChildContext<'_>) -> (SpawnStep, Errno, usize) {
    let spec = context.spec;
    macro_rules! must {
        ($step:ident, $call:expr) => {
            if ($call) < 0 {
                return (SpawnStep::$step, Errno::last(), 0);
            }
        };
    }
    // SAFETY: all pointers are in the context and valid. The calls are raw system calls or thin wrappers that are
    // async-signal-safe. User and group are set by raw calls: the library's wrappers would change the supervisor's other
    // threads too.
    unsafe {
        if let Some(first) = spec.copy_below {
            // Until here the descriptor table is shared with the supervisor.
            must!(
                Descriptors,
                libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_UNSHARE)
            );
        }
        must!(ProcessGroup, libc::setpgid(0, 0));
        match spec.stdin {
            Some(null) => must!(Descriptors, libc::dup2(null.as_raw_fd(), 0)),
            // As tini does: on a terminal the program is in the foreground. Without a terminal this fails, harmlessly.
            None => drop(libc::tcsetpgrp(0, libc::getpid())),
        }
        if let Some((out, err)) = spec.output {
            must!(Descriptors, libc::dup2(out.as_raw_fd(), 1));
            must!(Descriptors, libc::dup2(err.as_raw_fd(), 2));
        }
        if let Some(mask) = spec.umask {
            libc::umask(mask.into());
        }
        if let Some((soft, hard)) = spec.descriptor_limit {
            let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
            must!(Limits, libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit));
        }
        for limit in spec.limits {
            let value = |value: Option<u64>| value.unwrap_or(libc::RLIM_INFINITY);
            let pair = libc::rlimit { rlim_cur: value(limit.soft), rlim_max: value(limit.hard) };
            must!(Limits, libc::setrlimit(resource(limit.resource), &raw const pair));
        }
        if let Some(groups) = spec.groups {
            must!(User, libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()));
        }
        if let Some(group) = spec.group {
            must!(User, libc::syscall(libc::SYS_setresgid, group, group, group));
        }
        if let Some(user) = spec.user {
            must!(User, libc::syscall(libc::SYS_setresuid, user, user, user));
        }
        // After the user is set: its permissions decide.
        if let [directory, _] = context.lists.cwd.as_slice() {
            must!(Directory, libc::chdir(*directory));
        }
        if spec.no_new_privileges {
            must!(Privileges, libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        }
        // `execve` resets handlers, but keeps ignored signals ignored.
        let default: KernelAction = [0; 8];
        let no_action = std::ptr::null_mut::<KernelAction>();
        for signal in spec.ignored.numbers() {
            libc::syscall(
                libc::SYS_rt_sigaction,
                c_int::from(signal),
                &raw const default,
                no_action,
                SET_SIZE,
            );
        }
        let empty = 0_u64;
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const empty,
            std::ptr::null_mut::<u64>(),
            SET_SIZE,
        );
        execute(context)
    }
}

/// Executes the first file that can be executed, as `execvp` does: EACCES is remembered, and the search continues.
///
/// # Safety
/// As for [`exec_child`].
unsafe fn execute(context: &ChildContext<'_>) -> (SpawnStep, Errno, usize) {
    let mut worst = (SpawnStep::Execute, Errno::ENOENT, 0);
    for (nth, file) in context.lists.files.iter().enumerate() {
        if file.is_null() {
            break;
        }
        // SAFETY: null-terminated strings and lists from the context.
        unsafe { libc::execve(*file, context.lists.arguments.as_ptr(), context.lists.environment.as_ptr()) };
        match Errno::last() {
            // With a single candidate its own error is the most precise one.
            only if context.lists.files.len() == 2 => return (SpawnStep::Execute, only, nth),
            Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE | Errno::ENODEV | Errno::ETIMEDOUT => {}
            Errno::EACCES if worst.1 == Errno::EACCES => {}
            Errno::EACCES => worst = (SpawnStep::Execute, Errno::EACCES, nth),
            other => return (SpawnStep::Execute, other, nth),
        }
    }
    worst
}

#[cfg(target_env = "musl")]
type ResourceNumber = c_int;
#[cfg(not(target_env = "musl"))]
type ResourceNumber = libc::__rlimit_resource_t;

fn resource(resource: Resource) -> ResourceNumber {
    match resource {
        Resource::As => libc::RLIMIT_AS,
        Resource::Core => libc::RLIMIT_CORE,
        Resource::Cpu => libc::RLIMIT_CPU,
        Resource::Data => libc::RLIMIT_DATA,
        Resource::Fsize => libc::RLIMIT_FSIZE,
        Resource::Locks => libc::RLIMIT_LOCKS,
        Resource::Memlock => libc::RLIMIT_MEMLOCK,
        Resource::Msgqueue => libc::RLIMIT_MSGQUEUE,
        Resource::Nice => libc::RLIMIT_NICE,
        Resource::Nofile => libc::RLIMIT_NOFILE,
        Resource::Nproc => libc::RLIMIT_NPROC,
        Resource::Rss => libc::RLIMIT_RSS,
        Resource::Rtprio => libc::RLIMIT_RTPRIO,
        Resource::Rttime => libc::RLIMIT_RTTIME,
        Resource::Sigpending => libc::RLIMIT_SIGPENDING,
        Resource::Stack => libc::RLIMIT_STACK,
    }
}
