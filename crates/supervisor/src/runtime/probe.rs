//! `http` and `tcp` checks (H5, H10).
//!
//! Most checks are a non-blocking connection in the loop's own `ppoll`: it lives for milliseconds, mostly on this
//! machine. The core cancels a check that times out. Host names are resolved on the network thread, one look-up per
//! name (`look_ups`).
//!
//! A check by https, or of a body, is a task of the network thread (`remote`): a handshake takes a millisecond of
//! computing and reads files of certificates, and a body needs a complete HTTP client. Neither belongs into the loop.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod look_ups;
mod remote;

use std::collections::VecDeque;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use containerpilot_core::ids::CheckRunId;
use containerpilot_core::input::CheckError;
use containerpilot_core::plan::HttpProbe;
use containerpilot_process::error_text::{describe, is_out_of_descriptors};
use containerpilot_process::sys;

use self::look_ups::LookUps;
use self::remote::RemoteChecks;
use crate::messages::LoopSender;
use crate::net::http_client::NoResponse;
use crate::net::{LazyNet, http_probe, resolve};

/// The result of a check: passed, or the reason why not.
pub(crate) type ProbeResult = Result<(), CheckError>;

/// How many bytes are read at most to find the status of a response.
const MAX_STATUS_LINE: usize = 4096;

/// What a check connects to.
#[derive(Clone, Debug)]
pub(crate) enum ProbeTarget {
    /// Passes if a connection is accepted.
    Tcp { host: String, port: u16 },
    /// Passes if the response is as expected.
    Http(HttpProbe),
}

impl ProbeTarget {
    fn host(&self) -> &str {
        match self {
            Self::Tcp { host, .. } => host,
            Self::Http(http) => &http.target.host,
        }
    }

    fn port(&self) -> u16 {
        match self {
            Self::Tcp { port, .. } => *port,
            Self::Http(http) => http.target.port,
        }
    }
}

impl fmt::Display for ProbeTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(out, "{}:{port}", bracketed(host)),
            Self::Http(http) => write!(out, "{http}"),
        }
    }
}

/// The running checks.
#[derive(Debug)]
pub(crate) struct Probes {
    running: Vec<Probe>,
    look_ups: LookUps,
    remote: RemoteChecks,
}

#[derive(Debug)]
struct Probe {
    run: CheckRunId,
    target: ProbeTarget,
    addresses: VecDeque<SocketAddr>,
    connection: Option<(TcpStream, State)>,
}

#[derive(Debug)]
enum State {
    Connecting,
    /// The rest of the request.
    Sending(Vec<u8>),
    /// The response so far.
    Receiving(Vec<u8>),
}

impl Probes {
    pub(crate) fn new(sender: LoopSender) -> Self {
        let remote = RemoteChecks::new(sender.clone());
        Self { running: Vec::new(), look_ups: LookUps::new(sender), remote }
    }

    /// Starts a check. Returns its result if that is known at once.
    pub(crate) fn start(
        &mut self,
        run: CheckRunId,
        target: ProbeTarget,
        net: &mut LazyNet,
    ) -> Option<ProbeResult> {
        if let ProbeTarget::Http(http) = &target
            && (http.target.https || http.body.is_some())
        {
            let error = self.remote.start(run, http, net).err()?;
            let why = format!("{target}: cannot start the network thread: {}", describe(&error));
            return Some(Err(why.into()));
        }
        let host = target.host();
        let known = resolve::without_look_up(host);
        if known.is_none()
            && let Err(error) = self.look_ups.join(host, run, net)
        {
            return Some(Err(format!(
                "{target}: cannot start the network thread to resolve {host}: {}",
                describe(&error)
            )
            .into()));
        }
        self.running.push(Probe { run, target, addresses: VecDeque::new(), connection: None });
        self.connect(run, known?)
    }

