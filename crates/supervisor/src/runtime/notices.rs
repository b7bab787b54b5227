//! What processes report about themselves (H11): messages to their `NOTIFY_SOCKET`, and newlines on a descriptor.
//!
//! Each run with `ready` has a source of its own in the loop's `ppoll`. A job can send as much as it likes: only so
//! many messages of one process are read in a tenth of a second. Every user of the container can send to its socket as
//! well. That does not count, but the system keeps only few messages, so they are read and dropped faster than they
//! keep the process waiting.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use containerpilot_config::template::Pattern;
use containerpilot_core::SortedMap;
use containerpilot_core::effect::Exit;
use containerpilot_core::ids::RunId;
use containerpilot_core::input::{StartError, StartErrorKind};
use containerpilot_core::plan::{Job, Ready};
use containerpilot_core::variables::ProcessEnvironment;
use containerpilot_core::{Input, Notice};
use containerpilot_log_format::{HiddenValues, Redactor};
use containerpilot_process::error_text::describe;
use containerpilot_process::spawn::{self, Reports};
use containerpilot_process::sys::{self, NotifySocket, PollFd, Received};

use super::{Decider, Runtime};
use crate::logs::ReadyLine;
use crate::messages::{LoopMessage, LoopSender};

/// How many messages of one process are read in one window of time, and how many notices of one message count.
const MAX_MESSAGES: usize = 16;
const MAX_NOTICES: usize = 16;
/// How many messages of other users are dropped in one window. That takes a hundredth of a processor.
const MAX_FOREIGN: usize = 500;
const WINDOW: Duration = Duration::from_millis(100);
/// How much is read from a descriptor at a time. That counts as one message.
const MAX_BYTES: usize = 4096;

/// The sources of the runs that report about themselves.
#[derive(Debug)]
pub(crate) struct Notices {
    sources: SortedMap<RunId, Source>,
    sender: LoopSender,
}

#[derive(Debug)]
struct Source {
    kind: Kind,
    /// The beginning of the current window, and how many messages were read and dropped in it.
    window: Option<Instant>,
    messages: usize,
    foreign: usize,
    /// It is not read until then.
    paused_until: Option<Instant>,
}

#[derive(Debug)]
enum Kind {
    Socket {
        socket: NotifySocket,
        /// The secrets of the process, which are hidden in what it says (P11).
        hidden: Option<HiddenValues>,
    },
    /// The read end of the pipe whose write end is the process's descriptor, and whether there was a newline.
    Pipe { pipe: OwnedFd, ready: bool },
}

/// What was prepared for a process that is about to be started.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    socket: Option<NotifySocket>,
    /// What the start needs to know.
    pub(super) reports: Reports,
    /// The line that its output is searched for.
    pub(super) line: Option<ReadyLine>,
}

impl Notices {
    pub(crate) fn new(sender: LoopSender) -> Self {
        Self { sources: SortedMap::new(), sender }
    }

    /// Prepares what a run needs to report, and adds the variables for it.
    pub(super) fn prepare(
        &self,
        job: &Job,
        run: RunId,
        environment: &mut ProcessEnvironment,
    ) -> Result<Prepared, StartError> {
        let mut prepared = Prepared::default();
        match &job.ready {
            None => {}
            Some(Ready::Notify { watchdog }) => {
                let (socket, name) =
                    NotifySocket::bind(spawn::user_of(&job.process)).map_err(|error| no_socket(&error))?;
                let variables = std::sync::Arc::make_mut(&mut environment.cause);
                variables.push(("NOTIFY_SOCKET".into(), format!("@{name}")));
                if let Some(watchdog) = watchdog {
                    variables.push(("WATCHDOG_USEC".into(), watchdog.as_micros().to_string()));
                }
                prepared.socket = Some(socket);
                prepared.reports.watchdog = watchdog.is_some();
            }
            Some(Ready::Descriptor(number)) => prepared.reports.descriptor = Some(*number),
            Some(Ready::Line(pattern)) => {
                let pattern = Pattern::new(pattern)
                    .map_err(|message| StartError { kind: StartErrorKind::Other, message })?;
                let sender = self.sender.clone();
                prepared.line = Some(ReadyLine::new(pattern, move || {
                    sender.send(LoopMessage::ReadyLine(run));
                }));
            }
        }
        Ok(prepared)
    }

    /// The process of a run was created, with the read end of the pipe for its descriptor.
    pub(super) fn started(
        &mut self,
        run: RunId,
        socket: Option<NotifySocket>,
        pipe: Option<OwnedFd>,
        hidden: Option<HiddenValues>,
    ) {
        let pipe = pipe.map(|pipe| Kind::Pipe { pipe, ready: false });
        if let Some(kind) = socket.map(|socket| Kind::Socket { socket, hidden }).or(pipe) {
            self.sources
                .insert(run, Source { kind, window: None, messages: 0, foreign: 0, paused_until: None });
        }
    }

    /// The process of a run is gone, or is not known any more.
    pub(crate) fn ended(&mut self, run: RunId) {
        self.sources.remove(&run);
    }

    /// Adds the descriptors to poll, as the last ones of the list.
    pub(crate) fn add_poll_fds(&self, fds: &mut Vec<PollFd>) {
        fds.extend(self.polled().map(|(_, fd)| sys::poll_fd(fd, sys::POLLIN)));
    }

