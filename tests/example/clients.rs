//! Clients who ask without a pause, several at a time, and remember every answer.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// The time in which every instance is asked many times.
const WHILE: Duration = Duration::from_secs(1);

/// What is asked: a method and a path.
type Wish = (&'static str, &'static str);

/// What may be asked of another instance if the first one fails.
const QUICK: Wish = ("GET", "/");
/// What nginx asks once and never again, and takes so long that every instance is answering one at any time.
const SLOW: Wish = ("POST", "/cgi-bin/slow.cgi");

struct Answer {
    begun: Instant,
    took: Duration,
    what: Wish,
    /// The instance that has answered, or what went wrong.
    said: Result<String, String>,
}

pub(crate) struct Clients {
    answers: Arc<Mutex<Vec<Answer>>>,
    started: Instant,
    gets: Group,
    posts: Group,
}

/// Some that do the same.
struct Group {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Group {
    fn start(count: usize, what: Wish, port: u16, answers: &Arc<Mutex<Vec<Answer>>>) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let one = |_| {
            let (end, answers) = (Arc::clone(&end), Arc::clone(answers));
            std::thread::spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    let said = request(what, port);
                    let answer = Answer { begun, took: begun.elapsed(), what, said };
                    answers.lock().unwrap().push(answer);
                }
            })
        };
        Self { threads: (0..count).map(one).collect(), end }
    }

    /// Lets each have its last answer.
    fn end(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// What came of it all.
pub(crate) struct Tally {
    pub(crate) gets: usize,
    pub(crate) posts: usize,
    pub(crate) failures: Vec<String>,
    slowest: Duration,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gets, posts, failures, slowest } = self;
        let failed = failures.len();
        write!(f, "{gets} GET and {posts} POST requests, {failed} failed, the slowest took {slowest:.1?}")
    }
}

impl Clients {
    pub(crate) fn start(port: u16) -> Self {
        let answers = Arc::default();
        let gets = Group::start(4, QUICK, port, &answers);
        let posts = Group::start(6, SLOW, port, &answers);
        Self { answers, started: Instant::now(), gets, posts }
    }

    /// Waits until those who answer are these, all of them and nobody else.
    pub(crate) fn settle(&self, what: &str, expected: &BTreeSet<String>) {
        let (start, mut found) = (Instant::now(), BTreeSet::new());
        loop {
            let recent = Instant::now().checked_sub(WHILE).map_or(start, |time| time.max(start));
            found = self.names_since(recent).unwrap_or(found);
            if start.elapsed() >= WHILE && &found == expected {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{what}: {found:?} answer, and not {expected:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The instances that have answered what was asked since then; none if that was not enough to tell.
    fn names_since(&self, time: Instant) -> Option<BTreeSet<String>> {
        let answers = self.answers.lock().unwrap();
        let recent = answers.iter().rev().filter(|answer| answer.begun >= time);
        let names: Vec<&String> = recent.filter_map(|answer| answer.said.as_ref().ok()).collect();
        (names.len() >= 20).then(|| names.into_iter().cloned().collect())
    }

    /// No more requests that may not be repeated.
    pub(crate) fn rest_of_posts(&mut self) {
        self.posts.end();
    }

    pub(crate) fn end(&mut self) -> Tally {
        self.gets.end();
        self.posts.end();
        let answers = self.answers.lock().unwrap();
        let count = |what| answers.iter().filter(|answer| answer.what == what).count();
        let failure = |answer: &Answer| {
            let error = answer.said.as_ref().err()?;
            let when = answer.begun - self.started;
            Some(format!("{} after {when:.2?}, {:.2?} long: {error}", answer.what.0, answer.took))
        };
        Tally {
            gets: count(QUICK),
            posts: count(SLOW),
            failures: answers.iter().filter_map(failure).collect(),
            slowest: answers.iter().map(|answer| answer.took).max().unwrap_or_default(),
        }
    }
}

/// Waits until somebody answers at all; who is not there yet is no failure.
pub(crate) fn wait_for_answer(port: u16) {
    crate::until(|| format!("nobody answers at port {port}"), || request(QUICK, port).is_ok());
}

/// One request on a connection of its own, as curl makes it: the name of the instance, if the answer is good and whole.
fn request((method, path): Wish, port: u16) -> Result<String, String> {
    let told = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(told("connecting"))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(told("connecting"))?;
    let text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(text.as_bytes()).map_err(told("asking"))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(told("reading"))?;
    let whole = || {
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
        let good = head.starts_with("HTTP/1.1 200 ") && length.parse() == Ok(body.len());
        good.then(|| body.trim().to_owned())
    };
    whole().ok_or_else(|| format!("the answer is {answer:?}"))
}
