//! Concurrent clients that send requests without a pause and record every response.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::TIMEOUT;
use crate::support::deadline::holds_within;

/// Long enough for every instance to get many requests.
const WINDOW: Duration = Duration::from_secs(1);

/// Method and path of a request.
type Target = (&'static str, &'static str);

/// A request that nginx may retry on another instance.
const QUICK: Target = ("GET", "/");
/// A request that nginx never retries, and so slow that every instance is handling one at any time.
const SLOW: Target = ("POST", "/cgi-bin/slow.cgi");

struct Response {
    started: Instant,
    took: Duration,
    target: Target,
    /// The name of the instance, or the error.
    result: Result<String, String>,
}

pub(crate) struct Clients {
    responses: Arc<Mutex<Vec<Response>>>,
    started: Instant,
    gets: Group,
    posts: Group,
}

/// Clients that send the same request.
struct Group {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Group {
    fn start(count: usize, target: Target, port: u16, responses: &Arc<Mutex<Vec<Response>>>) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let one = |_| {
            let (end, responses) = (Arc::clone(&end), Arc::clone(responses));
            std::thread::spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    let started = Instant::now();
                    let result = request(target, port);
                    let response = Response { started, took: started.elapsed(), target, result };
                    responses.lock().unwrap().push(response);
                }
            })
        };
        Self { threads: (0..count).map(one).collect(), end }
    }

    /// Stops the clients after their last response.
    fn end(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// The summary of all responses.
pub(crate) struct Summary {
    pub(crate) gets: usize,
    pub(crate) posts: usize,
    pub(crate) failures: Vec<String>,
    slowest: Duration,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gets, posts, failures, slowest } = self;
        let failed = failures.len();
        write!(f, "{gets} GET and {posts} POST requests, {failed} failed, the slowest took {slowest:.1?}")
    }
}

impl Clients {
    pub(crate) fn start(port: u16) -> Self {
        let responses = Arc::default();
        let gets = Group::start(4, QUICK, port, &responses);
        let posts = Group::start(6, SLOW, port, &responses);
        Self { responses, started: Instant::now(), gets, posts }
    }

    /// Waits until exactly the instances `expected` respond.
    pub(crate) fn wait_for_instances(&self, what: &str, expected: &BTreeSet<String>) {
        let (start, mut found) = (Instant::now(), BTreeSet::new());
        let agree = holds_within(TIMEOUT, || {
            let recent = Instant::now().checked_sub(WINDOW).map_or(start, |time| time.max(start));
            if let Some(names) = self.names_since(recent) {
                found = names;
            }
            start.elapsed() >= WINDOW && &found == expected
        });
        assert!(agree, "{what}: {found:?} respond, expected {expected:?}");
    }

    /// The instances that have handled requests since `time`; `None` if there were fewer than 20.
    fn names_since(&self, time: Instant) -> Option<BTreeSet<String>> {
        let responses = self.responses.lock().unwrap();
        let recent = responses.iter().rev().filter(|response| response.started >= time);
        let names: Vec<&String> = recent.filter_map(|response| response.result.as_ref().ok()).collect();
        (names.len() >= 20).then(|| names.into_iter().cloned().collect())
    }

    /// Stops the clients that send POST requests.
    pub(crate) fn stop_posts(&mut self) {
        self.posts.end();
    }

    pub(crate) fn end(&mut self) -> Summary {
        self.gets.end();
        self.posts.end();
        let responses = self.responses.lock().unwrap();
        let count = |target| responses.iter().filter(|response| response.target == target).count();
        let failure = |response: &Response| {
            let error = response.result.as_ref().err()?;
            let when = response.started - self.started;
            Some(format!("{} after {when:.2?}, {:.2?} long: {error}", response.target.0, response.took))
        };
        Summary {
            gets: count(QUICK),
            posts: count(SLOW),
            failures: responses.iter().filter_map(failure).collect(),
            slowest: responses.iter().map(|response| response.took).max().unwrap_or_default(),
        }
    }
}

/// Waits for the first good response; errors before it do not count.
pub(crate) fn wait_for_response(port: u16) {
    super::wait_until(|| format!("port {port} responds"), || request(QUICK, port).is_ok());
}

/// Sends one request on a new connection; returns the name of the instance if the response is complete and has status 200.
fn request((method, path): Target, port: u16) -> Result<String, String> {
    let context = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(context("connecting"))?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(context("connecting"))?;
    let text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(text.as_bytes()).map_err(context("sending"))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(context("reading"))?;
    let instance = || {
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
        let good = head.starts_with("HTTP/1.1 200 ") && length.parse() == Ok(body.len());
        good.then(|| body.trim().to_owned())
    };
    instance().ok_or_else(|| format!("the response is {answer:?}"))
}
