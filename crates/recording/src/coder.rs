//! An adaptive binary range coder: each bit costs as much as it surprises.
//!
//! A bit is written with the probability that it has had in the same context before. What has always been so costs a
//! fiftieth of a bit. It is not less, so that a few bytes of a broken file cannot stand for a gigabyte.

/// The probability that a bit is 1, of 65,536.
type Probability = u16;

/// How fast a probability follows what it sees.
const RATE: u32 = 5;

/// The probability of what has always been so is `1 - 1/LEAST`.
const LEAST: u16 = 64;

/// The number of contexts for bytes of checkpoints, for bytes of inputs, and for numbers.
const STATE_CONTEXTS: usize = 32;
const INPUT_CONTEXTS: usize = 64;
pub(crate) const NUMBER_CONTEXTS: usize = 32;

/// Numbers below this one are symbols of their own. Of others the length is a symbol, and their bits follow.
const SMALL: u64 = 64;

/// The memory of [`Models`].
pub(crate) const MODELS_BYTES: usize =
    ((STATE_CONTEXTS + INPUT_CONTEXTS) * 256 + NUMBER_CONTEXTS * 128) * size_of::<Probability>();

/// What a byte is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A checkpoint.
    State,
    /// An input.
    Input,
}

/// A number that is usually 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rare {
    /// What a time has beyond its resolution.
    Finer,
    /// A digest; 0 stands for none.
    Digest,
}

impl Rare {
    const fn bits(self) -> u64 {
        match self {
            Self::Finer => 20,
            Self::Digest => 16,
        }
    }
}

/// What the coder has learned so far.
#[derive(Clone, Debug)]
pub(crate) struct Models {
    bytes: Vec<Probability>,
    numbers: Vec<Probability>,
    /// Of each [`Rare`].
    rare: [Probability; 2],
    /// The bytes before the next one, and how many of the same part there were.
    last: u8,
    place: usize,
}

impl Models {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![1 << 15; (STATE_CONTEXTS + INPUT_CONTEXTS) * 256],
            numbers: vec![1 << 15; NUMBER_CONTEXTS * 128],
            rare: [1 << 15; 2],
            last: 0,
            place: 0,
        }
    }

    /// A checkpoint or an input begins.
    pub(crate) fn begin(&mut self) {
        self.last = 0;
        self.place = 0;
    }

    fn context(&self, part: Part) -> usize {
        let last = usize::from(self.last);
        match part {
            Part::State => last >> 3,
            Part::Input => STATE_CONTEXTS + self.place.min(3) * 16 + (last ^ last >> 4) % 16,
        }
    }

    const fn rare(&mut self, rare: Rare) -> &mut Probability {
        let [finer, digest] = &mut self.rare;
        match rare {
            Rare::Finer => finer,
            Rare::Digest => digest,
        }
    }

    fn seen(&mut self, byte: u8) {
        self.last = byte;
        self.place += 1;
    }

    /// Codes a byte: `code` takes the probability of each bit, and returns the bit.
    fn byte(&mut self, part: Part, mut code: impl FnMut(usize, &mut Probability) -> bool) -> u8 {
        let start = self.context(part) * 256;
        let byte = symbol(&mut self.bytes, start, 8, &mut code);
        let byte = u8::try_from(byte).unwrap_or_default();
        self.seen(byte);
        byte
    }

    /// Codes a symbol below 128.
    fn number(&mut self, context: usize, mut code: impl FnMut(usize, &mut Probability) -> bool) -> usize {
        symbol(&mut self.numbers, context % NUMBER_CONTEXTS * 128, 7, &mut code)
    }
}

/// Codes a symbol of so many bits, the highest bit first. The context of a bit is the bits before it.
fn symbol(
    models: &mut [Probability],
    start: usize,
    bits: usize,
    code: &mut impl FnMut(usize, &mut Probability) -> bool,
) -> usize {
    let mut node = 1;
    for place in (0..bits).rev() {
        let mut unused = 1 << 15;
        let model = models.get_mut(start + node).unwrap_or(&mut unused);
        node = node << 1 | usize::from(code(place, model));
    }
    node - (1 << bits)
}

