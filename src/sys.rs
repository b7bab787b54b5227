//! All system calls that the standard library has no words for. The only room where `unsafe` stands.
//!
//! Signals are handled by number and with the kernel's own calls, because the C library hides some of them
//! and because what happens in a child before its program runs must not go through the library's locks.
#![expect(unsafe_code, reason = "raw system calls; every block says why it is sound")]

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use containerpilot_config::interfaces::HostAddress;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{Limit, Resource, Signal};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
pub(crate) use nix::libc::{POLLHUP, POLLIN, POLLOUT, pollfd as Awaited};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::epoll::{EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::MsgFlags;

/// The addresses of the network interfaces, in the order the system gives them.
pub(crate) fn interface_addresses() -> Vec<HostAddress> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    interfaces
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            let v6 = address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
            Some(HostAddress { interface: interface.interface_name, ip: v4.or(v6)? })
        })
        .collect()
}

/// The host's name, or nothing if it has none that is text.
pub(crate) fn hostname() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// Whether this process may execute a file.
pub(crate) fn may_execute(path: &Path) -> bool {
    nix::unistd::eaccess(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Signals, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SignalSet(u64);

impl SignalSet {
    /// No signal.
    pub(crate) const NONE: Self = Self(0);

    /// Every signal that can be caught and that the C library does not keep to itself (32 and 33).
    pub(crate) const CATCHABLE: Self =
        Self(!(bit(libc::SIGKILL as u8) | bit(libc::SIGSTOP as u8) | bit(32) | bit(33)));

    /// These and another one.
    pub(crate) const fn with(self, signal: u8) -> Self {
        Self(self.0 | bit(signal))
    }

    /// These without one.
    pub(crate) const fn without(self, signal: u8) -> Self {
        Self(self.0 & !bit(signal))
    }

    /// Their numbers.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u8> {
        (1..=64).filter(move |signal| self.0 & bit(*signal) != 0)
    }
}

const fn bit(signal: u8) -> u64 {
    1 << (signal - 1)
}

/// The size of the kernel's set of signals.
const SET_SIZE: usize = size_of::<u64>();

/// More than the kernel's `struct sigaction` on any machine; all zeros is the default disposition.
type KernelAction = [u64; 8];

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

/// Wakes a thread that waits, from any other thread.
#[derive(Debug)]
pub(crate) struct Waker(EventFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
    }

    /// Never blocks. The only way to fail is a counter that is full, and then the thread is woken anyway.
    pub(crate) fn wake(&self) {
        let _ = self.0.write(1);
    }

    /// Takes the wake-ups that have come.
    pub(crate) fn clear(&self) {
        let _ = self.0.read();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
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
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the slice is as long as is said, the time is absent or there; the mask is not changed.
    let result = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout, std::ptr::null::<libc::sigset_t>())
    };
    checked(result.into()).map(drop)
}

/// Makes this process the one that orphans below it are given to (P1).
pub(crate) fn become_subreaper() -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }.into()).map(drop)
}

/// Sets the name in the process table (P1).
pub(crate) fn set_name(name: &std::ffi::CStr) -> Result<(), Errno> {
    // SAFETY: a string with its end; the kernel takes the first fifteen bytes.
    checked(unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) }.into()).map(drop)
}

/// Gives back the pages of our own code and constants. Most of them were needed to understand the configuration and
/// never again; those that are needed come back from the file by themselves.
///
/// This frees no memory that the kernel could not have taken back by itself: it is the pages' owner and keeps them in
/// its cache. But they do not count as ours any more (some 1.6 MiB), and are the first to go when memory is short. It
/// costs page faults when something happens for the first time after the start.
pub(crate) fn release_code() {
    unsafe extern "C" {
        static __executable_start: u8;
        static _etext: u8;
    }
    const PAGE: usize = 4096;
    let start = (&raw const __executable_start).addr().next_multiple_of(PAGE);
    let end = (&raw const _etext).addr() / PAGE * PAGE;
    if end > start {
        // SAFETY: what the linker puts between these two is read-only and backed by the file, so that giving a page
        // back changes nothing but where it is found next time. If the kernel refuses, all stays as it was.
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

/// A resource limit: the one that counts, and how far it may be raised.
pub(crate) type RawLimit = (libc::rlim_t, libc::rlim_t);

/// Raises the number of descriptors this process may have as far as it may go, since each job needs two.
/// Says what it was before, if it was less.
pub(crate) fn raise_descriptor_limit() -> Option<RawLimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there to be written, and then to be read.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 || limit.rlim_cur >= limit.rlim_max {
            return None;
        }
        let before = (limit.rlim_cur, limit.rlim_max);
        limit.rlim_cur = limit.rlim_max;
        (libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0).then_some(before)
    }
}

