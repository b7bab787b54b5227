//! Secrets (P11): a child reads them from a pipe, before it switches to its user.

use std::ffi::c_char;

use nix::errno::Errno;
use nix::libc;

use super::{Failure, SecretPipe, SpawnStep, at, call, fd};

/// Waits for the secrets, and adds them to the environment, which has room for them.
///
/// # Safety
/// As for [`run_child`](super::run_child).
pub(super) unsafe fn read(
    pipe: SecretPipe,
    buffer: &mut [u8],
    environment: &mut [*const c_char],
) -> Result<(), Failure> {
    let failure = |errno, file| Failure { step: SpawnStep::Secrets, errno, file };
    let fill = |buffer: &mut [u8]| {
        let mut rest = buffer;
        while !rest.is_empty() {
            // SAFETY: the kernel writes to the buffer only.
            match unsafe { call(libc::SYS_read, [fd(pipe.read_end), at(rest.as_mut_ptr()), rest.len()]) } {
                // The thread that reads the files has failed.
                Ok(0) => return Err(failure(Errno::EPIPE, usize::MAX)),
                Ok(count) => rest = rest.split_at_mut_checked(count).map_or(&mut [], |(_, rest)| rest),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(failure(errno, usize::MAX)),
            }
        }
        Ok(())
    };
    let mut head = [0; 8];
    fill(&mut head)?;
    let [a, b, c, d, e, f, g, h] = head;
    let (errno, number) = (i32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]) as usize);
    if errno != 0 {
        return Err(failure(Errno::from_raw(errno), number));
    }
    let Some(variables) = buffer.get_mut(..number) else { return Err(failure(Errno::EOVERFLOW, usize::MAX)) };
    fill(variables)?;
    // The last one stays null.
    let first = environment.len().saturating_sub(pipe.count + 1);
    let places = environment.iter_mut().skip(first).take(pipe.count);
    for (place, variable) in places.zip(variables.split_inclusive(|byte| *byte == 0)) {
        *place = variable.as_ptr().cast();
    }
    Ok(())
}
