//! Writes a recording in memory.

use std::collections::VecDeque;

use postcard::ser_flavors::Flavor;
use serde::Serialize;

use crate::checksum::crc32;
use crate::coder::{Encoder, MODELS_BYTES, Models, NUMBER_CONTEXTS, Part, Rare};
use crate::format::{AFTER_ERROR, BLOCK_TIMES, CHUNK_HEADER, CHUNK_PREFIX, CONTINUES, FOLLOWS, MAGIC, STEP};

/// So many blocks fill the memory. With more, more of it is checkpoints; with fewer, more is dropped at a time.
const BLOCKS: usize = 8;

/// A recording that keeps the newest blocks that fit.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// The version of the core, in the header.
    version: String,
    /// The bound of all blocks together.
    memory: usize,
    /// Finished blocks, each as one chunk, the oldest first.
    blocks: VecDeque<Vec<u8>>,
    current: Option<Block>,
    /// Whether the next checkpoint is the state that the inputs before it lead to.
    follows: bool,
    /// The chunks that the file does not have yet; `None` without a file.
    chunks: Option<Vec<Chunk>>,
}

/// A part of a recording, to append to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Whether a block begins with it. A file can begin with it, too.
    pub begins: bool,
    /// What to write.
    pub bytes: Vec<u8>,
}

/// How a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The time in nanoseconds, on the clock of the core.
    pub time: u64,
    /// The time in milliseconds since 1970.
    pub unix: u64,
    /// Whether its state is the one that the inputs before it have led to, if there are any.
    pub follows: bool,
}

/// A block that is being written.
#[derive(Clone, Debug)]
struct Block {
    encoder: Encoder,
    models: Models,
    start: Start,
    last: u64,
    inputs: u32,
    /// With so many bytes it is full.
    full: usize,
    /// How many bytes and inputs are in chunks that were taken.
    taken: (usize, u32),
}

/// The state does not fit into the memory of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// With so many bytes it fits.
    pub needed: usize,
}

impl Recorder {
    /// With so many bytes of memory in all, for this version of the core.
    #[must_use]
    pub const fn new(memory: usize, version: String) -> Self {
        let memory = memory.saturating_sub(MODELS_BYTES);
        Self { version, memory, blocks: VecDeque::new(), current: None, follows: true, chunks: None }
    }

    /// Returns true if the next thing to write is a checkpoint: there is no block yet, or the current one is full.
    #[must_use]
    pub fn needs_checkpoint(&self) -> bool {
        self.current.as_ref().is_none_or(|block| block.encoder.len() >= block.full)
    }

    /// The next thing to write is a checkpoint that does not follow from the inputs before it.
    pub fn begin_after_error(&mut self) {
        self.end_block();
        self.follows = false;
    }

    fn end_block(&mut self) {
        let Some(mut block) = self.current.take() else { return };
        if let Some(chunks) = &mut self.chunks {
            chunks.extend(block.new_chunk());
        }
        self.blocks.push_back(block.whole().bytes);
    }

    /// A new block, with the state at this time in nanoseconds, and in milliseconds since 1970. A state that takes more than half of the memory is refused: nothing is
    /// recorded then.
    pub fn checkpoint(&mut self, (time, unix): (u64, u64), state: &impl Serialize) -> Result<(), TooLarge> {
        self.end_block();
        let start = Start { time, unix, follows: self.follows };
        let block = Block::begin(start, state, self.memory);
        let size = block.encoder.len();
        if size > self.memory / 2 {
            self.blocks.clear();
            return Err(TooLarge { needed: size * 2 + MODELS_BYTES });
        }
        self.current = Some(block);
        self.follows = true;
        self.drop_oldest();
        Ok(())
    }

    /// An input at this time. `expected` is a time that the reader knows as well: that of the timer that is due. A digest
    /// is of what was decided before this input. Without a block, nothing is written.
    pub fn input(&mut self, time: u64, expected: Option<u64>, digest: Option<u16>, input: &impl Serialize) {
        let Some(block) = &mut self.current else { return };
        let kind = block.write(Part::Input, input);
        block.time(time, expected, kind);
        block.digest(digest);
        block.inputs += 1;
        self.drop_oldest();
    }

    /// Has everything that is written from now on kept for a file, from the next block on.
    pub fn begin_file(&mut self) {
        self.end_block();
        self.chunks = Some(Vec::new());
    }

    /// No chunks are kept any more.
    pub fn end_file(&mut self) {
        self.chunks = None;
    }

    /// What a file does not have yet.
    pub fn take_chunks(&mut self) -> Vec<Chunk> {
        let Some(chunks) = &mut self.chunks else { return Vec::new() };
        chunks.extend(self.current.as_mut().and_then(Block::new_chunk));
        std::mem::take(chunks)
    }