/// How many descriptors this process may have.
pub(crate) fn descriptor_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there to be written.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    (asked == 0).then_some(limit.rlim_cur)
}

/// How much processor time this process has used, all its threads together.
pub(crate) fn processor_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is there to be written.
    let asked = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    (asked == 0).then(|| Duration::new(seconds, nanoseconds))
}

/// A connection that is being made. It is ready to be written to when it stands or has failed.
pub(crate) fn begin_connection(to: SocketAddr) -> Result<TcpStream, Errno> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, socket};
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(family, SockType::Stream, flags, None)?;
    match connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(fd)),
        Err(errno) => Err(errno),
    }
}

/// The user and group this process acts as.
pub(crate) fn effective_ids() -> (u32, u32) {
    // SAFETY: these never fail and touch no memory.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// A list of strings for the kernel, each with a zero at its end and none within.
#[derive(Debug, Default)]
pub(crate) struct CStrings {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl CStrings {
    /// Adds a string that is made of parts; refuses one with a zero in it.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), Errno> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(Errno::EINVAL);
        }
        self.starts.push(self.bytes.len());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.push(0);
        Ok(())
    }

    /// Takes all strings out.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }

    /// All strings, one after the other, each with its zero.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each string begins. Good as long as the list is not touched.
    fn each(&self) -> impl Iterator<Item = *const c_char> {
        let base = self.bytes.as_ptr();
        // SAFETY: every start lies within the bytes.
        self.starts.iter().map(move |start| unsafe { base.add(*start) }.cast::<c_char>())
    }

    /// Where each string begins, and a null at the end. Good as long as the list is not touched.
    fn pointers(&self) -> Vec<*const c_char> {
        let mut pointers = Vec::with_capacity(self.starts.len() + 1);
        pointers.extend(self.each());
        pointers.push(std::ptr::null());
        pointers
    }
}

/// The variables of a new process: several lists, each without the strings at some places, in ascending order.
#[derive(Debug)]
pub(crate) struct Variables<'a>(pub(crate) [(&'a CStrings, &'a [usize]); 3]);

impl Variables<'_> {
    /// As [`CStrings::pointers`].
    fn pointers(&self) -> Vec<*const c_char> {
        let most: usize = self.0.iter().map(|(list, _)| list.starts.len()).sum();
        let mut pointers = Vec::with_capacity(most + 1);
        for (list, hidden) in self.0 {
            if hidden.is_empty() {
                pointers.extend(list.each());
            } else {
                let shown = list.each().enumerate().filter(|(nth, _)| hidden.binary_search(nth).is_err());
                pointers.extend(shown.map(|(_, string)| string));
            }
        }
        pointers.push(std::ptr::null());
        pointers
    }
}

