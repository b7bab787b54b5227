//! The log files of jobs (L8). Each has a channel with a thread of its own: a file system that does not answer holds up
//! the output of this job, and nothing else.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Instant, SystemTime};

use containerpilot_core::SortedMap;
use containerpilot_core::plan::{Format, JobLogging, LogFile};
use containerpilot_process::sys::Waker;

use super::channel::Channel;
use super::log_thread::LogWorker;
use super::output::LogSink;
use super::queue::{LastLines, LogQueue, Work};
use super::writer::LogWriter;
use super::{Reporter, Shared};

/// The files of all jobs.
#[derive(Debug)]
pub(super) struct JobFiles(Mutex<Files>);

#[derive(Debug)]
struct Files {
    format: Format,
    /// By job.
    open: BTreeMap<String, (LogFile, Arc<Channel>)>,
    /// Those that get no new run. Their threads end with the last pipe, and own them until then.
    retired: Vec<Weak<Channel>>,
    /// Where the running processes with a file write to, by pid.
    runs: SortedMap<u32, (String, Arc<Channel>)>,
    /// The last exited process of each job, until an entry asks for its last lines.
    exited: BTreeMap<String, (u32, LastLines)>,
}

impl JobFiles {
    pub(super) fn new(format: Format) -> Self {
        Self(Mutex::new(Files {
            format,
            open: BTreeMap::new(),
            retired: Vec::new(),
            runs: SortedMap::new(),
            exited: BTreeMap::new(),
        }))
    }

    /// Only the event loop uses it.
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The channel of a job's file, for a new process. `log` gets the messages about the file.
    pub(super) fn attach(
        &self,
        job: &str,
        pid: u32,
        file: &LogFile,
        log: &Arc<Shared>,
    ) -> io::Result<Arc<Channel>> {
        let mut files = self.lock();
        let channel = match files.open.get(job) {
            Some((_, channel)) => Arc::clone(channel),
            None => {
                let channel = Arc::new(open(job, file, files.format, log)?);
                channel.start()?;
                files.open.insert(job.to_owned(), (file.clone(), Arc::clone(&channel)));
                channel
            }
        };
        files.runs.insert(pid, (job.to_owned(), Arc::clone(&channel)));
        Ok(channel)
    }

    /// A process has exited. Returns false if it has no file.
    pub(super) fn exited(&self, pid: u32) -> bool {
        let mut files = self.lock();
        let Some((job, channel)) = files.runs.remove(&pid) else { return false };
        let (sender, lines) = mpsc::channel();
        files.exited.insert(job, (pid, LastLines { lines, stuck: Arc::clone(&channel.stuck) }));
        channel.push_work(Work::Exited(pid, SystemTime::now(), Some(sender)));
        true
    }

    /// The last lines of an exited process. `None` if it has no file.
    pub(super) fn last_lines(&self, job: Option<&str>, pid: u32) -> Option<LastLines> {
        let mut files = self.lock();
        files.exited.get(job?).filter(|(of, _)| *of == pid)?;
        files.exited.remove(job?).map(|(_, lines)| lines)
    }

    /// The `logging` of a job has changed (R5). Returns false if its lines are not in a file.
    pub(super) fn adjust(&self, job: &str, logging: &JobLogging) -> bool {
        let mut files = self.lock();
        let format = files.format;
        let Some((present, channel)) = files.open.get_mut(job) else { return false };
        let channel = Arc::clone(channel);
        channel.push_work(Work::Adjust(job.to_owned(), logging.clone()));
        match &logging.file {
            Some(file) if present != file => {
                present.clone_from(file);
                channel.push_work(Work::ConfigureFile(file.clone(), format));
            }
            Some(_) => {}
            None => files.retire(job),
        }
        true
    }

    /// A job was removed.
    pub(super) fn forget(&self, job: &str) {
        let mut files = self.lock();
        files.retire(job);
        files.exited.remove(job);
    }

    /// Changes the format of all files.
    pub(super) fn set_format(&self, format: Format) {
        let mut files = self.lock();
        files.format = format;
        for (file, channel) in files.open.values() {
            channel.push_work(Work::ConfigureFile(file.clone(), format));
        }
    }

    /// Opens all files again.
    pub(super) fn reopen(&self) {
        for channel in self.lock().all() {
            channel.push_work(Work::Reopen);
        }
    }

    /// Has all files finished. Returns their channels, to wait for.
    pub(super) fn finish(&self, deadline: Instant) -> Vec<Arc<Channel>> {
        let channels: Vec<_> = self.lock().all().collect();
        for channel in &channels {
            channel.push_work(Work::Finish(deadline, None));
        }
        channels
    }
}

impl Files {
    fn all(&self) -> impl Iterator<Item = Arc<Channel>> {
        let open = self.open.values().map(|(_, channel)| Arc::clone(channel));
        open.chain(self.retired.iter().filter_map(Weak::upgrade))
    }

    fn retire(&mut self, job: &str) {
        self.retired.retain(|channel| channel.strong_count() > 0);
        if let Some((_, channel)) = self.open.remove(job) {
            self.retired.push(Arc::downgrade(&channel));
            let own = Arc::clone(&channel);
            channel.push_work(Work::Retire(own));
        }
    }
}

fn open(job: &str, file: &LogFile, format: Format, log: &Arc<Shared>) -> io::Result<Channel> {
    let shared = Arc::new(Shared {
        queue: LogQueue::new(Waker::new()?),
        level: Arc::clone(&log.level),
        tails: Arc::clone(&log.tails),
        lost: Arc::clone(&log.lost),
        tap: Arc::clone(&log.tap),
    });
    let reporter = Reporter { log: Arc::clone(log), job: job.into() };
    let writer = LogWriter::for_job(LogSink::job_file(file.clone()), format, reporter.clone());
    Ok(Channel::new(LogWorker::new(shared, writer, Some(reporter))?))
}