    /// How a file with chunks begins.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MAGIC.len() + 2 + self.version.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&u16::try_from(self.version.len()).unwrap_or_default().to_le_bytes());
        out.extend_from_slice(self.version.as_bytes());
        out
    }

    fn drop_oldest(&mut self) {
        while self.size() > self.memory && self.blocks.pop_front().is_some() {}
    }

    /// The recording so far.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let current = self.current.as_ref().map(|block| block.whole().bytes);
        let mut out = self.header();
        let blocks = || self.blocks.iter().chain(&current);
        out.reserve_exact(blocks().map(Vec::len).sum());
        blocks().for_each(|block| out.extend_from_slice(block));
        out
    }

    /// The memory that the recording takes now, without what the coder has learned.
    #[must_use]
    pub fn size(&self) -> usize {
        let current = self
            .current
            .as_ref()
            .map_or(0, |block| block.encoder.capacity() + CHUNK_HEADER + CHUNK_PREFIX + BLOCK_TIMES);
        self.blocks.iter().map(Vec::len).sum::<usize>() + current
    }
}

impl Block {
    fn begin(start: Start, state: &impl Serialize, memory: usize) -> Self {
        let (encoder, models) = (Encoder::new(), Models::new());
        let mut block = Self { encoder, models, start, last: start.time, inputs: 0, full: 0, taken: (0, 0) };
        block.write(Part::State, state);
        // A large state is written less often: at most half of a recording is checkpoints.
        block.full = (block.encoder.len() * 2).max(memory / BLOCKS);
        block
    }

    /// Returns the first byte: the kind of an input.
    fn write(&mut self, part: Part, value: &impl Serialize) -> usize {
        self.models.begin();
        let mut sink = Sink { block: self, part, first: None };
        // The sink takes everything. The types of the core have nothing that the format cannot write.
        let _ = serialize(value, &mut sink);
        usize::from(sink.first.unwrap_or_default())
    }

    fn time(&mut self, time: u64, expected: Option<u64>, kind: usize) {
        let (from, context) = match expected {
            Some(expected) => (expected, NUMBER_CONTEXTS - 1),
            None => (self.last, kind % (NUMBER_CONTEXTS - 1)),
        };
        // Also a time before the expected one can be written.
        let (steps, from_steps) = (time / STEP, from / STEP);
        let number = match steps.checked_sub(from_steps) {
            Some(later) => later << 1,
            None => (from_steps - steps) << 1 | 1,
        };
        self.encoder.number(&mut self.models, context, number);
        self.encoder.rare(&mut self.models, Rare::Finer, time % STEP);
        self.last = time;
    }

    fn digest(&mut self, digest: Option<u16>) {
        self.encoder.rare(&mut self.models, Rare::Digest, digest.map_or(0, u64::from));
    }

    /// All of it as one chunk, if nothing followed.
    fn whole(&self) -> Chunk {
        self.chunk(0)
    }

    /// What was written since the last chunk was taken.
    fn new_chunk(&mut self) -> Option<Chunk> {
        let (from, inputs) = self.taken;
        if from > 0 && inputs == self.inputs {
            return None;
        }
        let chunk = self.chunk(from);
        self.taken = (self.encoder.len(), self.inputs);
        Some(chunk)
    }

    /// The bytes from here on.
    fn chunk(&self, from: usize) -> Chunk {
        let (begins, data) = (from == 0, self.encoder.finished(from));
        let mut body = Vec::with_capacity(CHUNK_PREFIX + BLOCK_TIMES + data.len());
        body.push(match (begins, self.start.follows) {
            (false, _) => CONTINUES,
            (true, true) => FOLLOWS,
            (true, false) => AFTER_ERROR,
        });
        body.extend_from_slice(&self.inputs.to_le_bytes());
        if begins {
            body.extend_from_slice(&self.start.time.to_le_bytes());
            body.extend_from_slice(&self.start.unix.to_le_bytes());
        }
        body.extend_from_slice(&data);
        let mut bytes = Vec::with_capacity(CHUNK_HEADER + body.len());
        bytes.extend_from_slice(&u32::try_from(body.len()).unwrap_or_default().to_le_bytes());
        bytes.extend_from_slice(&crc32(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        Chunk { begins, bytes }
    }
}

/// Passes the bytes of a value to the coder.
struct Sink<'a> {
    block: &'a mut Block,
    part: Part,
    first: Option<u8>,
}

impl Flavor for &mut Sink<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.first.get_or_insert(byte);
        self.block.encoder.byte(&mut self.block.models, self.part, byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

fn serialize(value: &impl Serialize, sink: &mut Sink<'_>) -> postcard::Result<()> {
    postcard::serialize_with_flavor(value, sink)
}
