//! Starts a process: copy the supervisor, set up the child, execute the program.
#![expect(unsafe_code, reason = "raw system calls; every block has its SAFETY comment")]

use std::ffi::{c_char, c_int, c_long};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use containerpilot_core::plan::Resource;
use nix::errno::Errno;
use nix::libc;

use super::checked;
use super::exec_spec::{ExecSpec, HEAD_BYTES, RecordHead, SpawnStep};
use super::signals::{KernelAction, SET_SIZE};

/// The strings of an [`ExecSpec`] as null-terminated pointer lists. Valid only while [`start`] borrows the spec; the
/// buffers are reused for the next child.
#[derive(Default)]
pub(crate) struct PointerLists {
    files: Vec<*const c_char>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    cwd: Vec<*const c_char>,
}

/// Why a child cannot execute its program.
struct Failure {
    step: SpawnStep,
    errno: Errno,
    file: usize,
}

/// Creates a process, and does not wait for it. The child executes its program, or writes an
/// [`ExecError`](super::ExecError) to `spec.result` and exits.
///
/// The child is a copy of the supervisor (`fork`), not a sharer of its memory: a child that is stopped, or that waits
/// for a file system, then holds up nothing, and a process with the user of a job never shares memory with the
/// supervisor.
pub(crate) fn start(spec: &ExecSpec<'_>, lists: &mut PointerLists) -> Result<i32, Errno> {
    spec.files.list(&mut lists.files);
    spec.arguments.list(&mut lists.arguments);
    spec.environment.list(&mut lists.environment);
    spec.cwd.list(&mut lists.cwd);
    // SAFETY: without a stack and without sharing, this is `fork` without the library's handlers and locks. The child
    // runs on its copy of this stack, only makes system calls, and does not return.
    let pid = unsafe {
        let (pid, is_moved) = match spec.cgroup.map(|cgroup| fork_into(cgroup)) {
            Some(pid) if pid >= 0 => (pid, true),
            _ => (fork(), false),
        };
        if pid == 0 {
            run_child(spec, lists, is_moved);
        }
        pid
    };
    let pid = i32::try_from(checked(pid)?).map_err(|_| Errno::EINVAL)?;
    // The child does the same. Whoever is first: from now on a signal to its process group reaches it.
    // SAFETY: no memory is involved. It fails if the child has executed its program.
    unsafe { libc::setpgid(pid, pid) };
    Ok(pid)
}

/// Copies this process. Returns 0 in the new one, and a negative number if that fails.
///
/// # Safety
/// The new process must only make system calls, and must not return from [`start`].
unsafe fn fork() -> c_long {
    let none = 0_usize;
    // SAFETY: without a stack and without sharing, the new process continues on its copy of this stack.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD as usize, none, none, none, none) }
}

/// As [`fork`], with the new process in another cgroup (Linux 5.7). Some container engines do not permit `clone3`.
///
/// # Safety
/// As for [`fork`].
unsafe fn fork_into(cgroup: BorrowedFd<'_>) -> c_long {
    /// `CLONE_INTO_CGROUP`; the `libc` crate has it as a type that is too small.
    const INTO_CGROUP: u64 = 1 << 33;
    // `struct clone_args`.
    let mut arguments = [0_u64; 11];
    arguments[0] = INTO_CGROUP;
    arguments[4] = libc::SIGCHLD as u64;
    arguments[10] = cgroup.as_raw_fd() as u64;
    // SAFETY: as for `fork`; the kernel only reads the arguments, whose length is passed.
    unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) }
}

/// The new process: executes its program, or reports why not.
///
/// # Safety
/// Only for the new process of [`start`]: it changes the calling process. Other threads of the supervisor may have held
/// locks when it was copied, so it must not allocate, take a lock or panic.
unsafe fn run_child(spec: &ExecSpec<'_>, lists: &PointerLists, is_moved: bool) -> ! {
    let mut head = [0_u8; HEAD_BYTES];
    // SAFETY: this is the new process. All pointers are valid, and each length is that of its buffer.
    unsafe {
        let mut failure = exec_child(spec, lists, is_moved);
        let (mode, length) = examine(lists, &mut failure, &mut head);
        let record: RecordHead =
            [failure.step as u32, failure.errno as i32 as u32, failure.file as u32, mode];
        let parts = [
            libc::iovec { iov_base: (&raw const record).cast_mut().cast(), iov_len: size_of::<RecordHead>() },
            libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: length },
        ];
        libc::writev(spec.result.as_raw_fd(), parts.as_ptr(), 2);
        libc::_exit(127)
    }
}

