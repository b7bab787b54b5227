//! HTTP/1.1, as far as it is spoken here: what heads say, and where bodies end. Bytes come in and meaning goes out; nothing
//! in here waits.
//!
//! We serve a few pages to whoever reaches a socket, and ask one agent: no upgrades, no proxies, no trailers that mean
//! anything. Whatever could be read in two ways is refused, because somebody in between may have read it in the other.

#[cfg(test)]
mod tests;

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest head, and the most fields in it.
const HEAD_BYTES: usize = 16 * 1024;
const HEAD_FIELDS: usize = 64;
/// The longest line between chunks.
const CHUNK_LINE: usize = 1024;
/// How many lines may follow the last chunk.
const TRAILERS: u8 = 64;

/// Why something cannot be understood.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A head without end.
    Long,
    /// It is no HTTP, or none that has one meaning.
    Garbled(&'static str),
    /// The connection is broken.
    Broken(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Long => out.write_str("invalid HTTP: its head is too long"),
            Self::Garbled(what) => write!(out, "invalid HTTP: {what}"),
            Self::Broken(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                out.write_str("the connection was closed before the answer was there")
            }
            Self::Broken(error) => error.fmt(out),
        }
    }
}

/// The head of a request or an answer: its first line, and its fields in their order, with names in small letters.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) first: String,
    pub(crate) fields: Fields,
}

/// Names and values.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The first value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Whether a list of words in a field has this one.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        self.all(name).flat_map(|value| value.split(',')).any(|said| said.trim().eq_ignore_ascii_case(word))
    }
}

impl Head {
    /// Reads a head that begins these bytes; with how many of them it has. Nothing as long as it is not whole.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, Fault> {
        // Some clients end a body with an empty line too many.
        let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
        let mut at = begin;
        let mut first = None;
        let mut fields = Vec::new();
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', rest) else {
                return if bytes.len() >= HEAD_BYTES { Err(Fault::Long) } else { Ok(None) };
            };
            at += end + 1;
            if at > HEAD_BYTES {
                return Err(Fault::Long);
            }
            let line = rest.get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match &first {
                None => first = Some(text(line)?),
                Some(_) if line.is_empty() => break,
                Some(_) if fields.len() >= HEAD_FIELDS => return Err(Fault::Long),
                Some(_) => fields.push(field(line)?),
            }
        }
        Ok(first.map(|first| (Self { first, fields: Fields(fields) }, at)))
    }
}

/// A line of a head: what can be seen, blanks, and letters of any language.
fn text(line: &[u8]) -> Result<String, Fault> {
    if line.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
        return Err(Fault::Garbled("there is something in its head that cannot be seen"));
    }
    Ok(String::from_utf8_lossy(line).into_owned())
}

fn field(line: &[u8]) -> Result<(String, String), Fault> {
    let line = text(line)?;
    match line.split_once(':') {
        Some((name, value)) if is_token(name) => {
            Ok((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()))
        }
        _ => Err(Fault::Garbled("a line of its head is no field")),
    }
}

fn is_token(text: &str) -> bool {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_one)
}

/// Whether a text may stand in a field's value.
pub(crate) fn is_value(text: &str) -> bool {
    !text.bytes().any(|byte| byte < b' ' || byte == 0x7f)
}

/// Whether a text may stand in the first line of a request.
pub(crate) fn is_target(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What is asked for, without its body.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) fields: Fields,
    /// HTTP/1.1, and not 1.0.
    pub(crate) modern: bool,
}

