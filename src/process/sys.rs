//! All system calls that the standard library has no words for. The only file in which `unsafe` stands: what can be said
//! in safe words is in the modules below, which forbid it.
//!
//! Signals are handled by number and with the kernel's own calls, because the C library hides some of them
//! and because what happens in a child before its program runs must not go through the library's locks.
#![expect(unsafe_code, reason = "raw system calls; every block says why it is sound")]

mod host;
mod image;
mod pipes;
mod sets;
mod sockets;
mod urgent;
mod waits;

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{Resource, Signal};
use nix::errno::Errno;
use nix::libc;
pub(crate) use nix::libc::{POLLHUP, POLLIN, POLLOUT, pollfd as Awaited};

pub(crate) use self::host::*;
pub(crate) use self::image::*;
pub(crate) use self::pipes::*;
pub(crate) use self::sets::*;
pub(crate) use self::sockets::*;
pub(crate) use self::urgent::*;
pub(crate) use self::waits::*;

/// The size of the kernel's set of signals.
const SET_SIZE: usize = size_of::<u64>();

/// More than the kernel's `struct sigaction` on any machine; all zeros is the default disposition.
type KernelAction = [u64; 8];

/// Ends the process at once: nothing that is still open, in a buffer or on another thread is seen to.
#[cfg(not(test))]
pub(crate) fn end(code: u8) -> ! {
    // SAFETY: it takes no pointer and does not come back.
    unsafe { libc::_exit(code.into()) }
}

fn checked(result: c_long) -> Result<c_long, Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}

/// Keeps signals from being delivered to this thread, and to threads that it starts from now on.
pub(crate) fn block_signals(set: SignalSet) -> Result<(), Errno> {
    // SAFETY: the kernel reads eight bytes that are there; the old set is not asked for.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            &raw const set.0,
            std::ptr::null_mut::<u64>(),
            SET_SIZE,
        )
    };
    checked(result).map(drop)
}

/// Lets a signal do again what it does by default.
pub(crate) fn restore_default(signal: u8) -> Result<(), Errno> {
    // All zero: the default handler, no flags, an empty mask.
    let action: KernelAction = [0; 8];
    // SAFETY: the kernel reads at most a `struct sigaction`, which is there; the old one is not asked for.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            c_int::from(signal),
            &raw const action,
            std::ptr::null_mut::<KernelAction>(),
            SET_SIZE,
        )
    };
    checked(result).map(drop)
}

/// The signals that this process ignores.
pub(crate) fn ignored_signals() -> SignalSet {
    let ignored = |signal: &u8| {
        let mut action: KernelAction = [0; 8];
        // SAFETY: the kernel writes at most a `struct sigaction`, for which there is room.
        let result = unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                c_int::from(*signal),
                std::ptr::null::<KernelAction>(),
                &raw mut action,
                SET_SIZE,
            )
        };
        // The handler is the first word of the structure.
        result == 0 && matches!(action, [first, ..] if first == libc::SIG_IGN as u64)
    };
    (1..=64).filter(ignored).fold(SignalSet::NONE, SignalSet::with)
}

/// A descriptor from which blocked signals are read.
pub(crate) fn signal_fd(set: SignalSet) -> Result<OwnedFd, Errno> {
    // SAFETY: the kernel reads eight bytes that are there.
    let fd = checked(unsafe {
        libc::syscall(
            libc::SYS_signalfd4,
            -1,
            &raw const set.0,
            SET_SIZE,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        )
    })?;
    owned(fd)
}

/// A signal that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// Which.
    pub(crate) signal: Signal,
    /// The process that sent it; 0 if the kernel did, or a process outside our namespace.
    pub(crate) sender: i32,
}

/// One signal from a descriptor, if there is one.
#[inline(never)]
pub(crate) fn read_signal(fd: BorrowedFd<'_>) -> Result<Option<Arrived>, Errno> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the buffer is as long as is said.
    let read = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
    match checked(read as c_long) {
        Ok(read) if read as usize == size => {
            // SAFETY: a structure of integers, all of which were zero or have been written.
            let info = unsafe { info.assume_init() };
            let number = u8::try_from(info.ssi_signo).unwrap_or(0);
            Ok(Some(Arrived { signal: Signal(number), sender: info.ssi_pid as i32 }))
        }
        Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn owned(fd: c_long) -> Result<OwnedFd, Errno> {
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just given it to us, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Something to wait for.
pub(crate) fn awaited(fd: RawFd, events: i16) -> Awaited {
    Awaited { fd, events, revents: 0 }
}

/// Waits until one of the descriptors is ready, or the time has passed (`None`: without end).
pub(crate) fn poll(fds: &mut [Awaited], timeout: Option<Duration>) -> Result<(), Errno> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the slice is as long as is said, the time is absent or there; the mask is not changed.
    let result = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout, std::ptr::null::<libc::sigset_t>())
    };
    checked(result.into()).map(drop)
}

