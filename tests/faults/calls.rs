//! The system calls of the supervisor and the errors that each can return.
//!
//! Only errors that the kernel can return are listed: ENOSPC for a file but not for a pipe, and none for a write to an
//! eventfd. EAGAIN from a socket with pending data is not listed either: with edge-triggered polling no wake-up would
//! follow, and the kernel never does that.

use nix::errno::Errno::{self, *};
use nix::libc;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) number: i64,
    pub(crate) name: &'static str,
    /// The possible errors. Empty if it cannot fail, or if its result is not used.
    pub(crate) errors: &'static [Errno],
}

macro_rules! calls {
    ($($number:ident $name:literal: $($error:ident)*;)*) => {
        &[$(Call { number: libc::$number, name: $name, errors: &[$($error),*] },)*]
    };
}

/// Every call that the supervisor may make. A call that is missing here fails the test.
pub(crate) const CALLS: &[Call] = calls! {
    // Input and output.
    SYS_read "read file": EINTR EIO;
    SYS_read "read pipe": EINTR EAGAIN EIO;
    SYS_read "read eventfd": EINTR EAGAIN;
    SYS_read "read signalfd": EINTR EAGAIN;
    SYS_read "read socket": EINTR ECONNRESET;
    SYS_readv "readv": EINTR EAGAIN EIO;
    SYS_pread64 "pread64": EINTR EIO;
    SYS_recvfrom "recvfrom": EINTR ECONNRESET ENOMEM;
    SYS_recvmsg "recvmsg": EINTR ENOMEM;
    SYS_write "write file": EINTR ENOSPC EIO;
    SYS_write "write pipe": EINTR EAGAIN EPIPE;
    SYS_write "write eventfd":;
    SYS_write "write socket": EINTR EPIPE ENOMEM;
    SYS_writev "writev file": EINTR ENOSPC EIO;
    SYS_writev "writev pipe": EINTR EAGAIN EPIPE;
    SYS_writev "writev socket": EINTR EPIPE ENOMEM;
    SYS_sendto "sendto": EINTR EPIPE ENOMEM;
    SYS_sendmsg "sendmsg": EINTR EAGAIN EPIPE ENOMEM;
    SYS_sendmmsg "sendmmsg": EINTR EAGAIN ENOMEM;
    SYS_lseek "lseek": EINVAL;
    SYS_getdents64 "getdents64": EIO;
    // Descriptors.
    SYS_open "open": EMFILE ENFILE ENOMEM EINTR EIO ENOSPC;
    SYS_openat "openat": EMFILE ENFILE ENOMEM EINTR EIO ENOSPC;
    SYS_openat2 "openat2": EMFILE ENFILE ENOMEM EINTR EIO ENOSYS EPERM;
    SYS_close "close file": EINTR EIO ENOSPC;
    SYS_close "close directory": EINTR;
    SYS_close "close pipe": EINTR EIO;
    SYS_close "close socket": EINTR EIO;
    SYS_close "close eventfd": EINTR;
    SYS_close "close signalfd": EINTR;
    SYS_close "close eventpoll": EINTR;
    SYS_close_range "close_range": ENOMEM EMFILE ENOSYS EPERM;
    SYS_pipe2 "pipe2": EMFILE ENFILE ENOMEM;
    SYS_dup2 "dup2": EINTR EMFILE;
    SYS_dup3 "dup3": EINTR EMFILE EBUSY;
    SYS_fcntl "fcntl copy": EMFILE;
    SYS_fcntl "fcntl flags": EPERM;
    SYS_fcntl "fcntl pipe": EPERM EBUSY ENOMEM;
    SYS_fcntl "fcntl get":;
    SYS_ioctl "ioctl": EIO;
    SYS_eventfd2 "eventfd2": EMFILE ENFILE ENOMEM;
    SYS_signalfd4 "signalfd4": EMFILE ENFILE ENOMEM;
    SYS_epoll_create1 "epoll_create1": EMFILE ENFILE ENOMEM;
    SYS_epoll_ctl "epoll_ctl": ENOMEM ENOSPC;
    SYS_flock "flock": EINTR ENOMEM EAGAIN;
    // Waiting.
    SYS_poll "poll": EINTR ENOMEM;
    SYS_ppoll "ppoll": EINTR ENOMEM;
    SYS_epoll_wait "epoll_wait": EINTR;
    SYS_epoll_pwait "epoll_pwait": EINTR;
    SYS_clock_nanosleep "clock_nanosleep": EINTR;
    SYS_nanosleep "nanosleep": EINTR;
    SYS_futex "futex wait": EINTR EAGAIN;
    SYS_futex "futex wake":;
    SYS_waitid "waitid": EINTR ENOMEM;
    // Files.
    SYS_access "access": EIO ENOMEM;
    SYS_faccessat "faccessat": EIO ENOMEM;
    SYS_faccessat2 "faccessat2": EIO ENOMEM ENOSYS;
    SYS_stat "stat": EIO ENOMEM;
    SYS_fstat "fstat": EIO ENOMEM;
    SYS_newfstatat "newfstatat": EIO ENOMEM;
    SYS_statx "statx": EIO ENOMEM ENOSYS;
    SYS_fstatfs "fstatfs": EIO ENOMEM ENOSYS;
    SYS_readlink "readlink": EIO ENOMEM;
    SYS_readlinkat "readlinkat": EIO ENOMEM;
    SYS_unlink "unlink": EIO ENOMEM;
    SYS_unlinkat "unlinkat": EIO ENOMEM;
    SYS_mkdir "mkdir": EIO ENOMEM ENOSPC;
    SYS_mkdirat "mkdirat": EIO ENOMEM ENOSPC;
    SYS_renameat "renameat": EIO ENOMEM ENOSPC;
    SYS_rmdir "rmdir": EBUSY ENOMEM;
    SYS_chmod "chmod": EIO EPERM;
    SYS_fchmod "fchmod": EIO EPERM;
    SYS_chdir "chdir": EIO ENOMEM;
    SYS_getcwd "getcwd": ENOMEM;
    // Sockets.
    SYS_socket "socket": EMFILE ENFILE ENOMEM;
    SYS_socketpair "socketpair": EMFILE ENFILE ENOMEM;
    SYS_bind "bind": ENOMEM EADDRINUSE;
    SYS_listen "listen": ENOMEM EADDRINUSE;
    SYS_accept4 "accept4": EMFILE ENFILE ENOMEM EINTR ECONNABORTED;
    SYS_connect "connect": EINTR EAGAIN ECONNREFUSED ENOMEM;
    SYS_getsockopt "getsockopt": ENOMEM;
    SYS_setsockopt "setsockopt": ENOMEM;
    SYS_getsockname "getsockname": ENOMEM;
    SYS_getpeername "getpeername": ENOMEM;
    SYS_shutdown "shutdown": ENOMEM;
    // Processes and threads.
    SYS_clone "clone": EAGAIN ENOMEM;
    SYS_clone3 "clone3": EAGAIN ENOMEM EPERM;
    SYS_execve "execve": ENOMEM EIO EMFILE ENFILE EAGAIN;
    SYS_setpgid "setpgid": EPERM;
    SYS_setsid "setsid": EPERM;
    SYS_kill "kill": EPERM EAGAIN;
    SYS_getpgid "getpgid":;
    SYS_prctl "prctl": EPERM;
    SYS_prlimit64 "prlimit64": EPERM;
    SYS_setgroups "setgroups": ENOMEM;
    SYS_setresuid "setresuid": EAGAIN;
    SYS_setresgid "setresgid": EAGAIN;
    SYS_rt_sigprocmask "rt_sigprocmask":;
    SYS_rt_sigaction "rt_sigaction":;
    SYS_sigaltstack "sigaltstack": ENOMEM;
    SYS_sched_getaffinity "sched_getaffinity": EPERM;
    SYS_sched_yield "sched_yield":;
    SYS_set_robust_list "set_robust_list":;
    SYS_set_tid_address "set_tid_address":;
    SYS_rseq "rseq":;
    SYS_arch_prctl "arch_prctl":;
    SYS_exit "exit":;
    SYS_exit_group "exit_group":;
    SYS_restart_syscall "restart_syscall":;
    SYS_getpid "getpid":;
    SYS_getppid "getppid":;
    SYS_gettid "gettid":;
    SYS_getuid "getuid":;
    SYS_geteuid "geteuid":;
    SYS_getgid "getgid":;
    SYS_getegid "getegid":;
    SYS_umask "umask":;
    // Memory.
    SYS_brk "brk pages": ENOMEM;
    // It asks for the end of the heap, or moves it within its page, which the kernel always grants.
    SYS_brk "brk query":;
    SYS_mmap "mmap": ENOMEM;
    SYS_mremap "mremap": ENOMEM;
    SYS_munmap "munmap":;
    SYS_mprotect "mprotect": ENOMEM;
    SYS_madvise "madvise": EAGAIN ENOMEM;
    // Queries.
    SYS_getrandom "getrandom": EINTR ENOSYS;
    SYS_uname "uname": EPERM;
    SYS_sysinfo "sysinfo": EPERM;
    SYS_getrusage "getrusage": EPERM;
    SYS_clock_gettime "clock_gettime": EPERM;
};

pub(crate) fn known(name: &str) -> Option<&'static Call> {
    CALLS.iter().find(|call| call.name == name)
}

/// The name of a call; for some calls with the kind of their argument, which `kind` returns.
pub(crate) fn name(number: i64, kind: impl FnOnce(&str) -> &'static str) -> String {
    let Some(first) = CALLS.iter().find(|call| call.number == number) else {
        return format!("call {number}");
    };
    match first.name.split_once(' ') {
        None => first.name.to_owned(),
        Some((name, _)) => format!("{name} {}", kind(name)),
    }
}
