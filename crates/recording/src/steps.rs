//! The steps of a core: how they are recorded, and how they are made again.

use containerpilot_core::redaction::Redactor;
use containerpilot_core::{Core, Effect, Input, Time};

use crate::digest::Digest;
use crate::ids::Ids;
use crate::{BlockReader, Chunk, Recorded, Recorder, Recording, TooLarge, Unreadable};

/// Records what a core is told.
#[derive(Clone, Debug)]
pub struct StepRecorder {
    recorder: Recorder,
    ids: Ids,
    redactor: Redactor,
    digest: Digest,
}

impl StepRecorder {
    /// With so many bytes of memory, for this version of the core. Nothing secret is in the recording (B1).
    #[must_use]
    pub fn new(memory: usize, version: String, redactor: Redactor) -> Self {
        let recorder = Recorder::new(memory, version);
        Self { recorder, ids: Ids::default(), redactor, digest: Digest::default() }
    }

    /// Records an input before the core gets it. `unix` tells the milliseconds since 1970.
    ///
    /// # Errors
    /// The state of the core does not fit into the memory. Every further step would write it again, only to find that
    /// out, so the recorder should not be used any more.
    pub fn before_step(
        &mut self,
        core: &Core,
        now: Time,
        unix: impl FnOnce() -> u64,
        input: &Input,
    ) -> Result<(), TooLarge> {
        if self.recorder.needs_checkpoint() {
            self.recorder.checkpoint((now.as_nanos(), unix()), &self.redactor.state(core))?;
            (self.ids, self.digest) = (Ids::default(), Digest::default());
        }
        let mut written = input.clone();
        self.ids.shorten(&mut written);
        let (expected, digest) = (expected(core, input), self.digest.take());
        self.recorder.input(now.as_nanos(), expected, digest, &self.redactor.input(&written));
        Ok(())
    }

    /// The core has decided this.
    pub fn after_step(&mut self, effects: &[Effect]) {
        self.digest.add(effects);
    }

    /// The core is not in the state that its inputs lead to: it has failed in the middle of a step.
    pub fn step_failed(&mut self) {
        self.recorder.begin_after_error();
    }

    /// The recording so far.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.recorder.to_bytes()
    }

    /// See [`Recorder::begin_file`].
    pub fn begin_file(&mut self) {
        self.recorder.begin_file();
    }

    /// See [`Recorder::end_file`].
    pub fn end_file(&mut self) {
        self.recorder.end_file();
    }

    /// See [`Recorder::take_chunks`].
    pub fn take_chunks(&mut self) -> Vec<Chunk> {
        self.recorder.take_chunks()
    }

    /// See [`Recorder::header`].
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        self.recorder.header()
    }
}

/// A deadline of the core is met within a few milliseconds, so that the distance from it is a small number.
fn expected(core: &Core, input: &Input) -> Option<u64> {
    matches!(input, Input::Tick).then(|| core.next_deadline()).flatten().map(Time::as_nanos)
}

/// Makes the steps of a recording again.
#[derive(Debug)]
pub struct Replay<'a> {
    recording: &'a Recording<'a>,
    /// The number of blocks that were begun.
    begun: usize,
    current: Option<Played<'a>>,
    has_secrets: bool,
}

#[derive(Debug)]
struct Played<'a> {
    block: BlockReader<'a>,
    core: Core,
    ids: Ids,
    digest: Digest,
    /// From the time of the core to the time of day: the milliseconds since 1970 at its zero.
    zero: i128,
    /// The time of the last step.
    last: Time,
}

/// A step that was made again.
#[derive(Debug)]
pub struct Step {
    /// When.
    pub now: Time,
    /// The same in milliseconds since 1970, as the system clock was then.
    pub unix: u64,
    /// What the core was told.
    pub input: Input,
    /// What it decided.
    pub effects: Vec<Effect>,
}

