//! Signal sets, dispositions and signal descriptors.
#![expect(unsafe_code, reason = "raw system calls; every block has its SAFETY comment")]

use std::ffi::{c_int, c_long};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use containerpilot_core::plan::Signal;
use nix::errno::Errno;
use nix::libc;

use super::{checked, owned};

/// The size of the kernel's signal set.
pub(super) const SET_SIZE: usize = size_of::<u64>();

/// At least as large as the kernel's `struct sigaction` on every architecture. All zeros is the default disposition.
pub(super) type KernelAction = [u64; 8];

/// A set of signals, one bit each, as the kernel has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet(u64);

impl SignalSet {
    pub const EMPTY: Self = Self(0);

    /// Every signal that can be caught and that the C library does not reserve for itself (32 and 33).
    pub const CATCHABLE: Self =
        Self(!(bit(libc::SIGKILL as u8) | bit(libc::SIGSTOP as u8) | bit(32) | bit(33)));

    pub const fn with(self, signal: u8) -> Self {
        Self(self.0 | bit(signal))
    }

    pub const fn without(self, signal: u8) -> Self {
        Self(self.0 & !bit(signal))
    }

    pub fn numbers(self) -> impl Iterator<Item = u8> {
        (1..=64).filter(move |signal| self.0 & bit(*signal) != 0)
    }
}

const fn bit(signal: u8) -> u64 {
    1 << (signal - 1)
}

/// Blocks signals for this thread and for the threads that it starts from now on.
pub fn block_signals(set: SignalSet) -> Result<(), Errno> {
    // SAFETY: the kernel reads the eight bytes of the set; the old set is not requested.
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

/// What a signal does that is not blocked.
#[derive(Clone, Copy, Debug)]
pub enum Disposition {
    Default = 0,
    Ignore = 1,
}

/// Sets the disposition of a signal.
pub fn set_disposition(signal: u8, disposition: Disposition) -> Result<(), Errno> {
    // The handler is the first word of the structure.
    let action: KernelAction = [disposition as u64, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the kernel reads at most a `struct sigaction`, which `action` holds; the old one is not requested.
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
pub fn ignored_signals() -> SignalSet {
    let ignored = |signal: &u8| {
        let mut action: KernelAction = [0; 8];
        // SAFETY: the kernel writes at most a `struct sigaction`, for which `action` is large enough.
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
    (1..=64).filter(ignored).fold(SignalSet::EMPTY, SignalSet::with)
}

/// A non-blocking descriptor from which blocked signals are read.
pub fn signal_fd(set: SignalSet) -> Result<OwnedFd, Errno> {
    // SAFETY: the kernel reads the eight bytes of the set.
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

/// A signal that was read from a signal descriptor.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedSignal {
    pub signal: Signal,
    /// The sending process; 0 if the kernel sent it, or a process outside of our pid namespace.
    pub sender: i32,
}

/// Reads one signal from a descriptor, if one is pending.
pub fn read_signal(fd: BorrowedFd<'_>) -> Result<Option<ReceivedSignal>, Errno> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the buffer has the length that is passed.
    let read = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
    match checked(read as c_long) {
        Ok(read) if read as usize == size => {
            // SAFETY: a structure of integers, all zero or written by the kernel.
            let info = unsafe { info.assume_init() };
            let number = u8::try_from(info.ssi_signo).unwrap_or(0);
            Ok(Some(ReceivedSignal { signal: Signal(number), sender: info.ssi_pid as i32 }))
        }
        Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
        Err(errno) => Err(errno),
    }
}
