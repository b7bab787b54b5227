//! The recording of what the core is told (B1), and its file (B2).

mod file;

use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::plan::{Level, LogFile, Record};
use containerpilot_core::{Core, Effect, Input, Time};
use containerpilot_recording::StepRecorder;

use self::file::{EndingFile, RecordingFile};
use crate::VERSION;
use crate::messages::{LoopMessage, LoopSender};
use crate::redactor::new_redactor;

/// What is recorded is in the file after this time.
const FLUSH_DELAY: Duration = Duration::from_secs(1);

/// Records what the core of this supervisor is told.
#[derive(Debug)]
pub(crate) struct LiveRecording {
    settings: Record,
    /// `None` if nothing is recorded.
    recorder: Option<StepRecorder>,
    file: Option<RecordingFile>,
    /// When the file gets what it does not have yet.
    flush_at: Option<Instant>,
    log: LoopSender,
}

impl LiveRecording {
    pub(crate) fn new(settings: &Record, log: LoopSender) -> Self {
        let settings = settings.clone();
        let mut this = Self { settings, recorder: None, file: None, flush_at: None, log };
        this.begin();
        this
    }

    /// Adopts the settings of a new plan.
    pub(crate) fn follow(&mut self, settings: &Record) {
        if self.settings != *settings {
            self.settings = settings.clone();
            self.flush();
            self.begin();
        }
    }

    fn begin(&mut self) {
        let memory = usize::try_from(self.settings.memory).unwrap_or(usize::MAX);
        self.recorder = if memory > 0 { self.new_recorder(memory) } else { None };
        self.flush_at = None;
        self.file = self.settings.file.clone().and_then(|file| self.open(file));
    }

    fn new_recorder(&self, memory: usize) -> Option<StepRecorder> {
        let redactor = new_redactor();
        if redactor.is_none() {
            self.warn("nothing is recorded: there are no random numbers to hide secrets with".to_owned());
        }
        redactor.map(|redactor| StepRecorder::new(memory, VERSION.to_owned(), redactor))
    }

    /// The thread of the file, which begins it with the next block.
    fn open(&mut self, settings: LogFile) -> Option<RecordingFile> {
        let recorder = self.recorder.as_mut()?;
        match RecordingFile::start(settings, recorder.header(), self.log.clone()) {
            Ok(file) => {
                recorder.begin_file();
                Some(file)
            }
            Err(warning) => {
                self.warn(warning);
                None
            }
        }
    }

    fn warn(&self, message: String) {
        self.log.send(LoopMessage::Log(Level::Warn, message));
    }

    /// Records an input before the core gets it.
    pub(crate) fn before_step(&mut self, core: &Core, now: Time, input: &Input) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Err(too_large) = recorder.before_step(core, now, unix_milliseconds, input) {
            let (needed, memory) = (too_large.needed.div_ceil(1024), self.settings.memory / 1024);
            let message = format!(
                "nothing is recorded: the state alone needs {needed} KiB, and `record.memory` is {memory} KiB; make it \
                 larger, or 0"
            );
            self.warn(message);
            self.give_up();
        } else if self.file.is_some() && self.flush_at.is_none() {
            self.flush_at = Some(Instant::now() + FLUSH_DELAY);
        }
    }

    /// The core has decided this.
    pub(crate) fn after_step(&mut self, effects: &[Effect]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.after_step(effects);
        }
    }

    /// The core has panicked in a step.
    pub(crate) fn step_failed(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.step_failed();
        }
    }

    /// Nothing more is recorded.
    pub(crate) fn give_up(&mut self) {
        (self.recorder, self.file, self.flush_at) = (None, None, None);
    }

    /// When [`LiveRecording::flush`] is due.
    pub(crate) fn flush_at(&self) -> Option<Instant> {
        self.flush_at
    }

    /// Passes what was recorded to the file.
    pub(crate) fn flush(&mut self) {
        self.flush_at = None;
        let (Some(recorder), Some(file)) = (&mut self.recorder, &mut self.file) else { return };
        if !file.write(recorder.take_chunks()) {
            // It continues with a new block.
            recorder.begin_file();
        }
    }

    /// The recording so far; `None` if nothing is recorded.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        self.recorder.as_ref().map(StepRecorder::to_bytes)
    }

    /// Passes the end of the recording to the file. The result waits until it is written.
    pub(crate) fn end(mut self) -> Option<EndingFile> {
        self.flush();
        self.file.map(RecordingFile::end)
    }
}

/// The time of day. A clock before 1970 counts as 1970.
fn unix_milliseconds() -> u64 {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(unix.as_millis()).unwrap_or(u64::MAX)
}