    fn polled(&self) -> impl DoubleEndedIterator<Item = (RunId, RawFd)> {
        let awake = self.sources.iter().filter(|(_, source)| source.paused_until.is_none());
        awake.map(|(run, source)| (*run, source.kind.fd()))
    }

    /// The runs that have reported something. No source has been added or removed since the list was made.
    pub(crate) fn ready(&self, fds: &[PollFd]) -> Vec<RunId> {
        let last = self.polled().rev().zip(fds.iter().rev());
        last.filter(|((_, fd), polled)| polled.fd == *fd && polled.revents != 0)
            .map(|((run, _), _)| run)
            .collect()
    }

    /// When the next paused source is read again.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.sources.values().filter_map(|source| source.paused_until).min()
    }

    /// Ends the pauses that are over.
    pub(crate) fn resume(&mut self) {
        if self.next_due().is_some() {
            let now = Instant::now();
            for source in self.sources.values_mut() {
                source.paused_until = source.paused_until.filter(|until| *until > now);
            }
        }
    }

    /// Reads what a process has reported, within the limit of the current window.
    pub(crate) fn read(&mut self, run: RunId) -> Vec<Input> {
        let Some(source) = self.sources.get_mut(&run) else { return Vec::new() };
        let now = Instant::now();
        let window = *source.window.get_or_insert(now);
        let window = if now.duration_since(window) < WINDOW {
            window
        } else {
            (source.messages, source.foreign) = (0, 0);
            now
        };
        source.window = Some(window);
        let mut notices = Vec::new();
        while source.has_budget() {
            source.messages += 1;
            match source.kind.read() {
                Message::Notices(more) => notices.extend(more),
                Message::Foreign => {
                    (source.messages, source.foreign) = (source.messages - 1, source.foreign + 1)
                }
                Message::Nothing => break,
                Message::Later => source.messages = MAX_MESSAGES,
                Message::End => {
                    self.sources.remove(&run);
                    break;
                }
            }
        }
        if let Some(source) = self.sources.get_mut(&run) {
            source.paused_until = (!source.has_budget()).then(|| window + WINDOW);
        }
        notices.into_iter().map(|notice| Input::Notified { run, notice }).collect()
    }
}

impl Prepared {
    /// What is kept for the process once it was created.
    pub(super) fn take_socket(&mut self) -> Option<NotifySocket> {
        self.socket.take()
    }
}

impl Source {
    /// Whether more may be read in the current window.
    fn has_budget(&self) -> bool {
        self.messages < MAX_MESSAGES && self.foreign < MAX_FOREIGN
    }
}

/// The result of one reading.
#[derive(Debug)]
enum Message {
    Notices(Vec<Notice>),
    /// It was sent by another user.
    Foreign,
    /// There is none now.
    Nothing,
    /// There is none in the current window.
    Later,
    /// There will be none.
    End,
}

impl Kind {
    fn fd(&self) -> RawFd {
        match self {
            Self::Socket { socket, .. } => socket.as_fd().as_raw_fd(),
            Self::Pipe { pipe, .. } => pipe.as_raw_fd(),
        }
    }

    /// Reads one message.
    fn read(&mut self) -> Message {
        match self {
            Self::Socket { socket, hidden } => match socket.receive() {
                Ok(Received::Foreign) => Message::Foreign,
                Ok(Received::Dropping) => Message::Later,
                Ok(Received::TooLong) => Message::Notices(Vec::new()),
                Ok(Received::Message(text)) => {
                    let text = match hidden.as_ref().and_then(HiddenValues::get) {
                        Some(patterns) => Redactor::new(patterns).all(&text),
                        None => text,
                    };
                    Message::Notices(Notice::parse(&text).take(MAX_NOTICES).collect())
                }
                Err(_) => Message::Nothing,
            },
            // A newline is the message. What follows is read and dropped: the process must neither wait nor get
            // SIGPIPE.
            Self::Pipe { pipe, ready } => {
                let mut buffer = [0; MAX_BYTES];
                match sys::read(pipe.as_fd(), &mut buffer) {
                    Ok(0) => Message::End,
                    Ok(count) => {
                        let newline = buffer.get(..count).is_some_and(|bytes| bytes.contains(&b'\n'));
                        let first = newline && !std::mem::replace(ready, *ready || newline);
                        Message::Notices(first.then_some(Notice::Ready).into_iter().collect())
                    }
                    Err(_) => Message::Nothing,
                }
            }
        }
    }
}

fn no_socket(error: &io::Error) -> StartError {
    let message = format!("cannot open its NOTIFY_SOCKET: {}", describe(error));
    StartError { kind: StartErrorKind::NoResources, message }
}

impl<D: Decider> Runtime<D> {
    /// Passes on what processes have reported about themselves.
    pub(super) fn handle_notices(&mut self, ready: &[RunId]) -> ControlFlow<Exit> {
        for run in ready {
            self.handle_notices_of(*run)?;
        }
        ControlFlow::Continue(())
    }

    /// The same for one run, also the last time before its exit.
    pub(super) fn handle_notices_of(&mut self, run: RunId) -> ControlFlow<Exit> {
        for input in self.executor.notices.read(run) {
            self.handle(input)?;
        }
        ControlFlow::Continue(())
    }
}