    /// Continues the checks of a host with the result of its look-up. Returns the results that are known now.
    pub(crate) fn resolved(
        &mut self,
        host: &str,
        found: &Result<Vec<IpAddr>, CheckError>,
    ) -> Vec<(CheckRunId, ProbeResult)> {
        let waiting = self.look_ups.finished(host);
        let proceed = |run| match found {
            Ok(addresses) => Some((run, self.connect(run, addresses.clone())?)),
            Err(error) => {
                let Probe { target, .. } = self.remove(run)?;
                Some((run, Err(error.clone().map(|why| format!("{target}: {host}: {why}")))))
            }
        };
        waiting.into_iter().filter_map(proceed).collect()
    }

    /// A check on the network thread is done. Returns its result unless it was cancelled.
    pub(crate) fn remote_done(&mut self, run: CheckRunId, result: ProbeResult) -> Option<ProbeResult> {
        self.remote.finished(run).then_some(result)
    }

    /// Drops what is kept for checks of the old plan.
    pub(crate) fn replanned(&mut self) {
        self.remote.forget_clients();
    }

    /// Cancels a check. Returns false if it was not running.
    pub(crate) fn cancel(&mut self, run: CheckRunId) -> bool {
        if self.remote.finished(run) {
            return true;
        }
        let Some(probe) = self.remove(run) else { return false };
        self.look_ups.leave(probe.target.host(), run);
        true
    }

    fn remove(&mut self, run: CheckRunId) -> Option<Probe> {
        let place = self.running.iter().position(|probe| probe.run == run)?;
        Some(self.running.swap_remove(place))
    }

    fn connect(&mut self, run: CheckRunId, addresses: Vec<IpAddr>) -> Option<ProbeResult> {
        let probe = self.running.iter_mut().find(|probe| probe.run == run)?;
        let port = probe.target.port();
        probe.addresses = addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
        self.advance(run)
    }

    /// Adds the descriptors of all connections.
    pub(crate) fn add_poll_fds(&self, fds: &mut Vec<sys::PollFd>) {
        for probe in &self.running {
            let Some((stream, state)) = &probe.connection else { continue };
            let events = if matches!(state, State::Receiving(_)) { sys::POLLIN } else { sys::POLLOUT };
            fds.push(sys::poll_fd(stream.as_raw_fd(), events));
        }
    }

    /// Continues the checks whose connections are ready, and returns the results of those that are done.
    pub(crate) fn ready(&mut self, fds: &[sys::PollFd]) -> Vec<(CheckRunId, ProbeResult)> {
        let is_ready = |fd: i32| fds.iter().any(|polled| polled.fd == fd && polled.revents != 0);
        let connected = |probe: &&Probe| {
            probe.connection.as_ref().is_some_and(|(stream, _)| is_ready(stream.as_raw_fd()))
        };
        let runs: Vec<CheckRunId> = self.running.iter().filter(connected).map(|probe| probe.run).collect();
        runs.into_iter().filter_map(|run| Some((run, self.advance(run)?))).collect()
    }

    fn advance(&mut self, run: CheckRunId) -> Option<ProbeResult> {
        let place = self.running.iter().position(|probe| probe.run == run)?;
        let outcome = self.running.get_mut(place)?.advance()?;
        let target = self.running.swap_remove(place).target;
        Some(outcome.map_err(|error| error.map(|why| format!("{target}: {why}"))))
    }
}

impl Probe {
    /// Continues as far as possible without waiting. Returns the result when it is known.
    fn advance(&mut self) -> Option<ProbeResult> {
        let mut error = CheckError::from("the host has no address");
        loop {
            let progress = match &mut self.connection {
                None => {
                    let Some(address) = self.addresses.pop_front() else { return Some(Err(error)) };
                    match sys::begin_connection(address) {
                        Ok(stream) => self.connection = Some((stream, State::Connecting)),
                        Err(errno) => {
                            let failure = errno.into();
                            let is_own = is_out_of_descriptors(&failure);
                            let kind = if is_own { CheckError::NotRun } else { CheckError::Failed };
                            error = kind(describe(&failure));
                        }
                    }
                    continue;
                }
                Some((stream, state)) => state.advance(stream, &self.target),
            };
            match progress {
                Progress::Blocked => return None,
                Progress::Done(result) => return Some(result),
                // Try the next address.
                Progress::Unreachable(why) => {
                    error = why.into();
                    self.connection = None;
                }
            }
        }
    }
}

