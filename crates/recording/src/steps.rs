//! The steps of a core: how they are recorded, and how they are made again.

use containerpilot_core::{Core, Effect, Input, Time};

use crate::ids::Ids;
use crate::{BlockReader, Recorder, Recording, TooLarge, Unreadable};

/// Records what a core is told.
#[derive(Clone, Debug)]
pub struct StepRecorder {
    recorder: Recorder,
    ids: Ids,
}

impl StepRecorder {
    /// With so many bytes of memory, for this version of the core.
    #[must_use]
    pub fn new(memory: usize, version: String) -> Self {
        Self { recorder: Recorder::new(memory, version), ids: Ids::default() }
    }

    /// Records an input before the core gets it.
    ///
    /// # Errors
    /// The state of the core does not fit into the memory. Every further step would write it again, only to find that
    /// out, so the recorder should not be used any more.
    pub fn before_step(&mut self, core: &Core, now: Time, input: &Input) -> Result<(), TooLarge> {
        if self.recorder.needs_checkpoint() {
            self.recorder.checkpoint(now.as_nanos(), core)?;
            self.ids = Ids::default();
        }
        let mut written = input.clone();
        self.ids.shorten(&mut written);
        self.recorder.input(now.as_nanos(), expected(core, input), &written);
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
        Self { blocks: recording.blocks().collect::<Vec<_>>().into_iter(), current: None }
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
                && plain(&last.core) != plain(&current.core)
            {
                let recorded = Box::new(current.core.clone());
                return Err(ReplayError::Differs { at, played: Box::new(last.core), recorded });
            }
        }
    }
}

/// The state as bytes, to compare it.
fn plain(core: &Core) -> Option<Vec<u8>> {
    postcard::to_allocvec(core).ok()
}
