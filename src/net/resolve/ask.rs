//! Asking name servers: each name that could be meant, of each server, until somebody knows.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::message::{self, Answer, Answered, Family, Name};
use super::settings::Settings;

/// How long the second family may take when the first has answered with addresses: some servers never answer for IPv6.
const SECOND_FAMILY: Duration = Duration::from_millis(300);
/// The longest datagram that is read; without an extension it is 512 bytes.
const MOST_DATAGRAM: usize = 4096;

/// What became of one name.
enum Outcome {
    Found(Vec<IpAddr>),
    /// Nobody has it, or it has no address.
    Nothing,
    /// A server could not find out: others may, and other names may.
    Failed(String),
    /// Nobody answers.
    Silence(String),
}

/// The addresses of a host, or why there are none.
pub(super) fn addresses(host: &str, settings: &Settings, deadline: Instant) -> Result<Vec<IpAddr>, String> {
    let mut failed = None;
    let mut silence = None;
    for candidate in settings.candidates(host) {
        // With its domain it may have become too long.
        let Ok(candidate) = Name::of(&candidate) else { continue };
        // Where nobody answers, other names are asked for once each, as long as there is time: a server may be silent about
        // one and not about another.
        let attempts = if silence.is_some() { 1 } else { settings.attempts };
        match one_name(&candidate, settings, attempts, deadline) {
            Outcome::Found(addresses) => return Ok(addresses),
            Outcome::Nothing => {}
            Outcome::Failed(why) => failed = failed.or(Some(why)),
            Outcome::Silence(why) => silence = silence.or(Some(why)),
        }
    }
    let nobody = || "there is no such name in /etc/hosts, and none at the name server".to_owned();
    Err(silence.or(failed).unwrap_or_else(nobody))
}

fn one_name(name: &Name, settings: &Settings, attempts: usize, deadline: Instant) -> Outcome {
    let mut failed = None;
    let mut silence = None;
    for _ in 0..attempts {
        silence = None;
        for server in &settings.servers {
            let until = deadline.min(Instant::now() + settings.write_timeout);
            match one_server(*server, name, settings.through_tcp, until) {
                Outcome::Failed(why) => failed = Some(why),
                Outcome::Silence(why) => silence = Some(why),
                outcome => return outcome,
            }
        }
        // All have said that they cannot; to ask again would not change it.
        if silence.is_none() || Instant::now() >= deadline {
            break;
        }
    }
    match (failed, silence) {
        (Some(why), _) => Outcome::Failed(why),
        (None, Some(why)) => Outcome::Silence(why),
        (None, None) => Outcome::Nothing,
    }
}

/// Asks one server for both families at once.
fn one_server(server: SocketAddr, name: &Name, through_tcp: bool, until: Instant) -> Outcome {
    let mut asked = [Family::V4, Family::V6].map(|family| Asked { family, id: random(), answer: None });
    let asking = if through_tcp { Ok(()) } else { datagrams(server, name, &mut asked, until) };
    let mut why = asking.err();
    for asked in &mut asked {
        let enough = match &asked.answer {
            Some(answered) => !answered.cut_off,
            None => !through_tcp,
        };
        if enough {
            continue;
        }
        match stream(server, name, asked, until) {
            Ok(answered) => asked.answer = Some(answered),
            // What was cut off is still better than nothing.
            Err(error) => why = Some(error),
        }
    }
    let why = why.map_or_else(|| "no answer in time".to_owned(), |error| words(&error));
    verdict(server, asked.map(|asked| asked.answer), &why)
}

/// What two answers mean together.
fn verdict(server: SocketAddr, answers: [Option<Answered>; 2], why: &str) -> Outcome {
    let mut found = Vec::new();
    let (mut nobody, mut empty, mut failed) = (false, 0, None);
    for answered in answers.into_iter().flatten() {
        match answered.answer {
            Answer::Addresses(addresses) if addresses.is_empty() => empty += 1,
            Answer::Addresses(addresses) => found.extend(addresses),
            Answer::NoSuchName => nobody = true,
            Answer::Failed(code) => failed = Some(code),
        }
    }
    match (found.is_empty(), failed) {
        (false, _) => Outcome::Found(found),
        _ if nobody || empty == 2 => Outcome::Nothing,
        (_, Some(code)) => {
            let words = match code {
                1 => "did not understand the question",
                2 => "could not find out",
                4 => "does not know how to",
                5 => "refused to say",
                _ => "answered with an error",
            };
            Outcome::Failed(format!("the name server {} {words}", server.ip()))
        }
        _ => Outcome::Silence(format!("the name server {}: {why}", server.ip())),
    }
}

struct Asked {
    family: Family,
    id: u16,
    answer: Option<Answered>,
}

/// Asks by datagrams, and takes answers until all are there.
fn datagrams(server: SocketAddr, name: &Name, asked: &mut [Asked; 2], until: Instant) -> io::Result<()> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    // From here on nobody else can answer, short of forging the server's address.
    socket.connect(server)?;
    for asked in &*asked {
        socket.send(&message::question(asked.id, name, asked.family))?;
    }
    let mut until = until;
    let mut buffer = [0; MOST_DATAGRAM];
    while asked.iter().any(|asked| asked.answer.is_none()) {
        socket.set_read_timeout(Some(left(until)?))?;
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..length).unwrap_or_default();
        for asked in asked.iter_mut().filter(|asked| asked.answer.is_none()) {
            asked.answer = message::answer(bytes, asked.id, name, asked.family);
            let found =
                |answered: &Answered| matches!(&answered.answer, Answer::Addresses(some) if !some.is_empty());
            if asked.answer.as_ref().is_some_and(found) {
                until = until.min(Instant::now() + SECOND_FAMILY);
            }
        }
    }
    Ok(())
}

/// Asks through a connection, which takes answers of any length.
fn stream(server: SocketAddr, name: &Name, asked: &Asked, until: Instant) -> io::Result<Answered> {
    let mut stream = TcpStream::connect_timeout(&server, left(until)?)?;
    let question = message::question(asked.id, name, asked.family);
    let length = u16::try_from(question.len()).map_err(|_| ErrorKind::InvalidInput)?;
    stream.set_write_timeout(Some(left(until)?))?;
    stream.write_all(&[&length.to_be_bytes()[..], &question].concat())?;
    let mut length = [0; 2];
    fill(&mut stream, &mut length, until)?;
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    fill(&mut stream, &mut bytes, until)?;
    let answered = message::answer(&bytes, asked.id, name, asked.family);
    answered.ok_or_else(|| io::Error::other("its answer cannot be read"))
}

/// Reads so many bytes, however slowly they come, until the time is up.
fn fill(stream: &mut TcpStream, mut buffer: &mut [u8], until: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(buffer) {
            Ok(0) => return Err(io::Error::other("the connection was closed before the answer")),
            Ok(read) => buffer = buffer.get_mut(read..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "no answer in time".to_owned(),
        _ => error.to_string(),
    }
}

/// A number that nobody can guess, so that nobody can answer who has not seen the question. The keys of a hash map are such.
fn random() -> u16 {
    let [low, high, ..] = RandomState::new().build_hasher().finish().to_be_bytes();
    u16::from_be_bytes([low, high])
}
