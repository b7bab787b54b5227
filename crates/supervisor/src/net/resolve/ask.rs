//! Queries name servers: every candidate name at every server, until one has an answer.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use containerpilot_core::plan::DnsRecord;
use containerpilot_process::error_text::describe;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout_at};

use super::ResolveError;
use super::message::{self, Answered, DnsAnswer, DnsName, FoundRecord};
use super::settings::ResolverSettings;

/// How long to wait for the second address family once the first has addresses: some servers never answer for IPv6.
const SECOND_FAMILY_TIMEOUT: Duration = Duration::from_millis(300);
/// Size of the receive buffer. Without EDNS a datagram has at most 512 bytes.
const DATAGRAM_BYTES: usize = 4096;

/// The result of the query for one name.
enum Outcome {
    Found(Vec<FoundRecord>),
    /// The name does not exist or has no such record.
    NotFound,
    /// A server answered with an error. Other servers and names may succeed.
    Failed(ResolveError),
    /// No server answered.
    NoAnswer(ResolveError),
}

/// The records of a name, of some types, or the reason why there are none.
pub(super) async fn records(
    host: &str,
    types: &[DnsRecord],
    settings: &ResolverSettings,
    deadline: Instant,
) -> Result<Vec<FoundRecord>, ResolveError> {
    let mut failed = None;
    let mut no_answer = None;
    for candidate in settings.candidates(host) {
        // With a search domain the name may be too long.
        let Ok(candidate) = DnsName::parse(&candidate) else { continue };
        // If no server answers, the other names get one attempt each: a server may ignore one name and answer another.
        let attempts = if no_answer.is_some() { 1 } else { settings.attempts };
        match one_name(&candidate, types, settings, attempts, deadline).await {
            Outcome::Found(records) => return Ok(records),
            Outcome::NotFound => {}
            Outcome::Failed(why) => failed = failed.or(Some(why)),
            Outcome::NoAnswer(why) => no_answer = no_answer.or(Some(why)),
        }
    }
    Err(no_answer.or(failed).unwrap_or(ResolveError::NotFound))
}

async fn one_name(
    name: &DnsName,
    types: &[DnsRecord],
    settings: &ResolverSettings,
    attempts: usize,
    deadline: Instant,
) -> Outcome {
    let mut failed = None;
    let mut no_answer = None;
    for _ in 0..attempts {
        no_answer = None;
        for server in &settings.servers {
            let until = deadline.min(Instant::now() + settings.timeout);
            match one_server(*server, name, types, settings.use_tcp, until).await {
                Outcome::Failed(why) => failed = Some(why),
                Outcome::NoAnswer(why) => no_answer = Some(why),
                outcome => return outcome,
            }
        }
        // Every server answered with an error; another attempt would not help.
        if no_answer.is_none() || Instant::now() >= deadline {
            break;
        }
    }
    match (failed, no_answer) {
        (Some(why), _) => Outcome::Failed(why),
        (None, Some(why)) => Outcome::NoAnswer(why),
        (None, None) => Outcome::NotFound,
    }
}

/// Queries one server for all types at once.
async fn one_server(
    server: SocketAddr,
    name: &DnsName,
    types: &[DnsRecord],
    use_tcp: bool,
    until: Instant,
) -> Outcome {
    let question = |record: &DnsRecord| Question { record: *record, id: random_id(), answer: None };
    let mut questions: Vec<Question> = types.iter().map(question).collect();
    let sent = if use_tcp { Ok(()) } else { ask_by_udp(server, name, &mut questions, until).await };
    let mut error = sent.err();
    for question in &mut questions {
        let is_complete = match &question.answer {
            Some(answered) => !answered.truncated,
            None => !use_tcp,
        };
        if is_complete {
            continue;
        }
        match ask_by_tcp(server, name, question, until).await {
            Ok(answered) => question.answer = Some(answered),
            // A truncated answer is better than none.
            Err(failed) => error = Some(failed),
        }
    }
    let reason = error.map_or_else(|| "timed out".to_owned(), |error| error_text(&error));
    combine(server.ip(), questions.into_iter().map(|question| question.answer).collect(), reason)
}

