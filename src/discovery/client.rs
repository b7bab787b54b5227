//! Asking the agent: HTTP/1.1 on few connections that are kept, with a deadline and a bound on everything.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use containerpilot_core::plan::Consul;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::dial::Dialer;
use crate::net::http::{self, Fault, Rest};
use crate::net::wire::Wire;

/// So many heads may come before that of the answer.
const MOST_IN_BETWEEN: u32 = 16;
/// The most that is read of an answer. A service with ten thousand instances is a few megabytes.
const MOST_ANSWER: usize = 8 * 1024 * 1024;
/// Up to this length an answer needs no leave; longer ones are read a few at a time, however many are asked for.
const SMALL_ANSWER: usize = 64 * 1024;
const LARGE_AT_ONCE: usize = 4;
/// How much of an answer that says no is worth being told.
const MOST_WORDS: usize = 160;

/// An answer, whatever it says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// `X-Consul-Index`
    pub(super) index: Option<u64>,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing was asked.
    NotAsked(String),
    /// It was asked, and nobody knows what became of it.
    NoAnswer(String),
}

/// The agent.
#[derive(Debug)]
pub(super) struct Client {
    dialer: Dialer,
    host: String,
    prefix: String,
    token: Mutex<Option<Secret>>,
    token_file: Option<PathBuf>,
    /// Whether that was read.
    token_read: AtomicBool,
    /// Connections that nobody uses just now.
    idle: Mutex<Vec<Wire>>,
    /// Places for answers that are large.
    large: Semaphore,
}

impl Client {
    pub(super) fn new(consul: &Consul) -> Self {
        let parts = consul.address.network_parts(consul.https);
        Self {
            dialer: Dialer::new(consul),
            // A unix socket has no name; Consul wants some.
            host: parts
                .as_ref()
                .map(|parts| parts.authority)
                .filter(|authority| http::is_value(authority))
                .unwrap_or("localhost")
                .to_owned(),
            prefix: parts.map(|parts| parts.prefix.trim_end_matches('/').to_owned()).unwrap_or_default(),
            token: Mutex::new(consul.token.as_deref().and_then(secret)),
            token_file: consul.token_file.as_ref().map(PathBuf::from),
            token_read: AtomicBool::new(false),
            idle: Mutex::default(),
            large: Semaphore::new(LARGE_AT_ONCE),
        }
    }

    /// Reads the token's file again; whether there is another token now, or why it cannot be read.
    pub(super) fn renew_token(&self) -> Result<bool, String> {
        let Some(file) = &self.token_file else { return Ok(false) };
        let text = super::read(file).map_err(|why| format!("the token's file {why}"))?;
        let text = String::from_utf8_lossy(&text);
        let found = secret(text.trim());
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *token != found;
        *token = found;
        Ok(news)
    }