enum Progress {
    Blocked,
    Unreachable(String),
    Done(ProbeResult),
}

impl State {
    fn advance(&mut self, stream: &mut TcpStream, target: &ProbeTarget) -> Progress {
        loop {
            match self {
                Self::Connecting => {
                    match stream.take_error() {
                        Ok(None) => {}
                        Ok(Some(error)) | Err(error) => return Progress::Unreachable(describe(&error)),
                    }
                    match (stream.peer_addr(), stream.local_addr()) {
                        // Without a listener the kernel may choose the same port as the local port: the socket is
                        // connected to itself.
                        (Ok(peer), Ok(own)) if peer == own => {
                            return Progress::Unreachable("connection refused".to_owned());
                        }
                        (Ok(_), _) => {}
                        (Err(error), _) if error.kind() == ErrorKind::NotConnected => {
                            return Progress::Blocked;
                        }
                        (Err(error), _) => return Progress::Unreachable(describe(&error)),
                    }
                    match target {
                        ProbeTarget::Tcp { .. } => return Progress::Done(Ok(())),
                        ProbeTarget::Http(http) => match request(http) {
                            Ok(request) => *self = Self::Sending(request),
                            Err(why) => return Progress::Done(Err(why)),
                        },
                    }
                }
                Self::Sending(request) => match stream.write(request) {
                    Ok(written) if written == request.len() => *self = Self::Receiving(Vec::new()),
                    Ok(written) => drop(request.drain(..written)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Blocked,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Progress::Done(Err(describe(&error).into())),
                },
                Self::Receiving(head) => {
                    // A TCP check sends no request.
                    let ProbeTarget::Http(http) = target else { return Progress::Done(Ok(())) };
                    let mut buffer = [0; 1024];
                    match stream.read(&mut buffer) {
                        Ok(read) => {
                            head.extend(buffer.iter().take(read));
                            match status(head) {
                                None if read > 0 && head.len() < MAX_STATUS_LINE => {}
                                None => return Progress::Done(Err(NoResponse::NotHttp.to_string().into())),
                                Some(status) => {
                                    discard_pending(stream);
                                    return Progress::Done(http.check_status(status).map_err(Into::into));
                                }
                            }
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Blocked,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Progress::Done(Err(describe(&error).into())),
                    }
                }
            }
        }
    }
}

/// Reads what has arrived: closing with unread bytes would reset the connection of a server that has sent everything.
fn discard_pending(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    for _ in 0..16 {
        if !matches!(stream.read(&mut buffer), Ok(1..)) {
            return;
        }
    }
}

/// The host as part of a URL.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn request(http: &HttpProbe) -> Result<Vec<u8>, CheckError> {
    let headers = http_probe::headers(http);
    let is_control = |byte: u8| byte < b' ' && byte != b'\t' || byte == 0x7f;
    if headers.iter().any(|(name, value)| name.bytes().chain(value.bytes()).any(is_control)) {
        return Err("a header contains a control character".into());
    }
    let mut text = format!("{} {} HTTP/1.1\r\n", http.method.name(), http_probe::path(&http.target));
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    Ok(text.into_bytes())
}

/// The status of a response, once its first line has arrived. `None` if it is incomplete or not HTTP/1.x.
fn status(head: &[u8]) -> Option<u16> {
    let line_end = head.iter().position(|byte| *byte == b'\n')?;
    let mut config = httparse::ParserConfig::default();
    config.allow_multiple_spaces_in_response_status_delimiters(true);
    let mut response = httparse::Response::new(&mut []);
    // Without the headers the response is always partial, but its status is set.
    config.parse_response(&mut response, head.get(..=line_end)?).ok()?;
    response.code
}

#[cfg(test)]
mod tests;