/// Gives back what the start has used of the stack and of the heap, and needs no more. Only for the first thread.
pub(crate) fn release_memory() {
    let here = 0_u8;
    // What is below us on the stack belongs to functions that have returned; two pages are left to the one that is called
    // now, and to a signal that must not wait for more. The kernel keeps a megabyte below the stack free, so nothing else
    // can be meant.
    let end = (&raw const here).addr().saturating_sub(2 * PAGE);
    release(end.saturating_sub(256 * 1024), end);
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer; what is allocated stays where it is.
    unsafe {
        libc::malloc_trim(0)
    };
}

const PAGE: usize = 4096;

/// Where our own constants and code begin, and where they end.
fn own_code() -> std::ops::Range<usize> {
    unsafe extern "C" {
        static __executable_start: u8;
        static _etext: u8;
    }
    (&raw const __executable_start).addr()..(&raw const _etext).addr()
}

/// Has the processor fetch what is at an address, which need not be anything.
fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint: nothing is read, and an address where nothing is does no harm.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::with_exposed_provenance(address));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Gives back whole pages between two addresses.
fn release(start: usize, end: usize) {
    let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    if end > start {
        // SAFETY: whoever calls names what is either read-only and backed by our file, so that giving a page back changes
        // nothing but where it is found next time, or not in use. If the kernel refuses, all stays as it was.
        unsafe {
            libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTNEED)
        };
    }
}

/// What there is to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// A child has ended and waits to be reaped.
    Ended(i32, ExitStatus),
    /// There are children, and all of them live.
    Alive,
    /// There are no children.
    Childless,
}

/// Looks whether any child has ended, and leaves it as it is.
pub(crate) fn look() -> Result<Look, Errno> {
    wait_id(libc::P_ALL, 0, libc::WNOWAIT | libc::WNOHANG)
}

/// Looks whether one child has ended, and leaves it as it is. This is as quick with ten thousand children as with one.
pub(crate) fn look_at(pid: i32) -> Result<Look, Errno> {
    wait_id(libc::P_PID, pid, libc::WNOWAIT | libc::WNOHANG)
}

/// Reaps a child that has ended; waits for its end if need be.
pub(crate) fn reap(pid: i32) -> Result<(), Errno> {
    loop {
        match wait_id(libc::P_PID, pid, 0) {
            Err(Errno::EINTR) => {}
            other => return other.map(drop),
        }
    }
}

/// Whether a child of ours, living or ended, belongs to a process group. If so, the number of the group
/// cannot be reused before we reap that child.
pub(crate) fn has_child_in_group(group: i32) -> bool {
    !matches!(wait_id(libc::P_PGID, group, libc::WNOWAIT | libc::WNOHANG), Ok(Look::Childless) | Err(_))
}

fn wait_id(which: libc::idtype_t, id: i32, options: c_int) -> Result<Look, Errno> {
    let Ok(id) = libc::id_t::try_from(id) else { return Ok(Look::Childless) };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel fills in the structure, or leaves it zero if there is nothing.
    let result = unsafe { libc::waitid(which, id, info.as_mut_ptr(), libc::WEXITED | options) };
    match checked(result.into()) {
        Err(Errno::ECHILD) => return Ok(Look::Childless),
        Err(errno) => return Err(errno),
        Ok(_) => {}
    }
    // SAFETY: a structure of integers, all of which were zero or have been written; the accessors read the
    // fields that belong to a child's end, or zeros.
    let (pid, code, status) = unsafe {
        let info = info.assume_init();
        (info.si_pid(), info.si_code, info.si_status())
    };
    if pid == 0 {
        return Ok(Look::Alive);
    }
    let status = match (code, u8::try_from(status)) {
        (libc::CLD_EXITED, Ok(code)) => ExitStatus::Code(code),
        (_, Ok(signal)) => ExitStatus::Signal(Signal(signal)),
        (_, Err(_)) => ExitStatus::Code(255),
    };
    Ok(Look::Ended(pid, status))
}

/// Sends a signal to every process of a group.
pub(crate) fn kill_group(group: i32, signal: Signal) -> Result<(), Errno> {
    // `kill(-1)` is everybody and `kill(0)` our own group: neither is ever meant.
    if group <= 1 {
        return Err(Errno::EINVAL);
    }
    // SAFETY: no memory is involved.
    checked(unsafe { libc::kill(-group, signal.0.into()) }.into()).map(drop)
}