    /// Asks. A connection that was kept may be dead without anybody knowing; then a new one is tried.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<Answer, Trouble> {
        let deadline = Instant::now() + within;
        if !self.token_read.swap(true, Ordering::Relaxed) {
            // Why it cannot be read is told when Consul says that it is missing.
            let _ = self.renew_token();
        }
        let request = self.request(method, path, &body)?;
        let mut kept = self.kept();
        loop {
            let was_kept = kept.is_some();
            let wire = match kept.take() {
                Some(wire) => wire,
                // In a box, because all that dialling and encryption need would else be kept for as long as a query waits.
                None => Box::pin(self.dialer.connect(deadline)).await.map_err(Trouble::NotAsked)?,
            };
            match timeout_at(deadline, self.answer(wire, &request)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) if was_kept => {}
                Ok(Err(why)) => {
                    // With TLS 1.3, a server that wants another certificate says so only now.
                    self.dialer.renew();
                    return Err(Trouble::NoAnswer(why));
                }
                Err(_) => return Err(Trouble::NoAnswer(late(within))),
            }
        }
    }

    /// A question, to the letter.
    fn request(&self, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, Trouble> {
        let target = format!("{}{path}", self.prefix);
        if !http::is_target(&target) {
            let words = format!("the question cannot be put: `{target}` can be no path of HTTP");
            return Err(Trouble::NotAsked(words));
        }
        let mut head =
            format!("{method} {target} HTTP/1.1\r\nhost: {}\r\nuser-agent: containerpilot\r\n", self.host);
        if !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        if let Some(Secret(token)) = &*self.token.lock().unwrap_or_else(PoisonError::into_inner) {
            head.push_str("x-consul-token: ");
            head.push_str(token);
            head.push_str("\r\n");
        }
        if method != "GET" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        Ok(request)
    }

    /// The answer to a question. The connection is kept if it can be used again.
    async fn answer(&self, mut wire: Wire, request: &[u8]) -> Result<Answer, String> {
        wire.send(request).await.map_err(|error| error.to_string())?;
        let spoken = |fault: Fault| fault.to_string();
        let mut in_between = 0;
        let (head, status, rest) = loop {
            let head = wire.head().await.map_err(spoken)?;
            let head =
                head.ok_or_else(|| "the connection was closed before the answer was there".to_owned())?;
            let (status, rest) = http::answered(&head).map_err(spoken)?;
            // Something is said in between, and is no answer.
            if status >= 200 {
                break (head, status, rest);
            }
            in_between += 1;
            if in_between > MOST_IN_BETWEEN {
                return Err("it says much and answers nothing".to_owned());
            }
        };
        let index = head.fields.get("x-consul-index").and_then(|index| index.parse().ok());
        let stays = rest != Rest::Close
            && !head.fields.says("connection", "close")
            && (head.first.starts_with("HTTP/1.1") || head.fields.says("connection", "keep-alive"));
        let body = self.body(&mut wire, rest).await?;
        if stays {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(wire);
        }
        Ok(Answer { status, index, body })
    }

    /// All of a body, if it is not too long.
    async fn body(&self, wire: &mut Wire, mut rest: Rest) -> Result<Bytes, String> {
        let mut bytes = Vec::new();
        let mut place = None;
        while let Some(piece) = wire.piece(&mut rest).await.map_err(|fault| fault.to_string())? {
            let length = bytes.len().saturating_add(piece.len());
            if length > MOST_ANSWER {
                return Err("its answer is too long".to_owned());
            }
            if length > SMALL_ANSWER && place.is_none() {
                // Whoever has a place needs no second one, so that nobody waits for ever.
                place = self.large.acquire().await.ok();
            }
            bytes.extend_from_slice(&piece);
        }
        drop(place);
        Ok(bytes.into())
    }

    fn kept(&self) -> Option<Wire> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain_mut(Wire::is_quiet);
        idle.pop()
    }

    /// What an answer says, for people: its first words, without the token, should it be among them.
    pub(super) fn words(&self, answer: &Answer) -> String {
        let text = String::from_utf8_lossy(&answer.body);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = token.as_ref().map(|Secret(token)| token.as_str()).unwrap_or_default();
        // Every token that begins within the first words must be whole to be found, however many there are before it.
        let enough = MOST_WORDS.saturating_mul(token.len().saturating_add(1));
        let mut words: String = line.chars().filter(|one| !one.is_control()).take(enough).collect();
        if !token.is_empty() {
            words = words.replace(token, "(hidden)");
        }
        words = words.chars().take(MOST_WORDS).collect();
        if words.is_empty() {
            format!("status {}", answer.status)
        } else {
            format!("status {}: {words}", answer.status)
        }
    }
}

/// A token, which is never shown.
#[derive(Clone, PartialEq, Eq)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("(hidden)")
    }
}

fn secret(token: &str) -> Option<Secret> {
    (!token.is_empty() && http::is_value(token)).then(|| Secret(token.to_owned()))
}

