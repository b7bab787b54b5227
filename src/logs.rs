//! A stand-in for the logs until `src/logs/` is here: the same calls, plain lines on standard output.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use containerpilot_core::plan::Level;

use crate::sys::{self, Waker};

/// Whose output it is.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The job.
    pub(crate) job: String,
    /// The process.
    pub(crate) pid: i32,
    /// The check, if it is one's.
    pub(crate) check: Option<String>,
}

enum Message {
    Line(String),
    Attach([OwnedFd; 2], Arc<Source>),
    Finish(Sender<()>),
}

/// The logs.
pub(crate) struct Logs {
    sender: Sender<Message>,
    waker: Arc<Waker>,
}

impl Logs {
    /// Starts the thread that writes.
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let waker = Arc::new(Waker::new()?);
        let woken = Arc::clone(&waker);
        std::thread::Builder::new().name("logs".to_owned()).stack_size(128 * 1024).spawn(move || {
            write(&receiver, &woken);
        })?;
        Ok(Self { sender, waker })
    }

    /// Writes an entry of the supervisor's own.
    pub(crate) fn entry(&self, level: Level, job: Option<&str>, message: &str) {
        let line = match job {
            Some(job) => format!("{level:?} {job}: {message}\n"),
            None => format!("{level:?} {message}\n"),
        };
        self.send(Message::Line(line));
    }

    /// Writes every line of a process's output.
    pub(crate) fn attach(&self, stdout: OwnedFd, stderr: OwnedFd, source: Source) {
        self.send(Message::Attach([stdout, stderr], Arc::new(source)));
    }

    /// A process has ended; what it has written is still to come.
    pub(crate) fn run_ended(&self, _pid: i32) {}

    /// Writes what is left, at most until then.
    pub(crate) fn finish(&self, deadline: Instant) {
        let (done, finished) = mpsc::channel();
        self.send(Message::Finish(done));
        let _ = finished.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }

    fn send(&self, message: Message) {
        if self.sender.send(message).is_ok() {
            self.waker.wake();
        }
    }
}

struct Stream {
    pipe: std::fs::File,
    source: Arc<Source>,
    line: Vec<u8>,
}

fn write(receiver: &Receiver<Message>, waker: &Waker) {
    let mut streams: Vec<Stream> = Vec::new();
    loop {
        let waker_fd = waker.as_fd().as_raw_fd();
        let fds = std::iter::once(waker_fd).chain(streams.iter().map(|stream| stream.pipe.as_raw_fd()));
        let mut fds: Vec<sys::Awaited> = fds.map(|fd| sys::awaited(fd, sys::POLLIN)).collect();
        let _ = sys::poll(&mut fds, None);
        let mut place = 0;
        let ready: Vec<bool> = fds.iter().skip(1).map(|fd| fd.revents != 0).collect();
        streams.retain_mut(|stream| {
            place += 1;
            !ready.get(place - 1).is_some_and(|ready| *ready) || stream.forward()
        });
        waker.clear();
        let mut finish = Vec::new();
        for message in receiver.try_iter() {
            match message {
                Message::Line(line) => drop(io::stdout().write_all(line.as_bytes())),
                Message::Attach(pipes, source) => streams.extend(pipes.map(|pipe| Stream {
                    pipe: pipe.into(),
                    source: Arc::clone(&source),
                    line: Vec::new(),
                })),
                Message::Finish(done) => finish.push(done),
            }
        }
        if !finish.is_empty() {
            // What is there is read; whoever still holds a pipe open is not waited for.
            streams.retain_mut(|stream| {
                let mut fd = [sys::awaited(stream.pipe.as_raw_fd(), sys::POLLIN)];
                while sys::poll(&mut fd, Some(Duration::ZERO)).is_ok() && fd.iter().any(|fd| fd.revents != 0)
                {
                    if !stream.forward() {
                        return false;
                    }
                }
                true
            });
            let _ = io::stdout().flush();
            for done in finish {
                let _ = done.send(());
            }
        }
    }
}

impl Stream {
    /// Forwards what can be read. Says whether more may come.
    fn forward(&mut self) -> bool {
        let mut buffer = [0; 8192];
        let read = self.pipe.read(&mut buffer).unwrap_or(0);
        for byte in buffer.iter().take(read) {
            self.line.push(*byte);
            if *byte == b'\n' {
                self.put();
            }
        }
        if read == 0 && !self.line.is_empty() {
            self.line.push(b'\n');
            self.put();
        }
        read != 0
    }

    fn put(&mut self) {
        let Source { job, pid, check } = &*self.source;
        let check = check.as_ref().map(|check| format!("[{check}]")).unwrap_or_default();
        let mut line = format!("{job}{check} {pid} ").into_bytes();
        line.append(&mut self.line);
        let _ = io::stdout().write_all(&line);
    }
}
