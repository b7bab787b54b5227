//! The streams of exited processes: everything that was written is read (P4), within bounds.
//!
//! A process has exited when its own process has, but others may hold its pipes open: children that it left, or a
//! process that it passed them to. What they write is still read, until newer runs of the same job leave too many such
//! pipes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use containerpilot_core::inserted;

use super::super::LogSource;
use super::super::loss::Loss;
use super::super::stream::MAX_BUFFERED;
use super::{LogWorker, context, write_stderr};

/// How many streams of exited processes wait until the log can be written. Without a bound a job that restarts quickly
/// would use up all descriptors while the log is not read.
const MAX_UNREAD: usize = 256;
/// How many streams of exited processes of one job, or of one of its checks, are kept while others hold them open:
/// those of eight runs.
const MAX_LINGERING: usize = 16;

/// The streams of exited processes that other processes hold open, by job and check, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Lingering(BTreeMap<(String, Option<String>), VecDeque<u64>>);

impl Lingering {
    /// Adds a stream. Returns the oldest one of the same job and check if there are too many now.
    fn add(&mut self, number: u64, source: &LogSource) -> Option<u64> {
        let numbers = self.0.entry((source.job.clone(), source.check.clone())).or_default();
        if !numbers.contains(&number) {
            numbers.push_back(number);
        }
        if numbers.len() > MAX_LINGERING { numbers.pop_front() } else { None }
    }

    /// A stream was closed.
    pub(super) fn remove(&mut self, number: u64, source: &LogSource) {
        if self.0.is_empty() {
            return;
        }
        let key = (source.job.clone(), source.check.clone());
        if let Some(numbers) = self.0.get_mut(&key) {
            numbers.retain(|lingering| *lingering != number);
            if numbers.is_empty() {
                self.0.remove(&key);
            }
        }
    }
}

impl LogWorker {
    /// The process of a stream has exited: reads what is in the pipe.
    pub(super) fn process_exited(&mut self, number: u64, exited: SystemTime) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.begin_drain(exited, false);
        self.drain(number);
        self.limit_lingering(number);
    }

    /// Closes the oldest stream of a job if other processes hold too many open. What is in its pipe is read; a
    /// process that writes to it later gets SIGPIPE.
    fn limit_lingering(&mut self, number: u64) {
        let Some(stream) = self.streams.get(&number).filter(|stream| !stream.is_at_end()) else { return };
        let Some(oldest) = self.lingering.add(number, stream.source()) else { return };
        if let Some(stream) = self.streams.get_mut(&oldest) {
            stream.begin_drain(SystemTime::now(), true);
            self.drain(oldest);
        }
    }

    /// Reads what was in a pipe when the drain began. What a surviving process writes later is read, but not waited
    /// for.
    pub(super) fn drain(&mut self, number: u64) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let mut context = context(&mut self.writer, &mut self.buffered, &self.shared);
        while let Some(left) = stream.left_to_drain() {
            if left > 0 && context.writer.is_blocked() && *context.buffered > MAX_BUFFERED {
                // The streams hold too much: continued when the output accepts data.
                if !self.unread.contains(&number) {
                    self.unread.push_back(number);
                }
                return;
            }
            let Some(count @ 1..) = stream.read(&mut self.buffer) else { break };
            stream.feed(self.buffer.get(..count).unwrap_or_default(), &mut context);
            if left == 0 {
                break;
            }
        }
        stream.end_drain();
        self.update_stream(number);
    }

    /// Bounds the number of unread streams while the log is not read.
    pub(super) fn limit_unread(&mut self) {
        while self.unread.len() > MAX_UNREAD {
            let Some(number) = self.unread.pop_front() else { return };
            if let Some(mut stream) = self.streams.remove(&number) {
                let lost = stream.discard(&mut self.buffer, &mut self.buffered);
                self.lose(lost);
                self.lingering.remove(number, stream.source());
                self.dropped += 1;
            }
        }
    }

    /// The log is finished: everything that is in the pipes now is read as far as the output accepts it.
    pub(super) fn drain_all(&mut self, now: SystemTime) {
        let first: BTreeSet<u64> = inserted(self.unread.iter().copied());
        self.unread.extend(self.streams.keys().filter(|number| !first.contains(number)));
        self.streams.values_mut().for_each(|stream| stream.begin_drain(now, true));
    }

    /// S16: a job has ended, and its file cannot be written. Its lines are lost, with one entry.
    pub(super) fn give_up(&mut self) {
        let is_due = self.reporter.is_some() && self.processes.is_empty() && self.writer.is_failing();
        if !is_due || std::mem::replace(&mut self.gave_up, true) {
            return;
        }
        let mut lost = self.writer.discard();
        lost += self.discard_streams();
        self.shared.lost.fetch_add(lost.lines, Ordering::Relaxed);
        let file = self.writer.name();
        let message = format!("{lost} of {file} were lost: the job has ended, and they cannot be written");
        self.log_error(&message);
        if self.reporter.as_ref().is_some_and(|reporter| reporter.log.queue.is_finishing()) {
            write_stderr(&message);
        }
        let numbers: Vec<u64> = self.streams.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.update_stream(number));
    }

    /// Counts what could not be written.
    pub(super) fn discard_rest(&mut self) {
        self.lost += self.writer.unwritten();
        self.lost += self.shared.queue.drop_entries();
        let lost = self.discard_streams();
        self.lost += lost;
    }

    fn discard_streams(&mut self) -> Loss {
        let mut lost = Loss::default();
        let context = context(&mut self.writer, &mut self.buffered, &self.shared);
        let (gone, lowest) = (context.gone, context.lowest);
        for stream in self.streams.values_mut().filter(|stream| !stream.is_hidden(gone, lowest)) {
            lost += stream.discard(&mut self.buffer, &mut self.buffered);
        }
        lost
    }
}