fn late(within: Duration) -> String {
    format!("no answer within {within:?}")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use containerpilot_core::plan::{ConsulAddress, Tls};

    use super::*;

    fn client(address: &str, token: Option<&str>) -> Client {
        Client::new(&Consul {
            address: ConsulAddress::Network(address.to_owned()),
            https: false,
            token: token.map(str::to_owned),
            token_file: None,
            tls: Tls {
                ca_file: None,
                ca_path: None,
                client_cert: None,
                client_key: None,
                server_name: None,
                verify: true,
            },
        })
    }

    /// A server that gives these answers, one connection after the other; what it was asked on each.
    fn server(connections: Vec<Vec<&'static str>>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = std::thread::spawn(move || {
            let serve = |answers: Vec<&str>| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = Vec::new();
                for answer in answers {
                    let begin = asked.len();
                    while !asked[begin..].ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        asked.extend_from_slice(&byte);
                    }
                    stream.write_all(answer.as_bytes()).unwrap();
                }
                String::from_utf8(asked).unwrap()
            };
            connections.into_iter().map(serve).collect()
        });
        (address, serving)
    }

    #[test]
    fn d1_a_connection_is_used_again_as_long_as_it_can_be_and_another_is_dialled_then() {
        let (address, serving) = server(vec![
            vec![
                "HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\nContent-Length: 3\r\n\r\none",
                "HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nt\r\n2\r\nwo\r\n0\r\n\r\n",
                // It leaves in the middle of the third.
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthr",
            ],
            vec!["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nthree"],
            vec!["HTTP/1.0 404 No\r\n\r\nto the end"],
            vec!["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"],
        ]);
        let client = client(&address, Some("t0ken"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ask = || runtime.block_on(client.ask("GET", "/v1/x", Bytes::new(), Duration::from_secs(30)));
        let good = || ask().map(|answer| (answer.status, answer.index, answer.body)).unwrap();
        assert_eq!(good(), (200, Some(7), "one".into()));
        assert_eq!(good(), (200, None, "two".into()));
        assert_eq!(good(), (200, None, "three".into()), "by a second connection");
        assert_eq!(good(), (404, None, "to the end".into()), "by a third");
        let words = Trouble::NoAnswer("invalid HTTP: it is not clear where it ends".to_owned());
        assert_eq!(ask().unwrap_err(), words);
        let asked = serving.join().unwrap();
        let counts: Vec<usize> =
            asked.iter().map(|all| all.matches("GET /v1/x HTTP/1.1\r\n").count()).collect();
        assert_eq!(counts, [3, 1, 1, 1]);
        let fields =
            format!("host: {address}\r\nuser-agent: containerpilot\r\nx-consul-token: t0ken\r\n\r\n");
        assert!(asked.iter().all(|all| all.ends_with(&fields)), "{asked:?}");
    }

    #[test]
    fn d1_what_would_be_more_than_a_path_is_not_asked() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = client("127.0.0.1:1", None);
        for path in ["/a b", "/a\r\nx: y", "/\u{e4}", ""] {
            let asked = runtime.block_on(client.ask("GET", path, Bytes::new(), Duration::from_secs(30)));
            assert!(matches!(asked, Err(Trouble::NotAsked(_))), "{path:?}");
        }
        assert!(secret("a\r\nb").is_none() && secret("").is_none());
        assert_eq!(format!("{:?}", secret("t0ken")), "Some((hidden))", "not even for a programmer");
    }

    #[test]
    fn l5_no_part_of_a_token_that_an_answer_repeats_is_told() {
        let token = "11111111-2222-3333-4444-555555555555";
        let client = client("127.0.0.1:8500", Some(token));
        for blanks in 0..2 * MOST_WORDS {
            let body = format!("{}{token} is not known, {token}", "x".repeat(blanks));
            let words = client.words(&Answer { status: 403, index: None, body: body.into() });
            assert!(!words.contains("11111111") && !words.contains("1111-2222"), "{words}");
            assert!(words.chars().count() <= MOST_WORDS + "status 403: ".len());
        }
        // With what cannot be seen in between, it is the token all the same for whoever reads the log.
        let body = "1111\u{1}1111-2222-3333-4444-555555555555";
        let words = client.words(&Answer { status: 500, index: None, body: body.into() });
        assert_eq!(words, "status 500: (hidden)");
    }
}
