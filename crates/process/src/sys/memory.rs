//! Keeps the heap together, and returns unused memory to the kernel.
#![expect(unsafe_code, reason = "raw system calls; every block has its SAFETY comment")]

use std::ffi::{c_int, c_void};

use nix::libc;

/// The start and length of each read-only segment of the program. There are two or three of them.
type Segments = [(usize, usize); 4];

/// Lets all threads share two arenas, the heaps of the C library. By default there may be eight per CPU. Each keeps what
/// its threads leave behind: with 500 log files, which have a thread each, that was five times as much.
///
/// To be called before there are threads.
pub fn limit_arenas() {
    // SAFETY: takes no pointer. If it fails, there are more arenas.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Returns the free heap, and the pages of the program's code and constants, to the kernel.
///
/// Most code pages are used only at the start, to load the configuration. They are backed by the executable file:
/// dropping them changes only how much memory counts as used by the supervisor, and the next access reads the page
/// cache again.
pub fn release_unused_memory() {
    // SAFETY: takes no pointer; allocated blocks stay where they are.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    let mut segments: Segments = [(0, 0); 4];
    // SAFETY: `find_segments` has the expected signature, and gets a pointer to `segments`, as it expects.
    unsafe { libc::dl_iterate_phdr(Some(find_segments), (&raw mut segments).cast()) };
    for (start, length) in segments.into_iter().filter(|(_, length)| *length > 0) {
        // SAFETY: the segment is mapped read-only from the executable file, so dropping its pages loses nothing. If the
        // kernel refuses, the pages stay.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(start), length, libc::MADV_DONTNEED) };
    }
}

/// Finds the read-only segments of the first object, which is the program itself. The nonzero result ends the
/// iteration.
unsafe extern "C" fn find_segments(info: *mut libc::dl_phdr_info, _: usize, segments: *mut c_void) -> c_int {
    // SAFETY: the C library passes a valid structure, with its number of program headers; the last argument
    // is the pointer of `release_unused_memory`.
    let (base, headers, segments) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        (info.dlpi_addr as usize, headers, &mut *segments.cast::<Segments>())
    };
    let read_only =
        headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0);
    let page = page_size();
    for (segment, header) in segments.iter_mut().zip(read_only) {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let end = start.saturating_add(header.p_memsz as usize) / page * page;
        let start = start.next_multiple_of(page);
        *segment = (start, end.saturating_sub(start));
    }
    1
}

/// The size of a page: 4 KiB on x86-64, up to 64 KiB on arm64.
pub fn page_size() -> usize {
    // SAFETY: no memory is involved.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // The largest page size of any supported machine: every address that is aligned to it is aligned to a page.
    usize::try_from(size).ok().filter(|size| *size > 0).unwrap_or(64 * 1024)
}
