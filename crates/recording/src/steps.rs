//! The steps of a core: how they are recorded, and how they are made again.

use containerpilot_core::redaction::Redactor;
use containerpilot_core::{Core, Effect, Input, Time};

use crate::ids::Ids;
use crate::{BlockReader, Recorder, Recording, TooLarge, Unreadable};

/// Records what a core is told.
#[derive(Clone, Debug)]
pub struct StepRecorder {
    recorder: Recorder,
    ids: Ids,
    /// `None` records texts as they are.
    redactor: Option<Redactor>,
}

impl StepRecorder {
    /// With so many bytes of memory, for this version of the core. Nothing secret is in the recording (B1).
    #[must_use]
    pub fn new(memory: usize, version: String, redactor: Redactor) -> Self {
        Self { redactor: Some(redactor), ..Self::with_secrets(memory, version) }
    }

    /// The same with all texts as they are, for tests.
    #[must_use]
    pub fn with_secrets(memory: usize, version: String) -> Self {
        Self { recorder: Recorder::new(memory, version), ids: Ids::default(), redactor: None }
    }

    /// Records an input before the core gets it.
    ///
    /// # Errors
    /// The state of the core does not fit into the memory. Every further step would write it again, only to find that
    /// out, so the recorder should not be used any more.
    pub fn before_step(&mut self, core: &Core, now: Time, input: &Input) -> Result<(), TooLarge> {
        if self.recorder.needs_checkpoint() {
            match &mut self.redactor {
                Some(redactor) => self.recorder.checkpoint(now.as_nanos(), &redactor.state(core))?,
                None => self.recorder.checkpoint(now.as_nanos(), core)?,
            }
            self.ids = Ids::default();
        }
        let mut written = input.clone();
        self.ids.shorten(&mut written);
        let expected = expected(core, input);
        match &mut self.redactor {
            Some(redactor) => self.recorder.input(now.as_nanos(), expected, &redactor.input(&written)),
            None => self.recorder.input(now.as_nanos(), expected, &written),
        }
        Ok(())
    }

    /// The recording so far.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.recorder.to_bytes()
    }
}

/// A deadline of the core is met within a few milliseconds, so that the distance from it is a small number.
fn expected(core: &Core, input: &Input) -> Option<u64> {
    matches!(input, Input::Tick).then(|| core.next_deadline()).flatten().map(Time::as_nanos)
}

/// Makes the steps of a recording again.
#[derive(Debug)]
pub struct Replay<'a> {
    blocks: std::vec::IntoIter<BlockReader<'a>>,
    current: Option<Played<'a>>,
    has_secrets: bool,
}

#[derive(Debug)]
struct Played<'a> {
    block: BlockReader<'a>,
    core: Core,
    ids: Ids,
}

/// A step that was made again.
#[derive(Debug)]
pub struct Step {
    /// When.
    pub now: Time,
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
    #[error("after the steps until {}, the state is another one than the recording has", containerpilot_core::time::fmt_duration(.at.since(Time::ZERO)))]
    Differs {
        /// The time of the checkpoint.
        at: Time,
        /// The state that the steps led to.
        played: Box<Core>,
        /// The state in the recording.
        recorded: Box<Core>,
    },
}

impl<'a> Replay<'a> {
    /// From the oldest checkpoint.
    #[must_use]
    pub fn new(recording: &Recording<'a>) -> Self {
        let blocks = recording.blocks().collect::<Vec<_>>().into_iter();
        Self { blocks, current: None, has_secrets: false }
    }

    /// Of a recording that has all texts as they are. They are compared, too.
    #[must_use]
    pub fn with_secrets(recording: &Recording<'a>) -> Self {
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
            if let Some(Played { block, core, ids }) = &mut self.current
                && let Some((now, mut input)) = block.input(|input| expected(core, input))?
            {
                ids.restore(&mut input);
                let (now, mut effects) = (Time::from_nanos(now), Vec::new());
                step(core, now, input.clone(), &mut effects);
                return Ok(Some(Step { now, input, effects }));
            }
            let Some(mut block) = self.blocks.next() else { return Ok(None) };
            let recorded: Core = block.checkpoint()?;
            let at = Time::from_nanos(block.start());
            let last = self.current.replace(Played { block, core: recorded, ids: Ids::default() });
            if let (Some(last), Some(current)) = (last, &self.current)
                && comparable(&last.core, self.has_secrets) != comparable(&current.core, self.has_secrets)
            {
                let recorded = Box::new(current.core.clone());
                return Err(ReplayError::Differs { at, played: Box::new(last.core), recorded });
            }
        }
    }
}

/// The state as bytes, to compare it. What the core itself has said in place of a reason that it was told, such as how
/// long a check had time, is a hash only in the recording; so texts for which that may be are not compared.
fn comparable(core: &Core, has_secrets: bool) -> Option<Vec<u8>> {
    if has_secrets {
        postcard::to_allocvec(core)
    } else {
        postcard::to_allocvec(&Redactor::hiding().state(core))
    }
    .ok()
}
