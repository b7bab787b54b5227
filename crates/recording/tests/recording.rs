//! B1–B4: a recording is read as it was written, also when its oldest part was dropped, or its end is cut off or broken.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use containerpilot_recording::{
    DamageKind, ReadError, Recorded, Recorder, Recording, Replay, ReplayError, Unreadable,
};
use serde::{Deserialize, Serialize};

/// A state and inputs with the shapes of those of the core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    sum: u64,
    last: Option<String>,
    all: Vec<Input>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Input {
    Tick,
    Done { check: u64, result: Result<(), String> },
    Clock { unix: f64, letter: char },
    Bytes(Vec<u8>),
}

impl State {
    fn step(&mut self, time: u64, input: Input) {
        self.sum = self.sum.wrapping_mul(31).wrapping_add(time);
        if let Input::Done { result: Err(why), .. } = &input {
            self.last = Some(why.clone());
        }
        self.all.push(input);
        if self.all.len() > 20 {
            self.all.remove(0);
        }
    }

    /// A time that the reader can compute, too.
    fn deadline(&self, input: &Input) -> Option<u64> {
        (*input == Input::Tick).then_some(self.sum % 1_000_000_000_000)
    }
}

fn random(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed ^ seed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3
    }
}

fn input(next: &mut impl FnMut() -> u64) -> Input {
    match next() % 8 {
        0 => Input::Done { check: next(), result: Err(format!("exit code {}", next() % 200)) },
        1 => Input::Clock { unix: next() as f64 / 3.0, letter: 'ö' },
        2 => Input::Bytes((0..next() % 40).map(|byte| byte as u8).collect()),
        3 | 4 => Input::Tick,
        _ => Input::Done { check: next() % 3, result: Ok(()) },
    }
}

/// One in five inputs has a digest.
fn digest(time: u64) -> Option<u16> {
    u16::try_from(time % 5 * 8_000).ok().filter(|digest| *digest == 8_000)
}

/// Records random inputs. Returns the recording, and the state after each input with its time.
fn record(seed: u64, inputs: u64, memory: usize) -> (Recorder, Vec<(u64, State)>) {
    let mut next = random(seed);
    let (mut recorder, mut state, mut time) =
        (Recorder::new(memory, "1.2.3".to_owned()), State::default(), 0);
    let mut states = Vec::new();
    for _ in 0..inputs {
        time += if next().is_multiple_of(3) { next() % 5_000_000 } else { next() % 5 * 1_000_000 };
        let input = input(&mut next);
        if recorder.needs_checkpoint() {
            recorder.checkpoint((time, time / 1_000_000), &state).unwrap();
        }
        recorder.input(time, state.deadline(&input), digest(time), &input);
        state.step(time, input);
        states.push((time, state.clone()));
    }
    (recorder, states)
}

/// Plays a recording: the states after each input, and how it ends.
fn play(recording: &Recording<'_>) -> Result<Vec<(u64, State)>, Unreadable> {
    let mut states: Vec<(u64, State)> = Vec::new();
    for mut block in recording.blocks() {
        let mut state: State = block.checkpoint()?;
        if let Some((_, last)) = states.last() {
            assert_eq!(&state, last, "the checkpoint is the state that was reached");
        }
        assert_eq!(block.start().unix, block.start().time / 1_000_000);
        while let Some(read) = block.input(|input| state.deadline(input))? {
            let Recorded { time, input, digest: read } = read;
            assert_eq!(read, digest(time));
            state.step(time, input);
            states.push((time, state.clone()));
        }
    }
    Ok(states)
}

#[test]
fn b1_everything_is_read_again() {
    for seed in 0..50 {
        let (recorder, states) = record(seed, seed * 20, 1 << 20);
        let bytes = recorder.to_bytes();
        if states.is_empty() {
            assert_eq!(Recording::read(&bytes), Err(ReadError::Empty));
            continue;
        }
        let recording = Recording::read(&bytes).unwrap();
        assert_eq!((recording.version, recording.damage), ("1.2.3", None));
        assert_eq!(play(&recording).unwrap(), states);
    }
}

#[test]
fn b1_the_oldest_blocks_are_dropped_and_the_rest_can_be_played() {
    for seed in 0..4 {
        let memory = 80_000;
        let (recorder, states) = record(seed, 20_000, memory);
        assert!(recorder.size() <= memory, "{} bytes", recorder.size());
        let bytes = recorder.to_bytes();
        let played = play(&Recording::read(&bytes).unwrap()).unwrap();
        assert!(played.len() > 200, "{}", played.len());
        assert_eq!(played, states[states.len() - played.len()..]);
    }
}

