//! Reads a recording, which may be truncated or broken.

use postcard::de_flavors::Flavor;
use serde::de::DeserializeOwned;

use crate::checksum::crc32;
use crate::coder::{Decoder, Models, NUMBER_CONTEXTS, Part, Rare};
use crate::format::{AFTER_ERROR, CHUNK_PREFIX, FOLLOWS, MAGIC, MAX_CHUNK, STEP};
use crate::recorder::Start;

/// A recording whose blocks are intact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording<'a> {
    /// The version of the core that it was made by.
    pub version: &'a str,
    /// The blocks, the oldest first.
    blocks: Vec<StoredBlock>,
    /// What follows the last intact block, if something does.
    pub damage: Option<Damage>,
}

/// A block, put together from its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredBlock {
    start: Start,
    inputs: u32,
    data: Vec<u8>,
}

/// The end of a recording that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins in the file.
    pub offset: usize,
    /// What is wrong with it.
    pub kind: DamageKind,
}

/// What is wrong with the end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The file ends in the middle of a chunk, as after a crash.
    Torn,
    /// A chunk has another checksum than it should have.
    Checksum,
    /// A chunk continues a block that is not there.
    Order,
}

/// Why a file is no recording that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It begins in another way.
    #[error("this is no recording of containerpilot")]
    Foreign,
    /// The format is newer.
    #[error("this recording has version {0} of the format; this program reads version 1")]
    Format(char),
    /// The header is not complete.
    #[error("the recording ends in its header")]
    Header,
    /// There is no intact block.
    #[error("the recording has no intact block")]
    Empty,
}

impl<'a> Recording<'a> {
    /// Reads as far as the blocks are intact.
    pub fn read(file: &'a [u8]) -> Result<Self, ReadError> {
        let (name, format) = MAGIC.split_at(MAGIC.len() - 1);
        let rest = file.strip_prefix(name).ok_or(ReadError::Foreign)?;
        let (found, rest) = rest.split_first().ok_or(ReadError::Header)?;
        if [*found] != *format {
            return Err(ReadError::Format(char::from(*found)));
        }
        let (length, rest) = rest.split_first_chunk().ok_or(ReadError::Header)?;
        let (version, mut rest) =
            rest.split_at_checked(usize::from(u16::from_le_bytes(*length))).ok_or(ReadError::Header)?;
        let version = std::str::from_utf8(version).map_err(|_| ReadError::Foreign)?;
        let (mut blocks, mut damage): (Vec<StoredBlock>, _) = (Vec::new(), None);
        while !rest.is_empty() {
            match chunk(rest).and_then(|(body, after)| add(&mut blocks, body).map(|()| after)) {
                Ok(after) => rest = after,
                Err(kind) => {
                    damage = Some(Damage { offset: file.len() - rest.len(), kind });
                    break;
                }
            }
        }
        if blocks.is_empty() {
            return Err(ReadError::Empty);
        }
        Ok(Self { version, blocks, damage })
    }

    /// The blocks, the oldest first. A reader has tables of 57 KB, so that those of all blocks could be much larger
    /// than the file.
    pub fn blocks(&self) -> impl Iterator<Item = BlockReader<'_>> {
        (0..).map_while(|nth| self.block(nth))
    }

    /// The block with this number.
    pub(crate) fn block(&self, nth: usize) -> Option<BlockReader<'_>> {
        self.blocks.get(nth).map(|block| BlockReader {
            source: Source { decoder: Decoder::new(&block.data), models: Models::new(), part: Part::State },
            start: block.start,
            last: block.start.time,
            left: block.inputs,
        })
    }
}

/// The content of an intact chunk, and what follows it.
fn chunk(bytes: &[u8]) -> Result<(&[u8], &[u8]), DamageKind> {
    let split = |bytes| <[u8]>::split_first_chunk::<4>(bytes).ok_or(DamageKind::Torn);
    let (length, rest) = split(bytes)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if !(CHUNK_PREFIX..=MAX_CHUNK).contains(&length) {
        return Err(DamageKind::Checksum);
    }
    let (checksum, rest) = split(rest)?;
    let (body, rest) = rest.split_at_checked(length).ok_or(DamageKind::Torn)?;
    if crc32(body) != u32::from_le_bytes(*checksum) {
        return Err(DamageKind::Checksum);
    }
    Ok((body, rest))
}

/// Adds a chunk to the block that it begins or continues.
fn add(blocks: &mut Vec<StoredBlock>, body: &[u8]) -> Result<(), DamageKind> {
    let (kind, body) = body.split_first().ok_or(DamageKind::Checksum)?;
    let (inputs, body) = body.split_first_chunk().ok_or(DamageKind::Checksum)?;
    let inputs = u32::from_le_bytes(*inputs);
    if [FOLLOWS, AFTER_ERROR].contains(kind) {
        let (time, body) = body.split_first_chunk().ok_or(DamageKind::Checksum)?;
        let (unix, data) = body.split_first_chunk().ok_or(DamageKind::Checksum)?;
        let (time, unix) = (u64::from_le_bytes(*time), u64::from_le_bytes(*unix));
        let start = Start { time, unix, follows: *kind == FOLLOWS };
        blocks.push(StoredBlock { start, inputs, data: data.to_vec() });
        return Ok(());
    }
    let block = blocks.last_mut().filter(|block| block.inputs <= inputs).ok_or(DamageKind::Order)?;
    // It stood for what follows now.
    block.data.pop();
    block.data.extend_from_slice(body);
    block.inputs = inputs;
    Ok(())
}