/// Combines the answers for all types.
fn combine(server: IpAddr, answers: Vec<Option<Answered>>, reason: String) -> Outcome {
    let asked = answers.len();
    let mut found = Vec::new();
    let (mut no_such_name, mut empty, mut failed) = (false, 0, None);
    for answered in answers.into_iter().flatten() {
        match answered.answer {
            DnsAnswer::Records(records) if records.is_empty() => empty += 1,
            DnsAnswer::Records(records) => found.extend(records),
            DnsAnswer::NoSuchName => no_such_name = true,
            DnsAnswer::Failed(code) => failed = Some(code),
        }
    }
    match (found.is_empty(), failed) {
        (false, _) => Outcome::Found(found),
        _ if no_such_name || empty == asked => Outcome::NotFound,
        (_, Some(code)) => Outcome::Failed(ResolveError::ServerError { server, code }),
        _ => Outcome::NoAnswer(ResolveError::NoAnswer { server, reason }),
    }
}

/// A question and its answer, once it has arrived.
struct Question {
    record: DnsRecord,
    id: u16,
    answer: Option<Answered>,
}

/// Sends all questions by UDP and waits for their answers.
async fn ask_by_udp(
    server: SocketAddr,
    name: &DnsName,
    questions: &mut [Question],
    until: Instant,
) -> io::Result<()> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    // Drops datagrams from other addresses.
    socket.connect(server).await?;
    for question in &*questions {
        within(until, socket.send(&message::question(question.id, name, question.record))).await?;
    }
    let mut until = until;
    let mut buffer = [0; DATAGRAM_BYTES];
    while questions.iter().any(|question| question.answer.is_none()) {
        let length = within(until, socket.recv(&mut buffer)).await?;
        let bytes = buffer.get(..length).unwrap_or_default();
        for question in questions.iter_mut().filter(|question| question.answer.is_none()) {
            question.answer = message::parse_answer(bytes, question.id, name, question.record);
            let has_records = |answered: &Answered| matches!(&answered.answer, DnsAnswer::Records(some) if !some.is_empty());
            if question.answer.as_ref().is_some_and(has_records) {
                until = until.min(Instant::now() + SECOND_FAMILY_TIMEOUT);
            }
        }
    }
    Ok(())
}

/// Sends a question by TCP, which allows answers of any length.
async fn ask_by_tcp(
    server: SocketAddr,
    name: &DnsName,
    question: &Question,
    until: Instant,
) -> io::Result<Answered> {
    let question_bytes = message::question(question.id, name, question.record);
    let length = u16::try_from(question_bytes.len()).map_err(|_| ErrorKind::InvalidInput)?;
    let answer_bytes = within(until, async {
        let mut stream = TcpStream::connect(server).await?;
        stream.write_all(&[&length.to_be_bytes()[..], &question_bytes].concat()).await?;
        let mut bytes = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut bytes).await?;
        Ok(bytes)
    });
    let bytes = answer_bytes.await.map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::other("connection closed before the answer"),
        _ => error,
    })?;
    let answered = message::parse_answer(&bytes, question.id, name, question.record);
    answered.ok_or_else(|| io::Error::other("invalid answer"))
}

/// The result of an operation, or `TimedOut`.
async fn within<T>(until: Instant, operation: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout_at(until, operation).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

fn error_text(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::TimedOut => "timed out".to_owned(),
        _ => describe(error),
    }
}

/// An unpredictable id, so that an answer cannot be forged without seeing the question. Hash maps have unpredictable
/// keys.
fn random_id() -> u16 {
    let [low, high, ..] = RandomState::new().build_hasher().finish().to_be_bytes();
    u16::from_be_bytes([low, high])
}
