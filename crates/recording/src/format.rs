//! The header of a recording, and of a block.

/// The first bytes of a recording, with the version of the format.
pub(crate) const MAGIC: &[u8] = b"CPREC\x001";

/// Before each block: its length, its checksum, the time of its checkpoint in nanoseconds, and the number of its inputs.
pub(crate) const BLOCK_HEADER: usize = 4 + 4 + 8 + 4;

/// The most bytes of a block. A number above it in a file is an error, and nothing is reserved for it.
pub(crate) const MAX_BLOCK: usize = 64 << 20;

/// Times have this resolution; what is finer costs 20 bits more.
pub(crate) const STEP: u64 = 1_000_000;