/// B2: a file grows by chunks, and is torn at any place.
#[test]
fn b2_chunks_in_a_file_are_the_recording() {
    for seed in 0..5 {
        let mut next = random(seed);
        let mut recorder = Recorder::new(90_000, "1.2.3".to_owned());
        let (mut state, mut time, mut states) = (State::default(), 0, Vec::new());
        let mut file = recorder.header();
        for number in 0..2_000 {
            time += next() % 5 * 1_000_000;
            let input = input(&mut next);
            if number == 10 {
                recorder.begin_file();
                states.clear();
            }
            if recorder.needs_checkpoint() {
                recorder.checkpoint((time, time / 1_000_000), &state).unwrap();
            }
            recorder.input(time, state.deadline(&input), digest(time), &input);
            state.step(time, input);
            states.push((time, state.clone()));
            if next().is_multiple_of(50) {
                let chunks = recorder.take_chunks();
                assert!(recorder.take_chunks().is_empty(), "nothing is new");
                chunks.iter().for_each(|chunk| file.extend_from_slice(&chunk.bytes));
                if number >= 10 {
                    assert_eq!(play(&Recording::read(&file).unwrap()).unwrap(), states);
                    let torn = usize::try_from(next()).unwrap() % file.len();
                    if let Ok(recording) = Recording::read(&file[..torn]) {
                        let played = play(&recording).unwrap();
                        assert_eq!(played, states[..played.len()]);
                    }
                }
            }
        }
    }
}

/// After an internal error, the state is not the one that the inputs have led to.
#[test]
fn b4_a_block_says_whether_it_follows() {
    let mut recorder = Recorder::new(100_000, "1.2.3".to_owned());
    for time in 0..4 {
        if time == 2 {
            recorder.begin_after_error();
        }
        if recorder.needs_checkpoint() {
            recorder.checkpoint((time, 0), &State::default()).unwrap();
        }
        recorder.input(time, None, None, &Input::Tick);
    }
    let bytes = recorder.to_bytes();
    let recording = Recording::read(&bytes).unwrap();
    let blocks: Vec<_> =
        recording.blocks().map(|block| (block.start().time, block.start().follows)).collect();
    assert_eq!(blocks, [(0, true), (2, false)]);
}

#[test]
fn b3_a_torn_end_is_read_up_to_the_tear() {
    let (recorder, states) = record(7, 3_000, 90_000);
    let bytes = recorder.to_bytes();
    let whole = play(&Recording::read(&bytes).unwrap()).unwrap();
    let first = states.len() - whole.len();
    for length in (0..bytes.len()).step_by(97) {
        match Recording::read(&bytes[..length]) {
            Ok(recording) => {
                let played = play(&recording).unwrap();
                assert_eq!(played, states[first..first + played.len()]);
                let torn = recording.damage.map(|damage| damage.kind);
                assert!(torn == Some(DamageKind::Torn) || played.len() < whole.len());
            }
            Err(error) => assert!(matches!(error, ReadError::Foreign | ReadError::Header | ReadError::Empty)),
        }
    }
}

#[test]
fn b3_flipped_bits_are_noticed() {
    let (recorder, states) = record(8, 3_000, 90_000);
    let bytes = recorder.to_bytes();
    let header = b"CPREC\x001".len() + 2 + "1.2.3".len();
    let whole = play(&Recording::read(&bytes).unwrap()).unwrap();
    let first = states.len() - whole.len();
    for bit in (header * 8..bytes.len() * 8).step_by(101) {
        let mut broken = bytes.clone();
        broken[bit / 8] ^= 1 << (bit % 8);
        if let Ok(recording) = Recording::read(&broken) {
            assert!(recording.damage.is_some(), "bit {bit}");
            let played = play(&recording).unwrap();
            assert!(played.len() < whole.len());
            assert_eq!(played, states[first..first + played.len()]);
        }
    }
}

#[test]
fn b3_other_files_are_refused() {
    assert_eq!(Recording::read(b""), Err(ReadError::Foreign));
    assert_eq!(Recording::read(b"{ jobs: [] }"), Err(ReadError::Foreign));
    assert_eq!(Recording::read(b"CPREC\x00"), Err(ReadError::Header));
    assert_eq!(Recording::read(b"CPREC\x002..."), Err(ReadError::Format('2')));
    assert_eq!(Recording::read(b"CPREC\x001\x05\x00abc"), Err(ReadError::Header));
    assert_eq!(Recording::read(b"CPREC\x001\x03\x00abc"), Err(ReadError::Empty));
}