/// What a new process is to become.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    /// The files that may hold the program, in the order in which they are tried.
    pub(crate) files: &'a CStrings,
    /// Its arguments, the program's name first.
    pub(crate) arguments: &'a CStrings,
    /// Its environment.
    pub(crate) environment: Variables<'a>,
    /// The working directory: one string, or none to stay.
    pub(crate) cwd: &'a CStrings,
    /// What its standard input is to be; `None` is our own, and the terminal with it.
    pub(crate) stdin: Option<BorrowedFd<'a>>,
    /// What its standard output and error are to be; `None` is our own.
    pub(crate) output: Option<(BorrowedFd<'a>, BorrowedFd<'a>)>,
    /// The descriptors below this number are copied, the others never reach the child. `None` where the
    /// kernel cannot do that; all are copied then, and closed when the program is executed.
    pub(crate) copy_below: Option<u32>,
    /// The signals whose default disposition has to be restored.
    pub(crate) ignored: SignalSet,
    /// The mask for new files.
    pub(crate) umask: Option<u16>,
    /// The limit of descriptors, if ours is not the one we were given.
    pub(crate) descriptors: Option<RawLimit>,
    /// Resource limits.
    pub(crate) limits: &'a [Limit],
    /// Supplementary groups, if they are to change.
    pub(crate) groups: Option<&'a [u32]>,
    /// The group, if it is to change.
    pub(crate) group: Option<u32>,
    /// The user, if it is to change.
    pub(crate) user: Option<u32>,
    /// Whether it can never gain privileges.
    pub(crate) no_new_privileges: bool,
}

/// What a new process was about when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing yet: there was no room for another process.
    Begin,
    /// To lead a process group.
    Group,
    /// To set its descriptors.
    Descriptors,
    /// To set a resource limit.
    Limits,
    /// To become another user or group.
    User,
    /// To change the directory.
    Directory,
    /// To give up privileges.
    Privileges,
    /// To execute the program.
    Execute,
}

/// How starting a process failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// At what.
    pub(crate) step: Step,
    /// Why.
    pub(crate) errno: Errno,
    /// Which of the files was the last one tried.
    pub(crate) file: usize,
    /// The process that failed and waits to be reaped, if there was one.
    pub(crate) pid: Option<i32>,
}

/// The stack of a process between its beginning and its program.
pub(crate) struct Stack(Box<[MaybeUninit<u128>]>);

impl Stack {
    /// As large as the few calls in [`become_program`] will ever need, in a debug build too.
    const BYTES: usize = 64 * 1024;

    pub(crate) fn new() -> Self {
        Self(Box::new_uninit_slice(Self::BYTES / size_of::<u128>()))
    }

    fn top(&mut self) -> *mut c_void {
        self.0.as_mut_ptr_range().end.cast()
    }
}

/// An image with everything in the kernel's form.
struct Order<'a> {
    image: &'a Image<'a>,
    files: Vec<*const c_char>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    cwd: Vec<*const c_char>,
    failed: Cell<Option<(Step, Errno, usize)>>,
}

/// Starts a process. It has executed its program when this returns, or has failed.
///
/// The child borrows our memory until then (`CLONE_VM | CLONE_VFORK`, as `posix_spawn` does), so that nothing
/// is copied however large we are, other threads go on, and it can tell exactly what failed by writing it down.
pub(crate) fn start(image: &Image<'_>, stack: &mut Stack) -> Result<i32, Failed> {
    let order = Order {
        image,
        files: image.files.pointers(),
        arguments: image.arguments.pointers(),
        environment: image.environment.pointers(),
        cwd: image.cwd.pointers(),
        failed: Cell::new(None),
    };
    let mut flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    if image.copy_below.is_some() {
        flags |= libc::CLONE_FILES;
    }
    let order_pointer = (&raw const order).cast_mut().cast::<c_void>();
    // SAFETY: the child runs `child` on a stack of its own, which is aligned and which nobody else uses, since
    // it is borrowed exclusively and we sleep until the child has executed a program or is gone; until then
    // `order` and all it borrows are untouched. The child only makes system calls and writes to `failed`.
    let pid = unsafe { libc::clone(child, stack.top(), flags, order_pointer) };
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
        if let [directory, _] = order.cwd.as_slice() {
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
    for (nth, file) in order.files.iter().enumerate() {
        if file.is_null() {
            break;
        }
        // SAFETY: strings and lists with their ends, from the order.
        unsafe { libc::execve(*file, order.arguments.as_ptr(), order.environment.as_ptr()) };
        match Errno::last() {
            // Where there is only one place to look, its own words are the best.
            only if order.files.len() == 2 => return (Step::Execute, only, nth),
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

/// Waits until one of many descriptors can be read.
#[derive(Debug)]
pub(crate) struct Readable {
    epoll: nix::sys::epoll::Epoll,
    events: Vec<EpollEvent>,
}

impl Readable {
    /// At most so many descriptors are reported at a time.
    pub(crate) fn new(at_a_time: usize) -> io::Result<Self> {
        let epoll = nix::sys::epoll::Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, events: vec![EpollEvent::empty(); at_a_time] })
    }

    /// Adds a descriptor under a number. It leaves by being closed, if it has no duplicate.
    pub(crate) fn add(&self, fd: impl AsFd, number: u64) -> io::Result<()> {
        Ok(self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, number))?)
    }

    /// Waits without end and puts the numbers of those that can be read into `ready`.
    pub(crate) fn wait(&mut self, ready: &mut Vec<u64>) {
        ready.clear();
        // An error can only be an interruption: then nothing is ready, and the caller comes again.
        let count = self.epoll.wait(&mut self.events, EpollTimeout::NONE).unwrap_or(0);
        ready.extend(self.events.iter().take(count).map(EpollEvent::data));
    }
}