/// Why a recording cannot be played further.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A block says something impossible.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The core that has made the steps is not in the state that the next checkpoint has.
    #[error("after the steps until {}, the state is another one than the recording has", time(*at))]
    Differs {
        /// The time of the checkpoint.
        at: Time,
        /// The state that the steps led to.
        played: Box<Core>,
        /// The state in the recording.
        recorded: Box<Core>,
    },
    /// What was decided is something else: a digest of it is different.
    #[error(
        "until {}, the core decides something else than it did: a digest of it is {played:04x}, and {recorded:04x} in \
         the recording; the last step was at {}",
        time(*at), time(*last)
    )]
    Decides {
        /// The time of the first input after it.
        at: Time,
        /// The time of the last step that it is about.
        last: Time,
        /// The digest of what was decided now.
        played: u16,
        /// The digest in the recording.
        recorded: u16,
    },
}

fn time(time: Time) -> impl std::fmt::Display {
    containerpilot_core::time::fmt_duration(time.since(Time::ZERO))
}

impl<'a> Replay<'a> {
    /// From the oldest checkpoint.
    #[must_use]
    pub const fn new(recording: &'a Recording<'_>) -> Self {
        Self { recording, begun: 0, current: None, has_secrets: false }
    }

    /// Of a recording that has all texts as they are. They are compared, too.
    #[must_use]
    pub fn with_secrets(recording: &'a Recording<'_>) -> Self {
        Self { has_secrets: true, ..Self::new(recording) }
    }

    /// The core after the last step.
    #[must_use]
    pub fn core(&self) -> Option<&Core> {
        self.current.as_ref().map(|played| &played.core)
    }

    /// Makes the next step with `step`, which is [`Core::step`] unless a test looks between its parts. `None` at the end.
    ///
    /// # Errors
    /// The recording cannot be read, or the core does not do what it did.
    pub fn next(
        &mut self,
        step: impl FnOnce(&mut Core, Time, Input, &mut Vec<Effect>),
    ) -> Result<Option<Step>, ReplayError> {
        loop {
            if let Some(Played { block, core, ids, digest, zero, last }) = &mut self.current
                && let Some(Recorded { time, mut input, digest: recorded }) =
                    block.input(|input| expected(core, input))?
            {
                ids.restore(&mut input);
                let now = Time::from_nanos(time);
                let played = digest.take();
                if played != recorded {
                    let (played, recorded) = (played.unwrap_or_default(), recorded.unwrap_or_default());
                    return Err(ReplayError::Decides { at: now, last: *last, played, recorded });
                }
                let mut effects = Vec::new();
                step(core, now, input.clone(), &mut effects);
                digest.add(&effects);
                *last = now;
                let millis = i128::from(time / 1_000_000);
                if let Input::Clock { unix, .. } = &input {
                    // The clock was set, or the machine was asleep.
                    *zero = i128::try_from(unix.as_millis()).unwrap_or(i128::MAX).saturating_sub(millis);
                }
                let unix = u64::try_from(zero.saturating_add(millis)).unwrap_or_default();
                return Ok(Some(Step { now, unix, input, effects }));
            }
            let Some(mut block) = self.recording.block(self.begun) else { return Ok(None) };
            self.begun += 1;
            let recorded: Core = block.checkpoint()?;
            let start = block.start();
            let at = Time::from_nanos(start.time);
            let zero = i128::from(start.unix) - i128::from(start.time / 1_000_000);
            let (ids, digest) = (Ids::default(), Digest::default());
            let last = self.current.replace(Played { block, core: recorded, ids, digest, zero, last: at });
            if let (Some(last), Some(current)) = (last, &self.current)
                && start.follows
                && comparable(&last.core, self.has_secrets) != comparable(&current.core, self.has_secrets)
            {
                let recorded = Box::new(current.core.clone());
                return Err(ReplayError::Differs { at, played: Box::new(last.core), recorded });
            }
        }
    }
}

/// The state as bytes, to compare it. Where the core has said the reason itself, such as how long a check had time, the
/// recording has a hash of it and a replay has the words; so texts that may be hashes are not compared.
fn comparable(core: &Core, has_secrets: bool) -> Option<Vec<u8>> {
    if has_secrets {
        postcard::to_allocvec(core)
    } else {
        postcard::to_allocvec(&Redactor::hiding().state(core))
    }
    .ok()
}