/// Whether anybody belongs to a process group, be it only as a zombie.
pub(crate) fn group_exists(group: i32) -> bool {
    // Signal 0 only asks. EPERM says that there is somebody, whom we may not signal.
    !matches!(kill_group(group, Signal(0)), Err(Errno::ESRCH | Errno::EINVAL))
}

/// Whether there is a process of that number, be it only as a zombie.
pub(crate) fn process_exists(pid: i32) -> bool {
    // SAFETY: no memory is involved.
    let result = unsafe { libc::kill(pid, 0) };
    result == 0 || Errno::last() != Errno::ESRCH
}

/// Marks every descriptor but the first three to be closed when a program is executed. Says whether the
/// kernel knows how to do that.
pub(crate) fn close_all_on_exec() -> bool {
    // SAFETY: no memory is involved, and no descriptor is closed.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 }
}

/// Marks one descriptor to be closed when a program is executed.
pub(crate) fn close_on_exec(fd: RawFd) {
    // SAFETY: no memory is involved; a number that is no descriptor is refused.
    unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// A copy of a descriptor with the lowest number from 3 on that is free.
pub(crate) fn low_copy(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // SAFETY: no memory is involved.
    owned(checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) }.into())?)
}

/// Makes a descriptor of ours stand for another file. It needs no room, and asks again when it was interrupted.
pub(crate) fn replace(slot: &OwnedFd, with: BorrowedFd<'_>) -> Result<(), Errno> {
    let once = || {
        // SAFETY: no memory is involved; the number stays ours.
        checked(unsafe { libc::dup3(with.as_raw_fd(), slot.as_raw_fd(), libc::O_CLOEXEC) }.into()).map(drop)
    };
    match once() {
        Err(Errno::EINTR | Errno::EBUSY) => once(),
        other => other,
    }
}

/// What a process needs between its beginning and its program: a stack, and the kernel's lists of strings. The next one
/// has it in the same room.
pub(crate) struct Room {
    stack: Box<[MaybeUninit<u128>]>,
    lists: Lists,
}

/// Strings of an image in the kernel's form. Good only while [`start`] borrows the image.
#[derive(Default)]
struct Lists {
    files: Vec<*const c_char>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    cwd: Vec<*const c_char>,
}

impl Room {
    /// As large as the few calls in [`become_program`] will ever need, in a debug build too.
    const STACK: usize = 64 * 1024;

    pub(crate) fn new() -> Self {
        Self { stack: Box::new_uninit_slice(Self::STACK / size_of::<u128>()), lists: Lists::default() }
    }
}

/// An image with everything in the kernel's form.
struct Order<'a> {
    image: &'a Image<'a>,
    lists: &'a Lists,
    failed: Cell<Option<(Step, Errno, usize)>>,
}

/// Starts a process. It has executed its program when this returns, or has failed.
///
/// The child borrows our memory until then (`CLONE_VM | CLONE_VFORK`, as `posix_spawn` does), so that nothing
/// is copied however large we are, other threads go on, and it can tell exactly what failed by writing it down.
pub(crate) fn start(image: &Image<'_>, room: &mut Room) -> Result<i32, Failed> {
    let Room { stack, lists } = room;
    image.files.list(&mut lists.files);
    image.arguments.list(&mut lists.arguments);
    image.environment.list(&mut lists.environment);
    image.cwd.list(&mut lists.cwd);
    let order = Order { image, lists, failed: Cell::new(None) };
    let mut flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    if image.copy_below.is_some() {
        flags |= libc::CLONE_FILES;
    }
    let order_pointer = (&raw const order).cast_mut().cast::<c_void>();
    // SAFETY: the child runs `child` on a stack of its own, which is aligned and which nobody else uses, since
    // it is borrowed exclusively and we sleep until the child has executed a program or is gone; until then
    // `order` and all it borrows are untouched. The child only makes system calls and writes to `failed`.
    let pid = unsafe { libc::clone(child, stack.as_mut_ptr_range().end.cast(), flags, order_pointer) };
    if pid < 0 {
        return Err(Failed { step: Step::Begin, errno: Errno::last(), file: 0, pid: None });
    }
    match order.failed.get() {
        None => Ok(pid),
        Some((step, errno, file)) => Err(Failed { step, errno, file, pid: Some(pid) }),
    }
}