/// Waits until one descriptor can be read, or another written, or the time is over.
pub(crate) fn wait_read_or_write(
    read: BorrowedFd<'_>,
    write: Option<BorrowedFd<'_>>,
    limit: Option<Duration>,
) {
    let mut fds = vec![PollFd::new(read, PollFlags::POLLIN)];
    fds.extend(write.map(|fd| PollFd::new(fd, PollFlags::POLLOUT)));
    // Rounded up, so that a wait never ends before its time and is repeated for nothing.
    let milliseconds = |limit: Duration| i32::try_from(limit.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX);
    let timeout = limit.map_or(PollTimeout::NONE, |limit| {
        PollTimeout::try_from(milliseconds(limit)).unwrap_or(PollTimeout::MAX)
    });
    // An interruption ends the wait early, which the caller must expect anyway.
    let _ = nix::poll::poll(&mut fds, timeout);
}

/// Whether a write to a descriptor would do something at once: take bytes, or fail.
pub(crate) fn can_write_now(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLOUT)];
    nix::poll::poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Reads what is there.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(nix::unistd::read(fd, buffer)?)
}

/// Makes reads of a pipe's end fail instead of waiting. It must be an end that has no other flags, as a new one.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// How many bytes a pipe can hold; nothing for what is no pipe.
pub(crate) fn pipe_size(fd: BorrowedFd<'_>) -> Option<usize> {
    usize::try_from(fcntl(fd, FcntlArg::F_GETPIPE_SZ).ok()?).ok()
}

/// Makes a pipe hold more, if the system allows it; returns what it then holds.
pub(crate) fn grow_pipe(fd: BorrowedFd<'_>, size: usize) -> Option<usize> {
    let size = i32::try_from(size).ok()?;
    usize::try_from(fcntl(fd, FcntlArg::F_SETPIPE_SZ(size)).ok()?).ok()
}

/// Writes to a socket without waiting, whatever the others who share it have set.
pub(crate) fn send_now(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    Ok(nix::sys::socket::send(fd.as_raw_fd(), bytes, flags)?)
}

/// A socket that listens at a path, with this mode and not a wider one from its first moment on.
pub(crate) fn listen_unix(path: &Path, mode: u32, backlog: i32) -> io::Result<UnixListener> {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // The file that binding makes takes its mode from the socket, and loses what the process's mask takes away.
    nix::sys::stat::fchmod(&fd, nix::sys::stat::Mode::from_bits_truncate(mode))?;
    bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&fd, Backlog::new(backlog)?)?;
    Ok(UnixListener::from(fd))
}

/// Connects to a path without waiting, not even for a listener that is too busy to take anybody.
pub(crate) fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(UnixStream::from(fd))
}

/// The process at the other end of a connection.
pub(crate) fn peer_pid(stream: &UnixStream) -> Option<i32> {
    let credentials =
        nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::PeerCredentials).ok()?;
    Some(credentials.pid()).filter(|pid| *pid > 0)
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