/// Looks at the file that cannot be executed, with the rights of the child's user: returns its `st_mode`, and how many
/// bytes of it are in `head`.
///
/// # Safety
/// As for [`run_child`].
unsafe fn examine(lists: &PointerLists, failure: &mut Failure, head: &mut [u8; HEAD_BYTES]) -> (u32, usize) {
    if failure.step != SpawnStep::Execute {
        return (0, 0);
    }
    for (nth, file) in lists.files.iter().enumerate().filter(|(_, file)| !file.is_null()) {
        let mut status = MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: a null-terminated string, and a structure that the kernel fills in. The other calls have a string or
        // a buffer with its length.
        unsafe {
            let found = libc::stat(*file, status.as_mut_ptr()) == 0;
            let mode = status.assume_init().st_mode;
            match failure.errno {
                Errno::EACCES if failure.file == nth && found => return (mode, 0),
                // It exists: what is missing is named in it.
                Errno::ENOENT if found && mode & libc::S_IFMT == libc::S_IFREG => {
                    failure.file = nth;
                    let fd = libc::open(*file, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY);
                    let read = libc::read(fd, head.as_mut_ptr().cast(), HEAD_BYTES);
                    return (mode, usize::try_from(read).unwrap_or(0));
                }
                _ => {}
            }
        }
    }
    (0, 0)
}

/// Sets up the child and executes its program. Returns only if a step fails.
///
/// # Safety
/// As for [`run_child`].
unsafe fn exec_child(spec: &ExecSpec<'_>, lists: &PointerLists, is_moved: bool) -> Failure {
    macro_rules! must {
        ($step:ident, $call:expr) => {
            if ($call) < 0 {
                return Failure { step: SpawnStep::$step, errno: Errno::last(), file: 0 };
            }
        };
    }
    // SAFETY: all pointers are valid. The calls are raw system calls or thin wrappers that are async-signal-safe. User
    // and group are set by raw calls: the library's wrappers would wait for threads that this process does not have.
    unsafe {
        if let Some(first) = spec.close_from {
            must!(Descriptors, libc::syscall(libc::SYS_close_range, first, u32::MAX, 0));
        }
        if let Some(cgroup) = spec.cgroup.filter(|_| !is_moved) {
            // This waits several milliseconds for the kernel. `execve` closes the file.
            let (file, flags) = (c"cgroup.procs".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            libc::write(libc::openat(cgroup.as_raw_fd(), file, flags), c"0".as_ptr().cast(), 1);
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
        if spec.group.is_some() || spec.user.is_some() {
            let keep = u32::MAX;
            // The kernel makes a process that changes its effective ids readable to its new user if `fs.suid_dumpable`
            // is 1. As long as its real ids differ, that user has no access yet; when they change, too, the process is
            // no longer dumpable. This memory is a copy of the supervisor's: no process of that user may ever read it.
            if let Some(group) = spec.group {
                must!(User, libc::syscall(libc::SYS_setresgid, keep, group, keep));
            }
            if let Some(user) = spec.user {
                must!(User, libc::syscall(libc::SYS_setresuid, keep, user, keep));
            }
            must!(User, libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0));
            if let Some(group) = spec.group {
                must!(User, libc::syscall(libc::SYS_setresgid, group, keep, group));
            }
            if let Some(user) = spec.user {
                must!(User, libc::syscall(libc::SYS_setresuid, user, keep, user));
            }
        }
        // After the user is set: its permissions decide.
        if let [directory, _] = lists.cwd.as_slice() {
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
        execute(lists)
    }
}

/// Executes the first file that can be executed, as `execvp` does: EACCES is remembered, and the search continues.
///
/// # Safety
/// As for [`run_child`].
unsafe fn execute(lists: &PointerLists) -> Failure {
    let mut worst = Failure { step: SpawnStep::Execute, errno: Errno::ENOENT, file: 0 };
    for (nth, file) in lists.files.iter().enumerate().filter(|(_, file)| !file.is_null()) {
        // SAFETY: null-terminated strings and lists.
        unsafe { libc::execve(*file, lists.arguments.as_ptr(), lists.environment.as_ptr()) };
        match Errno::last() {
            // With a single candidate its own error is the most precise one.
            only if lists.files.len() == 2 => return Failure { errno: only, file: nth, ..worst },
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