impl Request {
    /// What a head asks for.
    pub(crate) fn of(head: Head) -> Result<Self, Fault> {
        let words: Vec<&str> = head.first.split(' ').collect();
        let (method, target, modern) = match *words.as_slice() {
            [method, target, "HTTP/1.1"] => (method, target, true),
            [method, target, "HTTP/1.0"] => (method, target, false),
            _ => return Err(Fault::Garbled("it does not begin as a request of HTTP/1.1 does")),
        };
        let is_known = target == "*" || target.starts_with('/') || target.contains("://");
        if !is_token(method) || !is_known || target.contains(['\u{fffd}', '\t']) {
            return Err(Fault::Garbled("it does not begin as a request of HTTP/1.1 does"));
        }
        // Whoever speaks through a proxy names the whole address.
        let local = match target.split_once("://") {
            Some((scheme, rest)) if !scheme.contains('/') => {
                rest.find(['/', '?', '#']).and_then(|end| rest.get(end..)).unwrap_or_default()
            }
            _ => target,
        };
        let local = local.split('#').next().unwrap_or_default();
        let (path, query) = local.split_once('?').map_or((local, None), |(path, query)| (path, Some(query)));
        let path = if path.is_empty() { "/" } else { path };
        let (path, query) = (path.to_owned(), query.map(str::to_owned));
        Ok(Self { method: method.to_owned(), path, query, modern, fields: head.fields })
    }

    /// Where its body ends.
    pub(crate) fn framing(&self) -> Result<Rest, Fault> {
        let rest = framing(&self.fields)?;
        if rest == Some(Rest::ChunkSize) && !self.modern {
            return Err(Fault::Garbled("HTTP/1.0 knows no chunks"));
        }
        Ok(rest.unwrap_or(Rest::Length(0)))
    }

    /// Whether the peer wants to go on with this connection. If he has to ask for it, silence does not count.
    pub(crate) fn stays(&self, must_ask: bool) -> bool {
        let says = |word: &str| self.fields.says("connection", word);
        !says("close") && (says("keep-alive") || (self.modern && !must_ask))
    }
}

/// The status of an answer, and where its body ends. The body of an answer without a length ends with the connection.
pub(crate) fn answered(head: &Head) -> Result<(u16, Rest), Fault> {
    let mut words = head.first.split(' ');
    let is_known = matches!(words.next(), Some("HTTP/1.1" | "HTTP/1.0"));
    let number = words.next().filter(|word| is_known && word.len() == 3);
    let status: u16 = number
        .and_then(|word| word.parse().ok())
        .filter(|status| *status >= 100)
        .ok_or(Fault::Garbled("it does not begin as an answer does"))?;
    let rest = if matches!(status, 100..200 | 204 | 304) {
        Rest::Length(0)
    } else {
        framing(&head.fields)?.unwrap_or(Rest::Close)
    };
    Ok((status, rest))
}

fn framing(fields: &Fields) -> Result<Option<Rest>, Fault> {
    let mut lengths = fields.all("content-length");
    let mut codings = fields.all("transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(None),
        (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") && codings.next().is_none() => {
            Ok(Some(Rest::ChunkSize))
        }
        (Some(length), None) if lengths.all(|other| other == length) => {
            // Neither a sign nor a blank.
            let digits = Some(length).filter(|length| length.bytes().all(|byte| byte.is_ascii_digit()));
            let length = digits.and_then(|digits| digits.parse().ok());
            length.map(|length| Some(Rest::Length(length))).ok_or(Fault::Garbled("its length is no number"))
        }
        _ => Err(Fault::Garbled("it is not clear where it ends")),
    }
}

/// How much of a body is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// So many bytes.
    Length(u64),
    /// So many bytes of this chunk, then others.
    Chunk(u64),
    /// The line that says how long the next chunk is.
    ChunkSize,
    /// Lines behind the last chunk, so many at most.
    Trailer(u8),
    /// Everything until the other side closes.
    Close,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// So many are no part of the body;
    pub(crate) skip: usize,
    /// so many behind them are;
    pub(crate) data: usize,
    /// and that is all there is.
    pub(crate) over: bool,
}

