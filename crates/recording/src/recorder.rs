//! Writes a recording in memory.

use std::collections::VecDeque;

use postcard::ser_flavors::Flavor;
use serde::Serialize;

use crate::checksum::crc32;
use crate::coder::{Encoder, MODELS_BYTES, Models, NUMBER_CONTEXTS, Part};
use crate::format::{BLOCK_HEADER, MAGIC, STEP};

/// So many blocks fill the memory. With more, more of it is checkpoints; with fewer, more is dropped at a time.
const BLOCKS: usize = 8;

/// A recording that keeps the newest blocks that fit.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// The version of the core, in the header.
    version: String,
    /// The bound of all blocks together.
    memory: usize,
    /// Finished blocks with their headers, the oldest first.
    blocks: VecDeque<Vec<u8>>,
    current: Option<Block>,
}

/// A block that is being written.
#[derive(Clone, Debug)]
struct Block {
    encoder: Encoder,
    models: Models,
    start: u64,
    last: u64,
    inputs: u32,
    /// With so many bytes it is full.
    full: usize,
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
        Self { version, memory, blocks: VecDeque::new(), current: None }
    }

    /// Returns true if the next thing to write is a checkpoint: there is no block yet, or the current one is full.
    #[must_use]
    pub fn needs_checkpoint(&self) -> bool {
        self.current.as_ref().is_none_or(|block| block.encoder.len() >= block.full)
    }

    /// A new block, with the state at this time in nanoseconds. A state that takes more than half of the memory is
    /// refused: nothing is recorded then.
    pub fn checkpoint(&mut self, time: u64, state: &impl Serialize) -> Result<(), TooLarge> {
        self.blocks.extend(self.current.take().map(|block| block.finished()));
        let block = Block::begin(time, state, self.memory);
        let size = block.encoder.len();
        if size > self.memory / 2 {
            self.blocks.clear();
            return Err(TooLarge { needed: size * 2 + MODELS_BYTES });
        }
        self.current = Some(block);
        self.drop_oldest();
        Ok(())
    }

    /// An input at this time. `expected` is a time that the reader knows as well: that of the timer that is due. Without
    /// a block, nothing is written.
    pub fn input(&mut self, time: u64, expected: Option<u64>, input: &impl Serialize) {
        let Some(block) = &mut self.current else { return };
        let kind = block.write(Part::Input, input);
        block.time(time, expected, kind);
        block.inputs += 1;
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        while self.size() > self.memory && self.blocks.pop_front().is_some() {}
    }

    /// The recording so far.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let current = self.current.as_ref().map(Block::finished);
        let blocks = || self.blocks.iter().chain(&current);
        let mut out =
            Vec::with_capacity(MAGIC.len() + 2 + self.version.len() + blocks().map(Vec::len).sum::<usize>());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&u16::try_from(self.version.len()).unwrap_or_default().to_le_bytes());
        out.extend_from_slice(self.version.as_bytes());
        blocks().for_each(|block| out.extend_from_slice(block));
        out
    }

    /// The memory that the recording takes now, without what the coder has learned.
    #[must_use]
    pub fn size(&self) -> usize {
        let current = self.current.as_ref().map_or(0, |block| block.encoder.capacity() + BLOCK_HEADER);
        self.blocks.iter().map(Vec::len).sum::<usize>() + current
    }
}

impl Block {
    fn begin(time: u64, state: &impl Serialize, memory: usize) -> Self {
        let (encoder, models) = (Encoder::new(), Models::new());
        let mut block = Self { encoder, models, start: time, last: time, inputs: 0, full: 0 };
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
        self.encoder.rare(&mut self.models, time % STEP, 20);
        self.last = time;
    }

    /// The block as it is stored, if nothing followed.
    fn finished(&self) -> Vec<u8> {
        let data = self.encoder.finished();
        let mut body = Vec::with_capacity(BLOCK_HEADER + data.len());
        body.extend_from_slice(&self.start.to_le_bytes());
        body.extend_from_slice(&self.inputs.to_le_bytes());
        body.extend_from_slice(&data);
        let mut out = Vec::with_capacity(8 + body.len());
        out.extend_from_slice(&u32::try_from(body.len()).unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&crc32(&body).to_le_bytes());
        out.extend_from_slice(&body);
        out
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
