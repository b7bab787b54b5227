//! The header of a recording, and of its chunks.

/// The first bytes of a recording, with the version of the format.
pub(crate) const MAGIC: &[u8] = b"CPREC\x001";

/// Before each chunk: its length and its checksum.
pub(crate) const CHUNK_HEADER: usize = 4 + 4;

/// At the beginning of a chunk: what it is, and how many inputs the block has with it.
pub(crate) const CHUNK_PREFIX: usize = 1 + 4;

/// The chunk continues a block.
pub(crate) const CONTINUES: u8 = 0;

/// The chunk begins a block, with the state that the inputs before it have led to.
pub(crate) const FOLLOWS: u8 = 1;

/// The chunk begins a block after an internal error: its state does not follow from the inputs before it.
pub(crate) const AFTER_ERROR: u8 = 2;

/// A chunk that begins a block has its times next: that of the checkpoint in nanoseconds, and the milliseconds since 1970.
pub(crate) const BLOCK_TIMES: usize = 8 + 8;

/// The most bytes of a chunk. A number above it in a file is an error, and nothing is reserved for it.
pub(crate) const MAX_CHUNK: usize = 64 << 20;

/// Times have this resolution; what is finer costs 20 bits more.
pub(crate) const STEP: u64 = 1_000_000;

/// The most steps without a digest of their effects.
pub(crate) const DIGEST_EVERY: u32 = 64;
