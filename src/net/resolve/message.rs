//! The bytes of a question and of an answer (RFC 1035, and RFC 3596 for IPv6).
//!
//! An answer comes from anybody who can send to us. Nothing in it is believed: every length is checked, a pointer may only
//! point further back, and whatever does not fit the question is not an answer to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many records of an answer are looked at.
const MOST_RECORDS: usize = 512;
/// How many other names may stand between a name and its addresses.
const MOST_ALIASES: usize = 16;

const CLASS_INTERNET: u16 = 1;
const TYPE_ALIAS: u16 = 5;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    fn number(self) -> u16 {
        match self {
            Self::V4 => 1,
            Self::V6 => 28,
        }
    }
}

/// A name, as it stands in a message: each part behind its length, in small letters, without the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Name(Vec<u8>);

impl Name {
    /// The name of a text; or why it cannot be one.
    pub(super) fn of(text: &str) -> Result<Self, &'static str> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let mut name = Self::default();
        for part in text.split('.') {
            if !part.is_ascii() {
                return Err("it has letters beyond ASCII; write it in its `xn--` form");
            }
            if !part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
                return Err("only letters, digits, `-`, `_` and dots can stand in a name");
            }
            name.push(part.as_bytes())
                .ok_or("it is too long, or a part between two dots is empty or too long")?;
        }
        Ok(name)
    }

    fn push(&mut self, part: &[u8]) -> Option<()> {
        let length = u8::try_from(part.len()).ok().filter(|length| (1..64).contains(length))?;
        if self.0.len() + part.len() > 253 {
            return None;
        }
        self.0.push(length);
        self.0.extend(part.iter().map(u8::to_ascii_lowercase));
        Some(())
    }
}

/// A question for the addresses of a name.
pub(super) fn question(id: u16, name: &Name, family: Family) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(18 + name.0.len());
    bytes.extend(id.to_be_bytes());
    // It is a question, and the server shall ask others in turn.
    bytes.extend([0x01, 0x00]);
    // One question, no records.
    bytes.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend(&name.0);
    bytes.push(0);
    bytes.extend(family.number().to_be_bytes());
    bytes.extend(CLASS_INTERNET.to_be_bytes());
    bytes
}

/// What a server has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The addresses; none if the name has none of this family.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoSuchName,
    /// It could not, or would not, find out: its number for why.
    Failed(u8),
}

/// An answer, and whether it was cut off to fit into a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) cut_off: bool,
}

/// Reads an answer to a question. Nothing if it is not one.
pub(super) fn answer(bytes: &[u8], id: u16, name: &Name, family: Family) -> Option<Answered> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.number()? != id {
        return None;
    }
    let [high, low] = reader.number()?.to_be_bytes();
    let is_answer = high & 0x80 != 0;
    let plain = high & 0x78 == 0;
    let cut_off = high & 0x02 != 0;
    let code = low & 0x0f;
    let (questions, answers) = (reader.number()?, reader.number()?);
    reader.skip(4)?;
    if !is_answer || !plain {
        return None;
    }
    // Some servers that refuse do not repeat the question.
    if questions == 0 && code != 0 && code != 3 {
        return Some(Answered { answer: Answer::Failed(code), cut_off: false });
    }
    let asked = (reader.name()?, reader.number()?, reader.number()?);
    if questions != 1 || asked != (name.clone(), family.number(), CLASS_INTERNET) {
        return None;
    }
    let answer = match code {
        0 => Answer::Addresses(addresses(&mut reader, answers, name, family, cut_off)?),
        3 => Answer::NoSuchName,
        code => Answer::Failed(code),
    };
    Some(Answered { answer, cut_off })
}

/// The addresses of a name and of what it is another name for. One that was cut off may end anywhere.
fn addresses(
    reader: &mut Reader,
    answers: u16,
    name: &Name,
    family: Family,
    cut_off: bool,
) -> Option<Vec<IpAddr>> {
    let (mut found, mut aliases) = (Vec::new(), Vec::new());
    for _ in 0..usize::from(answers).min(MOST_RECORDS) {
        match reader.record(family) {
            Some((owner, Record::Address(address))) => found.push((owner, address)),
            Some((owner, Record::Alias(target))) => aliases.push((owner, target)),
            Some((_, Record::Other)) => {}
            None if cut_off => break,
            None => return None,
        }
    }
    let mut owner = name;
    for _ in 0..MOST_ALIASES {
        match aliases.iter().find(|(alias, _)| alias == owner) {
            Some((_, target)) => owner = target,
            None => break,
        }
    }
    Some(found.iter().filter(|(of, _)| of == owner).map(|(_, address)| *address).collect())
}

enum Record {
    Address(IpAddr),
    Alias(Name),
    Other,
}

/// A place in a message. Whatever would read beyond its end reads nothing.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.bytes.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(*bytes)
    }

    fn number(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    /// A name, which may end in a pointer to one further back.
    fn name(&mut self) -> Option<Name> {
        let mut name = Name::default();
        // Where to go on behind the first pointer.
        let mut behind = None;
        let mut start = self.at;
        loop {
            let [length] = self.take()?;
            match length {
                0 => break,
                1..64 => {
                    let part = self.bytes.get(self.at..self.at + usize::from(length))?;
                    name.push(part)?;
                    self.at += part.len();
                }
                0xc0.. => {
                    let [low] = self.take()?;
                    behind.get_or_insert(self.at);
                    let target = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                    // Further back each time: so it ends.
                    if target >= start {
                        return None;
                    }
                    (self.at, start) = (target, target);
                }
                _ => return None,
            }
        }
        if let Some(behind) = behind {
            self.at = behind;
        }
        Some(name)
    }

    fn record(&mut self, family: Family) -> Option<(Name, Record)> {
        let owner = self.name()?;
        let (kind, class) = (self.number()?, self.number()?);
        // How long it may be kept, which nobody here does.
        self.skip(4)?;
        let length = usize::from(self.number()?);
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len())?;
        let record = match (class, kind, family, length) {
            (CLASS_INTERNET, 1, Family::V4, 4) => Record::Address(Ipv4Addr::from(self.take::<4>()?).into()),
            (CLASS_INTERNET, 28, Family::V6, 16) => {
                Record::Address(Ipv6Addr::from(self.take::<16>()?).into())
            }
            (CLASS_INTERNET, TYPE_ALIAS, _, _) => Record::Alias(self.name()?),
            _ => Record::Other,
        };
        self.at = end;
        Some((owner, record))
    }
}

#[cfg(test)]
mod tests;
