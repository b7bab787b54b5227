//! Checks that speak to the network: `http` and `tcp` (H5).
//!
//! Each is a connection in the loop's own wait, since it lives for milliseconds and mostly on this machine.
//! Deadlines are the core's business: it cancels. Only a host name that has to be looked up needs a thread, because
//! looking up may block.

mod answer;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use containerpilot_core::ids::CheckRun;
use containerpilot_core::plan::HttpTarget;

use crate::net::resolve;
use crate::process::sys;
use crate::runtime::channel::{LoopMessage, LoopSender};

/// How a check came out: passed, or why not.
pub(crate) type Outcome = Result<(), String>;

/// How much of an answer is read before a status must have come.
const MOST_HEAD: usize = 4096;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// That a connection is accepted.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// That a URL answers with 2xx or 3xx.
    Http(HttpTarget),
}

/// The checks that are going on.
#[derive(Debug)]
pub(crate) struct Probes {
    live: Vec<Probe>,
    sender: LoopSender,
}

#[derive(Debug)]
struct Probe {
    run: CheckRun,
    target: Target,
    addresses: VecDeque<SocketAddr>,
    connection: Option<(TcpStream, Phase)>,
}

#[derive(Debug)]
enum Phase {
    Connecting,
    /// What is still to be sent.
    Asking(Vec<u8>),
    /// What has come.
    Answered(Vec<u8>),
}

impl Probes {
    pub(crate) fn new(sender: LoopSender) -> Self {
        Self { live: Vec::new(), sender }
    }

    /// Begins a check. Says how it came out if that is known at once.
    pub(crate) fn begin(&mut self, run: CheckRun, target: Target) -> Option<Outcome> {
        let (host, port) = match &target {
            Target::Tcp { host, port } => (host.as_str(), *port),
            Target::Http(http) => (http.host.as_str(), http.port),
        };
        let addresses = match resolve::without_look_up(host) {
            Some(addresses) => addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect(),
            None => {
                if let Err(why) = look_up(run, host.to_owned(), port, self.sender.clone()) {
                    return Some(Err(why));
                }
                VecDeque::new()
            }
        };
        let known = !addresses.is_empty();
        self.live.push(Probe { run, target, addresses, connection: None });
        if known { self.advance(run) } else { None }
    }

    /// The addresses of a check's host have been found, or not.
    pub(crate) fn resolved(
        &mut self,
        run: CheckRun,
        found: Result<Vec<SocketAddr>, String>,
    ) -> Option<Outcome> {
        let place = self.live.iter().position(|probe| probe.run == run)?;
        match found {
            Ok(addresses) => {
                self.live.get_mut(place)?.addresses = addresses.into();
                self.advance(run)
            }
            Err(why) => {
                self.live.swap_remove(place);
                Some(Err(why))
            }
        }
    }

    /// Gives a check up. Says whether it was going on.
    pub(crate) fn cancel(&mut self, run: CheckRun) -> bool {
        let before = self.live.len();
        self.live.retain(|probe| probe.run != run);
        self.live.len() < before
    }

    /// Adds what the checks wait for.
    pub(crate) fn await_all(&self, fds: &mut Vec<sys::Awaited>) {
        for probe in &self.live {
            let Some((stream, phase)) = &probe.connection else { continue };
            let events = if matches!(phase, Phase::Answered(_)) { sys::POLLIN } else { sys::POLLOUT };
            fds.push(sys::awaited(stream.as_raw_fd(), events));
        }
    }

    /// Goes on with the checks whose connections are ready.
    pub(crate) fn ready(&mut self, fds: &[sys::Awaited]) -> Vec<(CheckRun, Outcome)> {
        let is_ready = |fd: i32| fds.iter().any(|awaited| awaited.fd == fd && awaited.revents != 0);
        let connected = |probe: &&Probe| {
            probe.connection.as_ref().is_some_and(|(stream, _)| is_ready(stream.as_raw_fd()))
        };
        let runs: Vec<CheckRun> = self.live.iter().filter(connected).map(|probe| probe.run).collect();
        runs.into_iter().filter_map(|run| Some((run, self.advance(run)?))).collect()
    }

    fn advance(&mut self, run: CheckRun) -> Option<Outcome> {
        let place = self.live.iter().position(|probe| probe.run == run)?;
        let outcome = self.live.get_mut(place)?.advance()?;
        self.live.swap_remove(place);
        Some(outcome)
    }
}