/// Where the range of a bit is divided.
fn split(low: u32, high: u32, probability: Probability) -> u32 {
    let part = (u64::from(high - low) * u64::from(probability)) >> 16;
    low + u32::try_from(part).unwrap_or_default()
}

fn learn(probability: &mut Probability, bit: bool) {
    let rest = u16::MAX - *probability;
    *probability = if bit { *probability + (rest >> RATE) } else { *probability - (*probability >> RATE) };
    let least = u16::MAX / LEAST;
    *probability = (*probability).clamp(least, u16::MAX - least);
}

/// Writes.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    low: u32,
    high: u32,
    out: Vec<u8>,
}

impl Encoder {
    pub(crate) const fn new() -> Self {
        Self { low: 0, high: u32::MAX, out: Vec::new() }
    }

    /// The number of bytes so far.
    pub(crate) const fn len(&self) -> usize {
        self.out.len()
    }

    /// The number of bytes that are reserved.
    pub(crate) const fn capacity(&self) -> usize {
        self.out.capacity()
    }

    fn bit(&mut self, probability: &mut Probability, bit: bool) {
        let middle = split(self.low, self.high, *probability);
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        learn(probability, bit);
        while (self.low ^ self.high) >> 24 == 0 {
            let [first, ..] = self.low.to_be_bytes();
            self.out.push(first);
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
        }
    }

    pub(crate) fn byte(&mut self, models: &mut Models, part: Part, byte: u8) {
        models.byte(part, |place, model| {
            let bit = byte >> place & 1 == 1;
            self.bit(model, bit);
            bit
        });
    }

    pub(crate) fn number(&mut self, models: &mut Models, context: usize, number: u64) {
        let length = u64::from(u64::BITS - number.leading_zeros());
        let symbol = if number < SMALL { number } else { SMALL + length - 7 };
        models.number(context, |place, model| {
            let bit = symbol >> place & 1 == 1;
            self.bit(model, bit);
            bit
        });
        if number >= SMALL {
            self.plain(number, length - 1);
        }
    }

    pub(crate) fn rare(&mut self, models: &mut Models, rare: Rare, number: u64) {
        self.bit(models.rare(rare), number == 0);
        if number != 0 {
            self.plain(number, rare.bits());
        }
    }

    fn plain(&mut self, number: u64, bits: u64) {
        for place in (0..bits).rev() {
            self.bit(&mut (1 << 15), number >> place & 1 == 1);
        }
    }

    /// The bytes from here on, if nothing followed. More may follow in place of the last one.
    pub(crate) fn finished(&self, from: usize) -> Vec<u8> {
        let part = self.out.get(from..).unwrap_or_default();
        let mut out = Vec::with_capacity(part.len() + 1);
        out.extend_from_slice(part);
        // The first bytes of the bounds differ, so that this one is above the lower and not above the upper.
        let [first, ..] = self.low.to_be_bytes();
        out.push(first.saturating_add(1));
        out
    }
}

/// Reads what an [`Encoder`] has written.
#[derive(Clone, Debug)]
pub(crate) struct Decoder<'a> {
    low: u32,
    high: u32,
    value: u32,
    rest: &'a [u8],
    /// How many bytes after the last one were used.
    beyond: u32,
}

