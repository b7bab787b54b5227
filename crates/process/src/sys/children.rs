//! Waits for children and sends signals to process groups.
#![expect(unsafe_code, reason = "raw system calls; every block has its SAFETY comment")]

use std::ffi::c_int;
use std::mem::MaybeUninit;

use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;
use nix::errno::Errno;
use nix::libc;

use super::checked;

/// The result of a wait that does not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitState {
    /// A child has exited.
    Exited(i32, ExitStatus),
    /// There are children, and all of them are running.
    Running,
    /// There is no such child.
    NoChild,
}

/// Returns an exited child without reaping it.
pub fn wait_nowait() -> Result<WaitState, Errno> {
    wait_id(libc::P_ALL, 0, libc::WNOWAIT | libc::WNOHANG)
}

/// Returns the state of one child without reaping it. The cost does not depend on the number of children.
pub fn wait_pid_nowait(pid: i32) -> Result<WaitState, Errno> {
    wait_id(libc::P_PID, pid, libc::WNOWAIT | libc::WNOHANG)
}

/// Reaps a child; waits for its exit if it has not exited.
pub fn reap(pid: i32) -> Result<(), Errno> {
    loop {
        match wait_id(libc::P_PID, pid, 0) {
            Err(Errno::EINTR) => {}
            other => return other.map(drop),
        }
    }
}

/// Returns true if a child of this process, running or zombie, belongs to a process group. The group's number cannot be
/// reused before that child is reaped.
pub fn has_child_in_group(group: i32) -> bool {
    !matches!(wait_id(libc::P_PGID, group, libc::WNOWAIT | libc::WNOHANG), Ok(WaitState::NoChild) | Err(_))
}

fn wait_id(which: libc::idtype_t, id: i32, options: c_int) -> Result<WaitState, Errno> {
    let Ok(id) = libc::id_t::try_from(id) else { return Ok(WaitState::NoChild) };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel fills in the structure, or leaves it zero if no child has exited.
    let result = unsafe { libc::waitid(which, id, info.as_mut_ptr(), libc::WEXITED | options) };
    match checked(result.into()) {
        Err(Errno::ECHILD) => return Ok(WaitState::NoChild),
        Err(errno) => return Err(errno),
        Ok(_) => {}
    }
    // SAFETY: a structure of integers, all zero or written by the kernel; the accessors read the fields of a child's
    // exit, or zeros.
    let (pid, code, status) = unsafe {
        let info = info.assume_init();
        (info.si_pid(), info.si_code, info.si_status())
    };
    if pid == 0 {
        return Ok(WaitState::Running);
    }
    let status = match (code, u8::try_from(status)) {
        (libc::CLD_EXITED, Ok(code)) => ExitStatus::Code(code),
        (_, Ok(signal)) => ExitStatus::Signal(Signal(signal)),
        (_, Err(_)) => ExitStatus::Code(255),
    };
    Ok(WaitState::Exited(pid, status))
}

/// Sends a signal to every process of a group.
pub fn kill_group(group: i32, signal: Signal) -> Result<(), Errno> {
    // `kill(-1)` would signal every process, `kill(0)` our own group.
    if group <= 1 {
        return Err(Errno::EINVAL);
    }
    // SAFETY: no memory is involved.
    checked(unsafe { libc::kill(-group, signal.0.into()) }.into()).map(drop)
}

/// Sends a signal to one process, which must not have been reaped.
pub fn kill_process(pid: i32, signal: Signal) -> Result<(), Errno> {
    // `kill(0)` would signal our own group, a negative number another one.
    if pid <= 1 {
        return Err(Errno::EINVAL);
    }
    // SAFETY: no memory is involved.
    checked(unsafe { libc::kill(pid, signal.0.into()) }.into()).map(drop)
}

/// The process group of a process.
pub fn group_of(pid: i32) -> Option<i32> {
    nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(pid))).ok().map(nix::unistd::Pid::as_raw)
}

/// Returns true if a process group has a member, running or zombie.
pub fn group_exists(group: i32) -> bool {
    // Signal 0 only checks. EPERM means that there is a member that we may not signal.
    !matches!(kill_group(group, Signal(0)), Err(Errno::ESRCH | Errno::EINVAL))
}

/// Returns true if a process with this pid exists, running or zombie.
pub fn process_exists(pid: i32) -> bool {
    // SAFETY: no memory is involved.
    let result = unsafe { libc::kill(pid, 0) };
    result == 0 || Errno::last() != Errno::ESRCH
}