impl Probe {
    /// Goes on as far as possible. Says how it came out, if it has.
    fn advance(&mut self) -> Option<Outcome> {
        let mut why = format!("{} has no address", self.host());
        loop {
            let step = match &mut self.connection {
                None => {
                    let Some(address) = self.addresses.pop_front() else { return Some(Err(why)) };
                    match sys::begin_connection(address) {
                        Ok(stream) => self.connection = Some((stream, Phase::Connecting)),
                        Err(errno) => why = format!("{address}: {}", errno.desc()),
                    }
                    continue;
                }
                Some((stream, phase)) => phase.advance(stream, &self.target),
            };
            match step {
                Step::Waits => return None,
                Step::Done(outcome) => return Some(outcome),
                // The next address has its chance.
                Step::Unreachable(words) => {
                    why = words;
                    self.connection = None;
                }
            }
        }
    }

    fn host(&self) -> &str {
        match &self.target {
            Target::Tcp { host, .. } => host,
            Target::Http(http) => &http.host,
        }
    }
}

enum Step {
    Waits,
    Unreachable(String),
    Done(Outcome),
}

impl Phase {
    fn advance(&mut self, stream: &mut TcpStream, target: &Target) -> Step {
        loop {
            match self {
                Self::Connecting => {
                    match stream.take_error() {
                        Ok(None) => {}
                        Ok(Some(error)) | Err(error) => return Step::Unreachable(error.to_string()),
                    }
                    match (stream.peer_addr(), stream.local_addr()) {
                        // A port that nobody listens on may be given to our own end, which then meets itself.
                        (Ok(peer), Ok(own)) if peer == own => {
                            return Step::Unreachable("nobody listens".to_owned());
                        }
                        (Ok(_), _) => {}
                        (Err(error), _) if error.kind() == ErrorKind::NotConnected => return Step::Waits,
                        (Err(error), _) => return Step::Unreachable(error.to_string()),
                    }
                    match target {
                        Target::Tcp { .. } => return Step::Done(Ok(())),
                        Target::Http(http) => match request(http) {
                            Ok(request) => *self = Self::Asking(request),
                            Err(why) => return Step::Done(Err(why)),
                        },
                    }
                }
                Self::Asking(request) => match stream.write(request) {
                    Ok(written) if written == request.len() => *self = Self::Answered(Vec::new()),
                    Ok(written) => drop(request.drain(..written)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Waits,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Step::Done(Err(error.to_string())),
                },
                Self::Answered(head) => {
                    let mut buffer = [0; 1024];
                    match stream.read(&mut buffer) {
                        Ok(read) => {
                            head.extend(buffer.iter().take(read));
                            match answer::status(head) {
                                None if read > 0 && head.len() < MOST_HEAD => {}
                                None => return Step::Done(Err("the answer is not HTTP".to_owned())),
                                Some(status) => {
                                    swallow(stream);
                                    return Step::Done(match status {
                                        200..400 => Ok(()),
                                        _ => Err(format!("the answer is {status}")),
                                    });
                                }
                            }
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Waits,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Step::Done(Err(error.to_string())),
                    }
                }
            }
        }
    }
}

/// Reads what has come already, so that a server that has written it all is not told off.
fn swallow(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    for _ in 0..16 {
        if !matches!(stream.read(&mut buffer), Ok(1..)) {
            return;
        }
    }
}

fn request(http: &HttpTarget) -> Result<Vec<u8>, String> {
    if http.path.bytes().chain(http.host.bytes()).any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err("a space or a control character stands in the URL".to_owned());
    }
    let HttpTarget { host, port, path } = http;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!(
        "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: containerpilot/{version}\r\n\
         Accept: */*\r\nConnection: close\r\n\r\n"
    )
    .into_bytes())
}

/// Looks a name up on a thread of its own.
fn look_up(run: CheckRun, host: String, port: u16, sender: LoopSender) -> Result<(), String> {
    let thread = std::thread::Builder::new().name("look-up".to_owned()).stack_size(256 * 1024);
    let started = thread.spawn(move || {
        let at_port = |address| SocketAddr::new(address, port);
        let found = resolve::look_up(&host).map(|found| found.into_iter().map(at_port).collect());
        let found = found.map_err(|error| error.to_string());
        sender.send(LoopMessage::Resolved(run, found.map_err(|why| format!("{host}: {why}"))));
    });
    started.map(drop).map_err(|error| format!("no thread to look the host up: {error}"))
}

#[cfg(test)]
mod tests;