/// There are no more bytes, or what they say is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { low: 0, high: u32::MAX, value: 0, rest: bytes, beyond: 0 };
        (0..4).for_each(|_| decoder.shift());
        decoder
    }

    fn shift(&mut self) {
        let byte = match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                *byte
            }
            None => {
                self.beyond += 1;
                0
            }
        };
        self.value = self.value << 8 | u32::from(byte);
    }

    fn bit(&mut self, probability: &mut Probability) -> bool {
        let middle = split(self.low, self.high, *probability);
        let bit = self.value <= middle;
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        learn(probability, bit);
        while (self.low ^ self.high) >> 24 == 0 {
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
            self.shift();
        }
        bit
    }

    pub(crate) fn byte(&mut self, models: &mut Models, part: Part) -> Result<u8, Broken> {
        let byte = models.byte(part, |_, model| self.bit(model));
        self.intact(byte)
    }

    pub(crate) fn number(&mut self, models: &mut Models, context: usize) -> Result<u64, Broken> {
        let symbol = models.number(context, |_, model| self.bit(model)) as u64;
        if symbol < SMALL {
            return self.intact(symbol);
        }
        let length = symbol - SMALL + 7;
        if length > u64::from(u64::BITS) {
            return Err(Broken);
        }
        let rest = self.plain(length - 1);
        self.intact(1 << (length - 1) | rest)
    }

    pub(crate) fn rare(&mut self, models: &mut Models, rare: Rare) -> Result<u64, Broken> {
        let number = if self.bit(models.rare(rare)) { 0 } else { self.plain(rare.bits()) };
        self.intact(number)
    }

    fn plain(&mut self, bits: u64) -> u64 {
        (0..bits).fold(0, |number, _| number << 1 | u64::from(self.bit(&mut (1 << 15))))
    }

    /// Four bytes after the end are read without being used.
    const fn intact<T: Copy>(&self, value: T) -> Result<T, Broken> {
        if self.beyond > 4 { Err(Broken) } else { Ok(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Broken, Decoder, Encoder, Models, NUMBER_CONTEXTS, Part, Rare};

    /// A sequence of numbers that look random.
    fn random(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed ^ seed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for seed in 0..200 {
            let mut next = random(seed);
            let items: Vec<(u64, u64)> =
                (0..next() % 300).map(|_| (next() % 4, next() >> (next() % 62))).collect();
            let (mut encoder, mut models) = (Encoder::new(), Models::new());
            for (kind, value) in &items {
                let byte = value.to_le_bytes()[0];
                match kind {
                    0 => encoder.byte(&mut models, Part::State, byte),
                    1 => encoder.byte(&mut models, Part::Input, byte),
                    2 => encoder.number(&mut models, usize::from(byte) % NUMBER_CONTEXTS, *value),
                    _ => encoder.rare(&mut models, Rare::Finer, value % 1_000_000),
                }
            }
            let bytes = encoder.finished(0);
            let (mut decoder, mut models) = (Decoder::new(&bytes), Models::new());
            for (kind, value) in &items {
                let byte = value.to_le_bytes()[0];
                match kind {
                    0 => assert_eq!(decoder.byte(&mut models, Part::State), Ok(byte)),
                    1 => assert_eq!(decoder.byte(&mut models, Part::Input), Ok(byte)),
                    2 => {
                        let context = usize::from(byte) % NUMBER_CONTEXTS;
                        assert_eq!(decoder.number(&mut models, context), Ok(*value));
                    }
                    _ => assert_eq!(decoder.rare(&mut models, Rare::Finer), Ok(value % 1_000_000)),
                }
            }
        }
    }

    #[test]
    fn numbers_of_every_length() {
        let numbers = || (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, u64::MAX >> bit]);
        let (mut encoder, mut models) = (Encoder::new(), Models::new());
        numbers().for_each(|number| encoder.number(&mut models, 0, number));
        let bytes = encoder.finished(0);
        let (mut decoder, mut models) = (Decoder::new(&bytes), Models::new());
        for number in numbers() {
            assert_eq!(decoder.number(&mut models, 0), Ok(number));
        }
    }

    /// A few bytes cannot stand for a gigabyte.
    #[test]
    fn the_end_is_noticed_within_a_small_multiple() {
        for byte in [0, 0x55, 0xaa, 0xff] {
            let bytes = [byte; 64];
            let (mut decoder, mut models) = (Decoder::new(&bytes), Models::new());
            let read = (0..).take_while(|_| decoder.byte(&mut models, Part::State) != Err(Broken)).count();
            assert!(read < 64 * 80, "{read} bytes");
        }
    }
}