extern "C" fn child(order: *mut c_void) -> c_int {
    // SAFETY: `start` passes its order, which outlives us.
    let order = unsafe { &*order.cast::<Order<'_>>() };
    // SAFETY: we are the new process, which `become_program` asks for.
    order.failed.set(Some(unsafe { become_program(order) }));
    127
}

/// Does what the order says; returns only if something fails.
///
/// # Safety
/// For the new process of [`start`] only: it changes everything about the process that calls it. It shares the
/// memory of the supervisor, so it allocates nothing, takes no lock and cannot panic.
unsafe fn become_program(order: &Order<'_>) -> (Step, Errno, usize) {
    let image = order.image;
    macro_rules! must {
        ($step:ident, $call:expr) => {
            if ($call) < 0 {
                return (Step::$step, Errno::last(), 0);
            }
        };
    }
    // SAFETY: all pointers come from the order, where they are good; the calls are the kernel's own, or thin
    // wrappers that the C library declares safe after a fork. The ids are set by raw calls because the library's
    // would make the supervisor's other threads follow.
    unsafe {
        if let Some(first) = image.copy_below {
            // Until here the table of descriptors is the supervisor's own.
            must!(
                Descriptors,
                libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_UNSHARE)
            );
        }
        must!(Group, libc::setpgid(0, 0));
        match image.stdin {
            Some(null) => must!(Descriptors, libc::dup2(null.as_raw_fd(), 0)),
            // As tini does: on a terminal the program is in the foreground. Elsewhere this fails, as it should.
            None => drop(libc::tcsetpgrp(0, libc::getpid())),
        }
        if let Some((out, err)) = image.output {
            must!(Descriptors, libc::dup2(out.as_raw_fd(), 1));
            must!(Descriptors, libc::dup2(err.as_raw_fd(), 2));
        }
        if let Some(mask) = image.umask {
            libc::umask(mask.into());
        }
        if let Some((soft, hard)) = image.descriptors {
            let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
            must!(Limits, libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit));
        }
        for limit in image.limits {
            let value = |value: Option<u64>| value.unwrap_or(libc::RLIM_INFINITY);
            let pair = libc::rlimit { rlim_cur: value(limit.soft), rlim_max: value(limit.hard) };
            must!(Limits, libc::setrlimit(resource(limit.resource), &raw const pair));
        }
        if let Some(groups) = image.groups {
            must!(User, libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()));
        }
        if let Some(group) = image.group {
            must!(User, libc::syscall(libc::SYS_setresgid, group, group, group));
        }
        if let Some(user) = image.user {
            must!(User, libc::syscall(libc::SYS_setresuid, user, user, user));
        }
        // As the user, whose rights count from now on.
        if let [directory, _] = order.lists.cwd.as_slice() {
            must!(Directory, libc::chdir(*directory));
        }
        if image.no_new_privileges {
            must!(Privileges, libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        }
        // Handlers are reset by the kernel when a program is executed; what is ignored would stay ignored.
        let default: KernelAction = [0; 8];
        let nothing = std::ptr::null_mut::<KernelAction>();
        for signal in image.ignored.numbers() {
            libc::syscall(libc::SYS_rt_sigaction, c_int::from(signal), &raw const default, nothing, SET_SIZE);
        }
        let none = 0_u64;
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            std::ptr::null_mut::<u64>(),
            SET_SIZE,
        );
        execute(order)
    }
}

/// Executes the first file that can be, as `execvp` does: a file that may not be executed is passed over, but
/// remembered.
///
/// # Safety
/// As for [`become_program`].
unsafe fn execute(order: &Order<'_>) -> (Step, Errno, usize) {
    let mut worst = (Step::Execute, Errno::ENOENT, 0);
    for (nth, file) in order.lists.files.iter().enumerate() {
        if file.is_null() {
            break;
        }
        // SAFETY: strings and lists with their ends, from the order.
        unsafe { libc::execve(*file, order.lists.arguments.as_ptr(), order.lists.environment.as_ptr()) };
        match Errno::last() {
            // Where there is only one place to look, its own words are the best.
            only if order.lists.files.len() == 2 => return (Step::Execute, only, nth),
            Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE | Errno::ENODEV | Errno::ETIMEDOUT => {}
            Errno::EACCES if worst.1 == Errno::EACCES => {}
            Errno::EACCES => worst = (Step::Execute, Errno::EACCES, nth),
            other => return (Step::Execute, other, nth),
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

/// How many columns a terminal has; nothing if that is none, or does not know.
pub(crate) fn terminal_width(terminal: &impl AsFd) -> Option<usize> {
    // SAFETY: the kernel writes a `winsize` at this address and nowhere else, and any bytes are a `winsize`.
    let columns = unsafe {
        let mut size: nix::libc::winsize = std::mem::zeroed();
        let asked = nix::libc::ioctl(terminal.as_fd().as_raw_fd(), nix::libc::TIOCGWINSZ, &raw mut size);
        (asked == 0).then_some(size.ws_col)
    };
    columns.map(usize::from).filter(|columns| *columns >= 20)
}

#[cfg(test)]
mod tests;