impl Rest {
    /// Finds the next part of the body in bytes. Neither a part nor the end means that more has to be read.
    pub(crate) fn find(&mut self, bytes: &[u8]) -> Result<Found, Fault> {
        let mut skip = 0;
        loop {
            let rest = bytes.get(skip..).unwrap_or_default();
            match self {
                Self::Length(0) => return Ok(Found { skip, data: 0, over: true }),
                Self::Close => return Ok(Found { skip, data: rest.len(), over: false }),
                Self::Length(left) | Self::Chunk(left) if *left > 0 => {
                    let data = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left = left.saturating_sub(u64::try_from(data).unwrap_or(u64::MAX));
                    return Ok(Found { skip, data, over: false });
                }
                _ => {}
            }
            let end = memchr::memchr(b'\n', rest);
            if end.unwrap_or(rest.len()) > CHUNK_LINE {
                return Err(Fault::Garbled("a line between chunks is too long"));
            }
            let Some(end) = end else { return Ok(Found { skip, data: 0, over: false }) };
            skip += end + 1;
            // Nobody agrees on what a line is that ends otherwise, or a return within one.
            let line = rest.get(..end).and_then(|line| line.strip_suffix(b"\r"));
            let line = line.filter(|line| !line.contains(&b'\r'));
            let line = line.ok_or(Fault::Garbled("a line between chunks does not end as one"))?;
            *self = match self {
                Self::ChunkSize => match chunk_length(line)? {
                    0 => Self::Trailer(TRAILERS),
                    length => Self::Chunk(length),
                },
                Self::Trailer(_) if line.is_empty() => Self::Length(0),
                Self::Trailer(0) => return Err(Fault::Garbled("too much follows the last chunk")),
                Self::Trailer(left) => Self::Trailer(*left - 1),
                _ if line.is_empty() => Self::ChunkSize,
                _ => return Err(Fault::Garbled("a chunk is longer than it says")),
            };
        }
    }
}

fn chunk_length(line: &[u8]) -> Result<u64, Fault> {
    let wrong = Fault::Garbled("the length of a chunk is no number");
    let line = str::from_utf8(line).unwrap_or_default();
    let digits = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong);
    }
    u64::from_str_radix(digits, 16).map_err(|_| wrong)
}

/// The status of an answer of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(u16, &'static str);

impl Status {
    pub(crate) const OK: Self = Self(200, "OK");
    pub(crate) const ACCEPTED: Self = Self(202, "Accepted");
    pub(crate) const BAD_REQUEST: Self = Self(400, "Bad Request");
    pub(crate) const FORBIDDEN: Self = Self(403, "Forbidden");
    pub(crate) const NOT_FOUND: Self = Self(404, "Not Found");
    pub(crate) const METHOD_NOT_ALLOWED: Self = Self(405, "Method Not Allowed");
    pub(crate) const REQUEST_TIMEOUT: Self = Self(408, "Request Timeout");
    pub(crate) const CONFLICT: Self = Self(409, "Conflict");
    pub(crate) const PAYLOAD_TOO_LARGE: Self = Self(413, "Payload Too Large");
    pub(crate) const UNPROCESSABLE_ENTITY: Self = Self(422, "Unprocessable Entity");
    pub(crate) const HEAD_TOO_LARGE: Self = Self(431, "Request Header Fields Too Large");
    pub(crate) const INTERNAL_SERVER_ERROR: Self = Self(500, "Internal Server Error");
    pub(crate) const SERVICE_UNAVAILABLE: Self = Self(503, "Service Unavailable");

    /// Its number.
    pub(crate) const fn number(self) -> u16 {
        self.0
    }

    /// It in words.
    pub(crate) const fn words(self) -> &'static str {
        self.1
    }
}

/// A moment as HTTP writes it.
pub(crate) fn date(now: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let stamp = containerpilot_log_format::stamp(now);
    let part = |from: usize, to: usize| {
        stamp.get(from..to).and_then(|part| str::from_utf8(part).ok()).unwrap_or_default()
    };
    let days = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
    let weekday = usize::try_from(days % 7).ok().and_then(|nth| DAYS.get(nth)).unwrap_or(&"");
    let month =
        part(5, 7).parse::<usize>().ok().and_then(|nth| MONTHS.get(nth.checked_sub(1)?)).unwrap_or(&"");
    format!("{weekday}, {} {month} {} {} GMT", part(8, 10), part(0, 4), part(11, 19))
}
