//! The file of the recording (B2). A thread of its own writes it: a file system that does not answer holds up nothing
//! else.
//!
//! The file begins with a block, and has only whole chunks: what was written in part is cut off before the next one. When
//! a chunk is lost, those after it cannot be played, so the file goes on with the next block, which the recorder begins
//! soon.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Instant;

use containerpilot_core::plan::{Level, LogFile};
use containerpilot_process::error_text::describe;
use containerpilot_process::paths::FolderEntry;
use containerpilot_recording::Chunk;
use nix::fcntl::OFlag;

use crate::messages::{LoopMessage, LoopSender};
use crate::rotation;

/// So many writes may wait for the thread. They are at least a second apart, and have a few KiB each.
const MAX_WAITING: usize = 16;
const STACK_BYTES: usize = 128 << 10;

/// The thread that writes the file.
#[derive(Debug)]
pub(super) struct RecordingFile {
    chunks: SyncSender<Vec<Chunk>>,
    /// Set by the thread when a chunk could not be written.
    lost: Arc<AtomicBool>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

impl RecordingFile {
    /// Starts the thread. Returns a warning if that is not possible.
    pub(super) fn start(settings: LogFile, header: Vec<u8>, log: LoopSender) -> Result<Self, String> {
        let (chunks, waiting) = mpsc::sync_channel(MAX_WAITING);
        let (end, ended) = mpsc::channel();
        let lost = Arc::new(AtomicBool::new(false));
        let path = settings.path.clone();
        let writer = Writer { settings, header, log, lost: Arc::clone(&lost), open: None, failed: false };
        let thread = std::thread::Builder::new().name("recording".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            writer.run(&waiting);
            drop(end);
        });
        match started {
            Ok(_) => Ok(Self { chunks, lost, ended }),
            Err(error) => Err(format!("cannot write the recording to {path}: {}", describe(&error))),
        }
    }

    /// Passes chunks to the thread. Returns false if some were lost: the file goes on with a new block.
    pub(super) fn write(&mut self, chunks: Vec<Chunk>) -> bool {
        let lost = self.lost.swap(false, Ordering::Relaxed);
        let sent = chunks.is_empty() || self.chunks.try_send(chunks).is_ok();
        sent && !lost
    }

    /// No chunks follow.
    pub(super) fn end(self) -> EndingFile {
        EndingFile(self.ended)
    }
}

/// The thread of a file that writes its last chunks.
#[derive(Debug)]
pub(crate) struct EndingFile(Receiver<()>);

impl EndingFile {
    /// Waits until everything is written, at most until then.
    pub(crate) fn wait(self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        let _: Result<(), RecvTimeoutError> = self.0.recv_timeout(left);
    }
}

/// The thread's part.
struct Writer {
    settings: LogFile,
    header: Vec<u8>,
    log: LoopSender,
    lost: Arc<AtomicBool>,
    /// `None` before the first block, and after an error until the next one.
    open: Option<(File, u64)>,
    /// Whether the last write has failed.
    failed: bool,
}

impl Writer {
    fn run(mut self, waiting: &Receiver<Vec<Chunk>>) {
        while let Ok(chunks) = waiting.recv() {
            for chunk in chunks {
                match self.write(&chunk) {
                    Ok(true) => self.report(None),
                    // It cannot be played without those before it.
                    Ok(false) => {}
                    Err(error) => self.report(Some(&error)),
                }
            }
        }
    }

    /// Writes a chunk. Returns false if it continues a block that the file does not have.
    fn write(&mut self, chunk: &Chunk) -> io::Result<bool> {
        if chunk.begins {
            self.begin_block(chunk)?;
        }
        let Some((file, size)) = &mut self.open else { return Ok(false) };
        let written = file.write_all(&chunk.bytes);
        if written.is_ok() {
            *size += chunk.bytes.len() as u64;
        } else {
            // If this fails as well, the end is torn, and a reader notices.
            let _ = file.set_len(*size);
            self.open = None;
        }
        written.map(|()| true)
    }

    /// Opens a new file for the first block, after an error, and when the present one is full.
    fn begin_block(&mut self, chunk: &Chunk) -> io::Result<()> {
        let largest = self.settings.max_size.map_or(u64::MAX, u64::from);
        if self.open.as_ref().is_some_and(|(_, size)| size + chunk.bytes.len() as u64 <= largest) {
            return Ok(());
        }
        self.open = None;
        let entry = FolderEntry::of(Path::new(&self.settings.path), true)?;
        rotation::make_room(&entry, self.settings.keep)?;
        let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_EXCL;
        let mut file = rotation::open(&entry, flags, 0o600)?;
        file.write_all(&self.header)?;
        self.open = Some((file, self.header.len() as u64));
        Ok(())
    }

    /// Logs the first of several errors, and that it works again.
    fn report(&mut self, error: Option<&io::Error>) {
        let path = &self.settings.path;
        let message = match error {
            Some(error) => {
                self.lost.store(true, Ordering::Relaxed);
                (!self.failed).then(|| {
                    let why = describe(error);
                    format!("cannot write the recording to {path}: {why}; the memory still has it")
                })
            }
            None => self.failed.then(|| format!("writing the recording to {path} works again")),
        };
        self.failed = error.is_some();
        if let Some(message) = message {
            self.log.send(LoopMessage::Log(Level::Warn, message));
        }
    }
}
