//! DNS messages (RFC 1035, RFC 3596 for IPv6, RFC 2782 for services).
//!
//! Anyone can send us an answer, so nothing in it is trusted: every length is checked, a compression pointer may only
//! point backwards, and a message that does not match the question is ignored.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use containerpilot_core::plan::DnsRecord;

/// Most records of an answer that are read.
const MAX_RECORDS: usize = 512;
/// Most aliases (CNAME) between a name and its addresses.
const MAX_ALIASES: usize = 16;

const CLASS_INTERNET: u16 = 1;
const TYPE_CNAME: u16 = 5;

/// The number of a record type (RFC 1035, RFC 3596, RFC 2782).
fn type_number(record: DnsRecord) -> u16 {
    match record {
        DnsRecord::A => 1,
        DnsRecord::Aaaa => 28,
        DnsRecord::Srv => 33,
    }
}

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundRecord {
    pub(crate) data: RecordData,
    /// How long it is valid, in seconds.
    pub(crate) ttl: u32,
}

/// The data of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordData {
    Address(IpAddr),
    Service { host: String, port: u16, priority: u16, weight: u16 },
}

impl FoundRecord {
    pub(super) fn address(&self) -> Option<IpAddr> {
        match self.data {
            RecordData::Address(address) => Some(address),
            RecordData::Service { .. } => None,
        }
    }
}

/// A domain name as in a message: labels with their lengths, in lower case, without the final zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DnsName(Vec<u8>);

impl DnsName {
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

    /// The name as text. `None` if it has characters that no host has.
    fn text(&self) -> Option<String> {
        let mut text = String::with_capacity(self.0.len());
        let mut rest = &*self.0;
        while let Some((length, labels)) = rest.split_first() {
            let (label, after) = labels.split_at_checked(usize::from(*length))?;
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if !label.iter().all(is_part) {
                return None;
            }
            if !text.is_empty() {
                text.push('.');
            }
            text.extend(label.iter().map(|byte| char::from(*byte)));
            rest = after;
        }
        (!text.is_empty()).then_some(text)
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

/// A question for the records of a name.
pub(super) fn question(id: u16, name: &DnsName, record: DnsRecord) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(18 + name.0.len());
    bytes.extend(id.to_be_bytes());
    // A query, recursion desired.
    bytes.extend([0x01, 0x00]);
    // One question, no records.
    bytes.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend(&name.0);
    bytes.push(0);
    bytes.extend(type_number(record).to_be_bytes());
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
pub(super) enum DnsAnswer {
    /// Empty if the name has no record of this type.
    Records(Vec<FoundRecord>),
    /// NXDOMAIN.
    NoSuchName,
    Failed(ResponseCode),
}

/// An answer, and whether it was truncated to fit into a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) answer: DnsAnswer,
    pub(super) truncated: bool,
}

/// Parses the answer to a question. `None` if the bytes are not one.
pub(super) fn parse_answer(bytes: &[u8], id: u16, name: &DnsName, record: DnsRecord) -> Option<Answered> {
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
        return Some(Answered { answer: DnsAnswer::Failed(ResponseCode(code)), truncated: false });
    }
    let repeated = (reader.name()?, reader.u16()?, reader.u16()?);
    if questions != 1 || repeated != (name.clone(), type_number(record), CLASS_INTERNET) {
        return None;
    }
    let answer = match code {
        0 => DnsAnswer::Records(records(&mut reader, answers, name, record, truncated)?),
        3 => DnsAnswer::NoSuchName,
        code => DnsAnswer::Failed(ResponseCode(code)),
    };
    Some(Answered { answer, truncated })
}

/// The records of a name, following aliases. A truncated answer may end anywhere. A record is valid for no longer than
/// the aliases before it.
fn records(
    reader: &mut Reader,
    answers: u16,
    name: &DnsName,
    record: DnsRecord,
    truncated: bool,
) -> Option<Vec<FoundRecord>> {
    let (mut found, mut aliases) = (Vec::new(), Vec::new());
    for _ in 0..usize::from(answers).min(MAX_RECORDS) {
        match reader.record(record) {
            Some((owner, ttl, Record::Data(data))) => found.push((owner, FoundRecord { data, ttl })),
            Some((owner, ttl, Record::Alias(target))) => aliases.push((owner, ttl, target)),
            Some((_, _, Record::Other)) => {}
            None if truncated => break,
            None => return None,
        }
    }
    let (mut owner, mut longest) = (name, u32::MAX);
    for _ in 0..MAX_ALIASES {
        match aliases.iter().find(|(alias, _, _)| alias == owner) {
            Some((_, ttl, target)) => (owner, longest) = (target, longest.min(*ttl)),
            None => break,
        }
    }
    let of_name = found.iter().filter(|(of, _)| of == owner);
    Some(of_name.map(|(_, found)| FoundRecord { ttl: found.ttl.min(longest), ..found.clone() }).collect())
}

enum Record {
    Data(RecordData),
    Alias(DnsName),
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
    fn name(&mut self) -> Option<DnsName> {
        let mut name = DnsName::default();
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

    fn record(&mut self, wanted: DnsRecord) -> Option<(DnsName, u32, Record)> {
        let owner = self.name()?;
        let (kind, class) = (self.u16()?, self.u16()?);
        let ttl = u32::from_be_bytes(self.take()?);
        let length = usize::from(self.u16()?);
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len())?;
        let record = match (class, kind, wanted, length) {
            (CLASS_INTERNET, 1, DnsRecord::A, 4) => {
                Record::Data(RecordData::Address(Ipv4Addr::from(self.take::<4>()?).into()))
            }
            (CLASS_INTERNET, 28, DnsRecord::Aaaa, 16) => {
                Record::Data(RecordData::Address(Ipv6Addr::from(self.take::<16>()?).into()))
            }
            (CLASS_INTERNET, 33, DnsRecord::Srv, 7..) => {
                let (priority, weight, port) = (self.u16()?, self.u16()?, self.u16()?);
                match self.name()?.text() {
                    Some(host) => Record::Data(RecordData::Service { host, port, priority, weight }),
                    // A single dot: there is no such service.
                    None => Record::Other,
                }
            }
            (CLASS_INTERNET, TYPE_CNAME, _, _) => Record::Alias(self.name()?),
            _ => Record::Other,
        };
        self.at = end;
        // RFC 2181: a TTL with the highest bit counts as zero.
        let ttl = if ttl > u32::MAX / 2 { 0 } else { ttl };
        Some((owner, ttl, record))
    }
}

#[cfg(test)]
mod tests;
