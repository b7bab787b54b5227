//! System calls that use no memory but that of their arguments.
//!
//! The functions of the C library set `errno`. A child that shares the supervisor's memory also shares the `errno` of
//! the thread that created it, so it must not use them.
#![expect(unsafe_code, reason = "a raw system call; every block has its SAFETY comment")]

use std::ffi::c_long;

use nix::errno::Errno;

/// Whether [`call`] leaves `errno` alone.
pub(super) const LEAVES_ERRNO: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Makes a system call with up to five arguments. Further ones are zero.
///
/// # Safety
/// The arguments must be valid for the system call.
pub(super) unsafe fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> Result<usize, Errno> {
    let mut all = [0; 5];
    for (place, argument) in all.iter_mut().zip(arguments) {
        *place = argument;
    }
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { system_call(number, all) };
    // The kernel returns errors as small negative numbers.
    match result {
        -4095..=-1 => Err(Errno::from_raw(-(result as i32))),
        _ => Ok(result as usize),
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn system_call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> isize {
    let result;
    // SAFETY: these are the registers of a system call, and those that it changes.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn system_call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> isize {
    let result;
    // SAFETY: these are the registers of a system call; it changes no others.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            options(nostack),
        );
    }
    result
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn system_call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> isize {
    // SAFETY: the caller vouches for the arguments.
    match unsafe { nix::libc::syscall(number, a, b, c, d, e) } {
        -1 => -(Errno::last() as isize),
        result => result as isize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_returned_and_errno_is_left_alone() {
        Errno::clear();
        // SAFETY: no memory is involved.
        let closed = unsafe { call(nix::libc::SYS_close, [usize::MAX]) };
        assert_eq!(closed, Err(Errno::EBADF));
        if LEAVES_ERRNO {
            assert_eq!(Errno::last_raw(), 0);
        }
        // SAFETY: no memory is involved.
        let pid = unsafe { call(nix::libc::SYS_getpid, []) };
        assert_eq!(pid, Ok(std::process::id() as usize));
    }
}
