//! Reads a recording, which may be truncated or broken.

use postcard::de_flavors::Flavor;
use serde::de::DeserializeOwned;

use crate::checksum::crc32;
use crate::coder::{Decoder, Models, NUMBER_CONTEXTS, Part};
use crate::format::{BLOCK_HEADER, MAGIC, MAX_BLOCK, STEP};

/// A recording whose blocks are intact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording<'a> {
    /// The version of the core that it was made by.
    pub version: &'a str,
    /// The blocks, the oldest first.
    blocks: Vec<StoredBlock<'a>>,
    /// What follows the last intact block, if something does.
    pub damage: Option<Damage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoredBlock<'a> {
    start: u64,
    inputs: u32,
    data: &'a [u8],
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
    /// The file ends in the middle of a block, as after a crash.
    Torn,
    /// A block has another checksum than it should have.
    Checksum,
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
        let (mut blocks, mut damage) = (Vec::new(), None);
        while !rest.is_empty() {
            match block(rest) {
                Ok((block, after)) => {
                    blocks.push(block);
                    rest = after;
                }
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

    /// The blocks, the oldest first.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = BlockReader<'a>> + '_ {
        self.blocks.iter().map(|block| BlockReader {
            source: Source { decoder: Decoder::new(block.data), models: Models::new(), part: Part::State },
            start: block.start,
            last: block.start,
            left: block.inputs,
        })
    }
}

/// A block, and what follows it.
fn block(bytes: &[u8]) -> Result<(StoredBlock<'_>, &[u8]), DamageKind> {
    let split = |bytes| <[u8]>::split_first_chunk::<4>(bytes).ok_or(DamageKind::Torn);
    let (length, rest) = split(bytes)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if !(BLOCK_HEADER - 8..=MAX_BLOCK).contains(&length) {
        return Err(DamageKind::Checksum);
    }
    let (checksum, rest) = split(rest)?;
    let (body, rest) = rest.split_at_checked(length).ok_or(DamageKind::Torn)?;
    if crc32(body) != u32::from_le_bytes(*checksum) {
        return Err(DamageKind::Checksum);
    }
    let (start, body) = body.split_first_chunk().ok_or(DamageKind::Checksum)?;
    let (inputs, data) = body.split_first_chunk().ok_or(DamageKind::Checksum)?;
    Ok((StoredBlock { start: u64::from_le_bytes(*start), inputs: u32::from_le_bytes(*inputs), data }, rest))
}

/// Reads a block: first its checkpoint, then each input and its time.
#[derive(Clone, Debug)]
pub struct BlockReader<'a> {
    source: Source<'a>,
    start: u64,
    last: u64,
    left: u32,
}

/// The block says something impossible, although its checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block of the recording has an intact checksum, and content that this program cannot read")]
pub struct Unreadable;

impl BlockReader<'_> {
    /// When the checkpoint was made, in nanoseconds.
    #[must_use]
    pub const fn start(&self) -> u64 {
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
    ) -> Result<Option<(u64, T)>, Unreadable> {
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
        let rest = self.source.rare(20)?;
        let time = steps.and_then(|steps| steps.checked_mul(STEP)?.checked_add(rest)).ok_or(Unreadable)?;
        self.last = time;
        self.left = left;
        Ok(Some((time, input)))
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

    fn rare(&mut self, bits: u64) -> Result<u64, Unreadable> {
        self.decoder.rare(&mut self.models, bits).map_err(|_| Unreadable)
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
