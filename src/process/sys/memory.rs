//! Giving memory back to the kernel.
#![expect(unsafe_code, reason = "raw system calls; every block says why it is sound")]

use std::ffi::{c_int, c_void};

use nix::libc;

const PAGE: usize = 4096;

/// Returns the free heap, and the pages of the program's code and constants, to the kernel.
///
/// Most code pages are needed once, to load the configuration. They are backed by the executable file: dropping them
/// changes only how much memory counts as used by the supervisor, and the next access reads the page cache again.
pub(crate) fn release_unused_memory() {
    // SAFETY: takes no pointer; allocated blocks stay where they are.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    // SAFETY: `release_program` has the expected signature and takes no data.
    unsafe { libc::dl_iterate_phdr(Some(release_program), std::ptr::null_mut()) };
}

/// Releases the read-only segments of the first object, which is the program itself. The nonzero result ends the
/// iteration.
unsafe extern "C" fn release_program(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the C library passes a valid structure, whose program headers are as many as it says.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
    };
    for header in headers.iter().filter(|one| one.p_type == libc::PT_LOAD && one.p_flags & libc::PF_W == 0) {
        let start = base.wrapping_add(header.p_vaddr) as usize;
        let end = start.saturating_add(header.p_memsz as usize);
        let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        if end > start {
            // SAFETY: the segment is mapped read-only from the executable file, so dropping its pages loses nothing. If
            // the kernel refuses, the pages stay.
            unsafe {
                libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTNEED)
            };
        }
    }
    1
}
