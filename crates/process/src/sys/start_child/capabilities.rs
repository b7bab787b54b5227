//! Capabilities (P13). `execve` gives root the bounding set, and others the ambient set.

use containerpilot_core::plan::Capabilities;
use nix::errno::Errno;
use nix::libc;

use super::{Failure, SpawnStep, at, call};

/// `_LINUX_CAPABILITY_VERSION_3`, and this process.
static HEADER: [u32; 2] = [0x2008_0522, 0];
/// `struct __user_cap_data_struct`, for the low and for the high numbers: effective, permitted, inheritable.
type Sets = [[u32; 3]; 2];

/// About the capability `number`, or about none of them.
fn failure(errno: Errno, number: Option<usize>) -> Failure {
    Failure { step: SpawnStep::Capabilities, errno, file: number.map_or(0, |number| number + 1) }
}

/// Removes all others from the bounding set, and keeps the permitted ones across a switch of the user. This needs
/// privileges that are lost with that.
///
/// # Safety
/// The process must not share its memory.
pub(super) unsafe fn limit(kept: Capabilities, switches_user: bool) -> Result<(), Failure> {
    // SAFETY: no memory is involved.
    let prctl =
        |option: i32, argument: usize| unsafe { call(libc::SYS_prctl, [option as usize, argument, 0, 0, 0]) };
    // No process with as few capabilities may change this one before it has executed its program.
    prctl(libc::PR_SET_DUMPABLE, 0).map_err(|errno| failure(errno, None))?;
    for number in (0..64).filter(|number| !kept.contains(*number)) {
        match prctl(libc::PR_CAPBSET_READ, number) {
            Ok(0) => {}
            // The kernel knows no more.
            Err(_) => break,
            Ok(_) => {
                prctl(libc::PR_CAPBSET_DROP, number).map_err(|errno| failure(errno, Some(number)))?;
            }
        }
    }
    if switches_user {
        prctl(libc::PR_SET_KEEPCAPS, 1).map_err(|errno| failure(errno, None))?;
    }
    Ok(())
}

/// Makes these capabilities the only ones.
///
/// # Safety
/// As for [`limit`].
pub(super) unsafe fn keep(kept: Capabilities) -> Result<(), Failure> {
    let mut sets: Sets = [[0; 3]; 2];
    // SAFETY: the kernel reads the header, and reads or writes the sets, which have the size of that version.
    unsafe {
        let call_with = |number, sets: &mut Sets| call(number, [at(&raw const HEADER), at(sets)]);
        call_with(libc::SYS_capget, &mut sets).map_err(|errno| failure(errno, None))?;
        let permitted = u64::from(sets[0][1]) | u64::from(sets[1][1]) << 32;
        let missing = kept.0 & !permitted;
        if missing != 0 {
            return Err(failure(Errno::EPERM, Some(missing.trailing_zeros() as usize)));
        }
        let (low, high) = (kept.0 as u32, (kept.0 >> 32) as u32);
        sets = [[low; 3], [high; 3]];
        call_with(libc::SYS_capset, &mut sets).map_err(|errno| failure(errno, None))?;
        let ambient = |action: i32, number: usize| {
            call(libc::SYS_prctl, [libc::PR_CAP_AMBIENT as usize, action as usize, number, 0, 0])
        };
        ambient(libc::PR_CAP_AMBIENT_CLEAR_ALL, 0).map_err(|errno| failure(errno, None))?;
        for number in (0..64).filter(|number| kept.contains(*number)) {
            ambient(libc::PR_CAP_AMBIENT_RAISE, number).map_err(|errno| failure(errno, Some(number)))?;
        }
    }
    Ok(())
}