/// Reads a block: first its checkpoint, then each input and its time.
#[derive(Clone, Debug)]
pub struct BlockReader<'a> {
    source: Source<'a>,
    start: Start,
    last: u64,
    left: u32,
}

/// An input that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded<T> {
    /// When, in nanoseconds.
    pub time: u64,
    /// What.
    pub input: T,
    /// The digest that was written with it.
    pub digest: Option<u16>,
}

/// The block says something impossible, although its checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block of the recording has an intact checksum, and content that this program cannot read")]
pub struct Unreadable;

impl BlockReader<'_> {
    /// How it begins.
    #[must_use]
    pub const fn start(&self) -> Start {
        self.start
    }

    /// The number of inputs that have not been read.
    #[must_use]
    pub const fn inputs_left(&self) -> u32 {
        self.left
    }

    /// The state at the beginning.
    pub fn checkpoint<T: DeserializeOwned>(&mut self) -> Result<T, Unreadable> {
        self.source.value(Part::State).map(|(state, _)| state)
    }

    /// The next input and its time. `expected` is told the input, and returns the time that the recorder was given for
    /// it. `None` at the end of the block.
    pub fn input<T: DeserializeOwned>(
        &mut self,
        expected: impl FnOnce(&T) -> Option<u64>,
    ) -> Result<Option<Recorded<T>>, Unreadable> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let (input, kind) = self.source.value(Part::Input)?;
        let (from, context) = match expected(&input) {
            Some(expected) => (expected, NUMBER_CONTEXTS - 1),
            None => (self.last, kind % (NUMBER_CONTEXTS - 1)),
        };
        let number = self.source.number(context)?;
        let from = from / STEP;
        let steps =
            if number & 1 == 0 { from.checked_add(number >> 1) } else { from.checked_sub(number >> 1) };
        let rest = self.source.rare(Rare::Finer)?;
        let time = steps.and_then(|steps| steps.checked_mul(STEP)?.checked_add(rest)).ok_or(Unreadable)?;
        let digest = self.source.rare(Rare::Digest)?;
        self.last = time;
        self.left = left;
        let digest = u16::try_from(digest).ok().filter(|digest| *digest != 0);
        Ok(Some(Recorded { time, input, digest }))
    }
}

/// The bytes of values, as the decoder gives them.
#[derive(Clone, Debug)]
struct Source<'a> {
    decoder: Decoder<'a>,
    models: Models,
    part: Part,
}

impl Source<'_> {
    /// A value, and its first byte.
    fn value<T: DeserializeOwned>(&mut self, part: Part) -> Result<(T, usize), Unreadable> {
        self.models.begin();
        self.part = part;
        let mut deserializer =
            postcard::Deserializer::from_flavor(Bytes { source: self, first: None, buffer: Vec::new() });
        let value = T::deserialize(&mut deserializer).map_err(|_| Unreadable)?;
        let first = deserializer.finalize().map_err(|_| Unreadable)?;
        Ok((value, usize::from(first)))
    }

    fn number(&mut self, context: usize) -> Result<u64, Unreadable> {
        self.decoder.number(&mut self.models, context).map_err(|_| Unreadable)
    }

    fn rare(&mut self, rare: Rare) -> Result<u64, Unreadable> {
        self.decoder.rare(&mut self.models, rare).map_err(|_| Unreadable)
    }
}

struct Bytes<'b, 'a> {
    source: &'b mut Source<'a>,
    first: Option<u8>,
    buffer: Vec<u8>,
}

impl<'b> Flavor<'b> for Bytes<'b, '_> {
    /// The first byte.
    type Remainder = u8;
    type Source = ();

    fn pop(&mut self) -> postcard::Result<u8> {
        let source = &mut *self.source;
        let byte = source.decoder.byte(&mut source.models, source.part);
        let byte = byte.map_err(|_| postcard::Error::DeserializeUnexpectedEnd)?;
        self.first.get_or_insert(byte);
        Ok(byte)
    }

    /// Nothing can be borrowed: the types own their texts.
    fn try_take_n(&mut self, _: usize) -> postcard::Result<&'b [u8]> {
        Err(postcard::Error::WontImplement)
    }

    fn try_take_n_temp<'c>(&'c mut self, count: usize) -> postcard::Result<&'c [u8]>
    where
        'b: 'c,
    {
        self.buffer.clear();
        for _ in 0..count {
            let byte = self.pop()?;
            self.buffer.push(byte);
        }
        Ok(&self.buffer)
    }

    fn finalize(self) -> postcard::Result<u8> {
        Ok(self.first.unwrap_or_default())
    }
}
