//! DNS messages (RFC 1035, and RFC 3596 for IPv6).
//!
//! Anyone can send us an answer, so nothing in it is trusted: every length is checked, a compression pointer may only point
//! backwards, and a message that does not match the question is ignored.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most records of an answer that are read.
const MAX_RECORDS: usize = 512;
/// Most aliases (CNAME) between a name and its addresses.
const MAX_ALIASES: usize = 16;

const CLASS_INTERNET: u16 = 1;
const TYPE_CNAME: u16 = 5;

/// The address family of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    fn record_type(self) -> u16 {
        match self {
            Self::V4 => 1,
            Self::V6 => 28,
        }
    }
}

/// A domain name as in a message: labels with their lengths, in lower case, without the final zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Name(Vec<u8>);

impl Name {
    /// Parses a name; the reason if it is invalid.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let mut name = Self::default();
        for label in text.split('.') {
            if !label.is_ascii() {
                return Err("the name is not ASCII; use its `xn--` form");
            }
            if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
                return Err("only letters, digits, `-`, `_` and dots are allowed in a name");
            }
            name.push(label.as_bytes()).ok_or("the name, or a label of it, is empty or too long")?;
        }
        Ok(name)
    }

    fn push(&mut self, label: &[u8]) -> Option<()> {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        if self.0.len() + label.len() > 253 {
            return None;
        }
        self.0.push(length);
        self.0.extend(label.iter().map(u8::to_ascii_lowercase));
        Some(())
    }
}

/// A question for the addresses of a name.
pub(super) fn question(id: u16, name: &Name, family: Family) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(18 + name.0.len());
    bytes.extend(id.to_be_bytes());
    // A query, recursion desired.
    bytes.extend([0x01, 0x00]);
    // One question, no records.
    bytes.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend(&name.0);
    bytes.push(0);
    bytes.extend(family.record_type().to_be_bytes());
    bytes.extend(CLASS_INTERNET.to_be_bytes());
    bytes
}

/// The response code of an answer that is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseCode(pub(super) u8);

impl fmt::Display for ResponseCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => out.write_str("FORMERR"),
            2 => out.write_str("SERVFAIL"),
            4 => out.write_str("NOTIMP"),
            5 => out.write_str("REFUSED"),
            other => write!(out, "error {other}"),
        }
    }
}

/// The content of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Empty if the name has no address of this family.
    Addresses(Vec<IpAddr>),
    /// NXDOMAIN.
    NoSuchName,
    Failed(ResponseCode),
}

/// An answer, and whether it was truncated to fit into a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) truncated: bool,
}

/// Parses the answer to a question. `None` if the bytes are not one.
pub(super) fn parse_answer(bytes: &[u8], id: u16, name: &Name, family: Family) -> Option<Answered> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.u16()? != id {
        return None;
    }
    let [high, low] = reader.u16()?.to_be_bytes();
    let is_answer = high & 0x80 != 0;
    let plain = high & 0x78 == 0;
    let truncated = high & 0x02 != 0;
    let code = low & 0x0f;
    let (questions, answers) = (reader.u16()?, reader.u16()?);
    reader.skip(4)?;
    if !is_answer || !plain {
        return None;
    }
    // Some servers omit the question in an error.
    if questions == 0 && code != 0 && code != 3 {
        return Some(Answered { answer: Answer::Failed(ResponseCode(code)), truncated: false });
    }
    let repeated = (reader.name()?, reader.u16()?, reader.u16()?);
    if questions != 1 || repeated != (name.clone(), family.record_type(), CLASS_INTERNET) {
        return None;
    }
    let answer = match code {
        0 => Answer::Addresses(addresses(&mut reader, answers, name, family, truncated)?),
        3 => Answer::NoSuchName,
        code => Answer::Failed(ResponseCode(code)),
    };
    Some(Answered { answer, truncated })
}

/// The addresses of a name, following aliases. A truncated answer may end anywhere.
fn addresses(
    reader: &mut Reader,
    answers: u16,
    name: &Name,
    family: Family,
    truncated: bool,
) -> Option<Vec<IpAddr>> {
    let (mut found, mut aliases) = (Vec::new(), Vec::new());
    for _ in 0..usize::from(answers).min(MAX_RECORDS) {
        match reader.record(family) {
            Some((owner, Record::Address(address))) => found.push((owner, address)),
            Some((owner, Record::Alias(target))) => aliases.push((owner, target)),
            Some((_, Record::Other)) => {}
            None if truncated => break,
            None => return None,
        }
    }
    let mut owner = name;
    for _ in 0..MAX_ALIASES {
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

/// A position in a message. Reading beyond the end returns `None`.
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

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    /// A name, which may end in a compression pointer.
    fn name(&mut self) -> Option<Name> {
        let mut name = Name::default();
        // Where to continue after the first pointer.
        let mut after = None;
        let mut start = self.at;
        loop {
            let [length] = self.take()?;
            match length {
                0 => break,
                1..64 => {
                    let label = self.bytes.get(self.at..self.at + usize::from(length))?;
                    name.push(label)?;
                    self.at += label.len();
                }
                0xc0.. => {
                    let [low] = self.take()?;
                    after.get_or_insert(self.at);
                    let target = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                    // Only backwards, so the loop ends.
                    if target >= start {
                        return None;
                    }
                    (self.at, start) = (target, target);
                }
                _ => return None,
            }
        }
        if let Some(after) = after {
            self.at = after;
        }
        Some(name)
    }

    fn record(&mut self, family: Family) -> Option<(Name, Record)> {
        let owner = self.name()?;
        let (kind, class) = (self.u16()?, self.u16()?);
        // The TTL: nothing is cached here.
        self.skip(4)?;
        let length = usize::from(self.u16()?);
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len())?;
        let record = match (class, kind, family, length) {
            (CLASS_INTERNET, 1, Family::V4, 4) => Record::Address(Ipv4Addr::from(self.take::<4>()?).into()),
            (CLASS_INTERNET, 28, Family::V6, 16) => {
                Record::Address(Ipv6Addr::from(self.take::<16>()?).into())
            }
            (CLASS_INTERNET, TYPE_CNAME, _, _) => Record::Alias(self.name()?),
            _ => Record::Other,
        };
        self.at = end;
        Some((owner, record))
    }
}

#[cfg(test)]
mod tests;
