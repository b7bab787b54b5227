//! A recording of a core, and what the core did: a replay must do the same (B4), also of a part of the recording, and
//! of one without secrets (B1).

use std::hash::{DefaultHasher, Hash, Hasher};

use containerpilot_core::redaction::Redactor;
use containerpilot_core::rng::mix;
use containerpilot_core::{Core, Effect, Input, Time};
use containerpilot_recording::{ReadError, Recording, Replay, StepRecorder};

/// How many steps a chunk of the file has.
const STEPS_OF_A_CHUNK: usize = 7;

/// How a step is made.
pub type MakeStep = fn(&mut Core, Time, Input, &mut Vec<Effect>);

/// The recording of a core.
#[derive(Debug)]
pub struct Tape {
    recorder: StepRecorder,
    /// Records the same steps without secrets.
    redacting: StepRecorder,
    /// What a file has of the recording.
    file: Vec<u8>,
    is_full: bool,
    /// The time, the input, the effects, and the next deadline of each step, as a hash.
    steps: Vec<u64>,
    /// The same without texts.
    kinds: Vec<u64>,
    time: Time,
    input: u64,
}

impl Tape {
    /// With so many bytes of memory.
    #[must_use]
    pub fn new(memory: usize) -> Self {
        let version = || env!("CARGO_PKG_VERSION").to_owned();
        let redactor = Redactor::new(|text| hash(&("key", text)));
        let mut recorder = StepRecorder::new(memory, version(), Redactor::open());
        recorder.begin_file();
        Self {
            file: recorder.header(),
            recorder,
            redacting: StepRecorder::new(memory, version(), redactor),
            is_full: false,
            steps: Vec::new(),
            kinds: Vec::new(),
            time: Time::ZERO,
            input: 0,
        }
    }

    pub(crate) fn before_step(&mut self, core: &Core, now: Time, input: &Input) {
        // The state of a large plan does not fit into a small memory. Then the whole recording is empty.
        let recorders = [&mut self.recorder, &mut self.redacting];
        let unix = || now.as_nanos() / 1_000_000;
        self.is_full = self.is_full
            || recorders.into_iter().any(|recorder| recorder.before_step(core, now, unix, input).is_err());
        (self.time, self.input) = (now, hash(input));
    }

    pub(crate) fn after_step(&mut self, core: &Core, effects: &[Effect]) {
        self.recorder.after_step(effects);
        self.redacting.after_step(effects);
        self.steps.push(hash(&(self.time, self.input, effects, core.next_deadline())));
        self.kinds.push(hash(&(self.time, kinds(effects), core.next_deadline())));
        if self.steps.len().is_multiple_of(STEPS_OF_A_CHUNK) {
            self.file.extend(self.recorder.take_chunks().into_iter().flat_map(|chunk| chunk.bytes));
        }
    }

    /// Plays the recording and its file, and each again with an end that is cut off or broken.
    ///
    /// # Errors
    /// What is different.
    pub fn check(&self, step: MakeStep, seed: u64) -> Result<(), String> {
        if self.is_full {
            return Ok(());
        }
        self.play_redacted(step)?;
        let mut bytes = self.recorder.to_bytes();
        let played = self.play(step, &bytes)?;
        if !self.steps.ends_with(&played) {
            return Err(format!("the end of the recording is missing: {} steps", played.len()));
        }
        let random = usize::try_from(mix(seed)).unwrap_or(usize::MAX);
        let place = random % bytes.len();
        self.play(step, &bytes[..place])?;
        // A file has everything, and less after a kill.
        let mut file = self.file.clone();
        file.extend(self.recorder.clone().take_chunks().into_iter().flat_map(|chunk| chunk.bytes));
        if self.play(step, &file)? != self.steps {
            return Err("the file does not have all steps".to_owned());
        }
        self.play(step, &file[..random % file.len()])?;
        bytes[place] ^= 1 << (seed % 8);
        // In the header, this may be a file of another program or version.
        self.play(step, &bytes).map(drop)
    }

    /// Plays the recording without secrets.
    fn play_redacted(&self, make: MakeStep) -> Result<(), String> {
        let bytes = self.redacting.to_bytes();
        let recording = Recording::read(&bytes).map_err(|error| error.to_string())?;
        let (mut replay, mut played) = (Replay::new(&recording), Vec::new());
        while let Some(step) = replay.next(make).map_err(|error| format!("without secrets: {error}"))? {
            let deadline = replay.core().and_then(Core::next_deadline);
            played.push(hash(&(step.now, kinds(&step.effects), deadline)));
        }
        if self.kinds.ends_with(&played) {
            return Ok(());
        }
        Err(format!("{} steps are others without secrets", played.len()))
    }

    /// Plays the recording. What is played must be steps that were made, in their order, from the oldest that was kept.
    fn play(&self, make: MakeStep, bytes: &[u8]) -> Result<Vec<u64>, String> {
        let recording = match Recording::read(bytes) {
            Ok(recording) => recording,
            Err(ReadError::Foreign | ReadError::Header | ReadError::Format(_) | ReadError::Empty) => {
                return Ok(Vec::new());
            }
        };
        let (mut replay, mut played) = (Replay::with_secrets(&recording), Vec::new());
        while let Some(step) = replay.next(make).map_err(|error| error.to_string())? {
            let deadline = replay.core().and_then(Core::next_deadline);
            played.push(hash(&(step.now, hash(&step.input), step.effects.as_slice(), deadline)));
        }
        if played.is_empty() || self.steps.windows(played.len()).any(|steps| steps == played) {
            return Ok(played);
        }
        Err(format!("none of the steps that were made are the {} of the recording", played.len()))
    }
}

/// The effects without their texts.
fn kinds(effects: &[Effect]) -> Vec<String> {
    let kind = |effect: &Effect| match effect {
        Effect::Spawn { job, run, environment } => {
            format!("spawn {job:?} {run:?} {}", environment.iter().count())
        }
        Effect::RunCheck { job, check, run, .. } => format!("check {job:?} {check:?} {run:?}"),
        Effect::RunDrain { job, run, .. } => format!("drain {job:?} {run:?}"),
        Effect::RenderFile { file, render, .. } => format!("render {file:?} {render:?}"),
        Effect::TestFile { file, render, run, .. } => format!("test {file:?} {render:?} {run:?}"),
        Effect::PlanReplaced { moves, .. } => format!("plan {moves:?}"),
        Effect::Reply { id, reply } => format!("reply {id:?} {:?}", std::mem::discriminant(reply)),
        Effect::Log(entry) => format!("log {:?} {:?} {:?}", entry.level, entry.job, entry.fields.event),
        Effect::Exit(exit) => format!("exit {} {:?}", exit.code, exit.deadlines),
        other => format!("{other:?}"),
    };
    effects.iter().map(kind).collect()
}

/// A hash of what a value shows of itself: effects contain whole plans.
fn hash(value: &impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    hasher.finish()
}
