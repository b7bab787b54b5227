//! A process that tries paths (P15).
//!
//! A thread that waits for a file system cannot be ended. While it waits, another process that looks up the same name
//! cannot be killed: the kernel lets the second look-up wait for the result of the first. A job on that file system
//! could not be stopped then. A process can be killed, and its look-up ends with it. So a scout tries a path before a
//! thread looks at it.
#![expect(unsafe_code, reason = "raw system calls; every block has its SAFETY comment")]

use std::ffi::{CString, c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;

use super::raw::call;
use super::{POLLIN, checked, may_share_memory, nonblocking_pipe, poll, poll_fd};

/// Much more than the process needs, also in a debug build.
const STACK_BYTES: usize = 64 * 1024;

/// How long scouts may take to die after SIGKILL. One takes longer only while it waits for the look-up of another
/// process.
const KILLED: Duration = Duration::from_millis(100);

/// What the process uses.
#[derive(Debug)]
struct ScoutMemory {
    groups: Vec<Vec<CString>>,
    result: RawFd,
    stack: Box<[MaybeUninit<u8>]>,
}

/// A process that tries paths, one after another, until [`Scout::end`].
#[derive(Debug)]
pub struct Scout {
    pid: i32,
    /// Gets a byte for each group that was answered, and is closed when the process ends.
    result: OwnedFd,
    is_closed: bool,
    /// Freed when the process has ended: it may share it.
    memory: ManuallyDrop<Box<ScoutMemory>>,
}

impl Scout {
    /// Starts to try groups of paths. In each, no path is tried after one that can be executed or entered.
    pub fn start(groups: Vec<Vec<CString>>) -> Result<Self, Errno> {
        let (result, end) = nonblocking_pipe()?;
        let stack = Box::new_uninit_slice(STACK_BYTES);
        let mut memory = Box::new(ScoutMemory { groups, result: end.as_raw_fd(), stack });
        let shared = if may_share_memory() { libc::CLONE_VM } else { 0 };
        let pid = match clone(&mut memory, shared) {
            // An emulator of another architecture knows only `fork`.
            Err(Errno::EINVAL) if shared != 0 => clone(&mut memory, 0)?,
            pid => pid?,
        };
        Ok(Self { pid, result, is_closed: false, memory: ManuallyDrop::new(memory) })
    }

    /// Closed by the process when it ends; `None` if nothing more can be [read](Self::read).
    pub fn poll_fd(&self) -> Option<RawFd> {
        (!self.is_closed).then(|| self.result.as_raw_fd())
    }

    /// How many more groups were answered since the last call.
    pub fn read(&mut self) -> usize {
        let mut buffer = [0; 256];
        let mut count = 0;
        while !self.is_closed {
            match nix::unistd::read(self.result.as_fd(), &mut buffer) {
                Ok(0) => self.is_closed = true,
                Ok(read) => count += read,
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        count
    }

    /// Kills processes that have not ended, and reaps all of them. One that does not die at once stays a zombie.
    pub fn end(scouts: Vec<Self>) {
        for scout in scouts.iter().filter(|scout| !scout.is_closed) {
            // SAFETY: no memory is involved. The pid is not reused: only `reap` reaps the process.
            unsafe { libc::kill(scout.pid, libc::SIGKILL) };
        }
        let deadline = Instant::now() + KILLED;
        for mut scout in scouts {
            scout.read();
            while !scout.is_closed && Instant::now() < deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                let _ = poll(&mut [poll_fd(scout.result.as_raw_fd(), POLLIN)], Some(left));
                scout.read();
            }
            // Otherwise it may still use the memory, which is therefore not freed.
            if scout.is_closed {
                scout.reap();
            }
        }
    }

    /// The process has closed its pipe.
    fn reap(mut self) {
        // SAFETY: the process has left the memory before it closed the pipe. Nothing uses the memory after this.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let (pid, options) = (self.pid as libc::id_t, libc::WEXITED | libc::__WALL);
        loop {
            // SAFETY: the kernel fills in the structure. The process is exiting, so this does not wait for long.
            let result = unsafe { libc::waitid(libc::P_PID, pid, info.as_mut_ptr(), options) };
            if checked(result.into()) != Err(Errno::EINTR) {
                return;
            }
        }
    }
}

/// Creates the process. It sends no signal when it exits, so a `waitid` for jobs does not see it.
fn clone(memory: &mut ScoutMemory, shared: c_int) -> Result<i32, Errno> {
    let stack = memory.stack.as_mut_ptr_range().end;
    // SAFETY: the process runs on its own stack, only makes system calls, and does not return. It reads `memory`, which
    // `Scout` keeps while the process shares it.
    let pid = unsafe {
        libc::clone(run, stack.cast::<c_void>(), shared, std::ptr::from_mut(memory).cast::<c_void>())
    };
    i32::try_from(checked(pid.into())?).map_err(|_| Errno::EINVAL)
}

/// The process. It must not allocate, take a lock, panic or use thread-local storage.
extern "C" fn run(memory: *mut c_void) -> c_int {
    // SAFETY: `clone` has passed a pointer to this structure, which is not changed while it is shared. All other
    // pointers are valid, and each length is that of its buffer.
    unsafe {
        let memory = &*memory.cast::<ScoutMemory>();
        // It must not keep pipes of jobs open.
        if memory.result != 0 {
            let _ = call(libc::SYS_dup3, [memory.result as usize, 0, 0]);
        }
        let _ = call(libc::SYS_close_range, [1, u32::MAX as usize, 0]);
        for group in &memory.groups {
            for path in group {
                let name = path.as_ptr().expose_provenance();
                let arguments = [libc::AT_FDCWD as usize, name, libc::X_OK as usize];
                if call(libc::SYS_faccessat, arguments).is_ok() {
                    break;
                }
            }
            let _ = call(libc::SYS_write, [0, c"x".as_ptr().expose_provenance(), 1]);
        }
        loop {
            let _ = call(libc::SYS_exit_group, [0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p15_scout_reports_each_group_and_leaves_no_zombie() {
        let path = |text: &str| CString::new(text).unwrap();
        let groups = vec![vec![path("/no/such/path"), path("/bin/sh")], vec![path("/")], vec![]];
        let mut scout = Scout::start(groups).unwrap();
        let mut count = 0;
        while !scout.is_closed {
            poll(&mut [poll_fd(scout.result.as_raw_fd(), POLLIN)], None).unwrap();
            count += scout.read();
        }
        assert_eq!((count, scout.poll_fd()), (3, None));
        let pid = scout.pid;
        Scout::end(vec![scout]);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