/// B3: the tables of all readers together would take 6 GB.
#[test]
fn b3_many_small_blocks_take_little_memory() {
    let mut recorder = Recorder::new(1 << 30, "1.2.3".to_owned());
    for time in 0..100_000 {
        recorder.checkpoint((time, 0), &77_u8).unwrap();
    }
    let bytes = recorder.to_bytes();
    let recording = Recording::read(&bytes).unwrap();
    assert_eq!(recording.blocks().count(), 100_000);
    let error = Replay::new(&recording).next(|_, _, _, _| ()).unwrap_err();
    assert!(matches!(error, ReplayError::Unreadable(Unreadable)), "{error}");
}

/// The content of a block with the right checksum may still be impossible.
#[test]
fn b3_content_that_makes_no_sense_is_an_error() {
    let mut recorder = Recorder::new(100_000, "1.2.3".to_owned());
    recorder.checkpoint((5, 0), &"not a state").unwrap();
    recorder.input(6, None, None, &77_u8);
    let bytes = recorder.to_bytes();
    let recording = Recording::read(&bytes).unwrap();
    assert_eq!(play(&recording), Err(Unreadable));
}

/// B1: a state that takes more than half of the memory is not recorded at all; others are dropped in time.
#[test]
fn b1_a_state_that_does_not_fit_is_refused() {
    let state: Vec<u64> = (0..2_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let mut recorder = Recorder::new(60_000, "1.2.3".to_owned());
    let error = recorder.checkpoint((0, 0), &state).unwrap_err();
    assert!((70_000..200_000).contains(&error.needed), "{error:?}");
    recorder.input(1, None, None, &Input::Tick);
    assert_eq!(Recording::read(&recorder.to_bytes()), Err(ReadError::Empty));
    let mut recorder = Recorder::new(error.needed, "1.2.3".to_owned());
    recorder.checkpoint((0, 0), &state).unwrap();
    for time in 0..50_000 {
        if recorder.needs_checkpoint() {
            recorder.checkpoint((time, time / 1_000_000), &state).unwrap();
        }
        recorder.input(time, None, None, &Input::Done { check: time * time, result: Ok(()) });
        assert!(recorder.size() <= error.needed);
    }
    let bytes = recorder.to_bytes();
    let left = Recording::read(&bytes).unwrap().blocks().map(|block| block.inputs_left()).sum::<u32>();
    assert!(left > 500, "{left}");
}

/// B1: ten jobs with checks every 10 s fit a day into the default of 256 KiB. The times are those of a quiet machine.
#[test]
fn b1_a_day_of_checks_fits() {
    #[derive(Serialize)]
    enum Short {
        Started { check: i64 },
        Done { check: i64, result: Result<(), String> },
        Tick,
    }
    let mut next = random(1);
    let mut recorder = Recorder::new(256 << 10, "1.2.3".to_owned());
    // Ten kilobytes of state, which compress to about half of it.
    let state: Vec<String> = (0..400).map(|n| format!("event {n} of job {}: healthy", n % 10)).collect();
    let day = 24 * 3_600 * 1_000;
    let mut due: Vec<u64> = (0..10).map(|_| next() % 10_000).collect();
    let mut inputs = 0;
    loop {
        due.sort_unstable();
        let at = due[0];
        if at > day {
            break;
        }
        due[0] = at + 10_000;
        let tick = at + u64::from(next().is_multiple_of(6));
        let started = tick + 1 + u64::from(next().is_multiple_of(4));
        let digest = inputs % 64 == 0;
        let done = started + 1 + next() % 3 + next() % 2 * (next() % 4);
        if recorder.needs_checkpoint() {
            recorder.checkpoint((tick * 1_000_000, tick), &state).unwrap();
        }
        recorder.input(tick * 1_000_000, Some(at * 1_000_000), None, &Short::Tick);
        recorder.input(started * 1_000_000, None, None, &Short::Started { check: 1 });
        recorder.input(
            done * 1_000_000,
            None,
            digest.then_some(77),
            &Short::Done { check: 0, result: Ok(()) },
        );
        inputs += 3;
    }
    let bytes = recorder.to_bytes();
    let read: u64 =
        Recording::read(&bytes).unwrap().blocks().map(|block| u64::from(block.inputs_left())).sum();
    println!("{} bytes for {inputs} inputs, of which {read} are left", bytes.len());
    assert_eq!(read, inputs, "nothing was dropped");
}
