//! B1: nothing secret is in a recording, and it can be played.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use containerpilot_core::answer::Answer;
use containerpilot_core::ids::{JobIx, RunId, WatchIx};
use containerpilot_core::input::{ExitStatus, Remains, StartError, StartErrorKind};
use containerpilot_core::plan::{Plan, Restarts, Watch, WatchKind, Word};
use containerpilot_core::redaction::Redactor;
use containerpilot_core::rng::Rng;
use containerpilot_core::{Core, Effect, Input, Phase, Request, RequestId, Time};
use containerpilot_recording::{Recording, Replay, StepRecorder};

/// How long a part of a secret is that must not be found.
const PART: usize = 6;

fn secret(rng: &mut Rng, made: &mut Vec<String>) -> String {
    let letters = (0..16).map(|_| char::from(b'A' + u8::try_from(rng.below(26)).unwrap()));
    let secret: String = letters.collect();
    made.push(secret.clone());
    secret
}

fn plan(rng: &mut Rng, made: &mut Vec<String>) -> Plan {
    let arguments = vec![Word::from(format!("--password={}", secret(rng, made)))];
    let mut plan = Plan::single_program("app".into(), arguments);
    plan.jobs[0].restarts = Restarts::Unlimited;
    plan.jobs[0].process.env = [("TOKEN".to_owned(), secret(rng, made))].into();
    plan.jobs[0].process.shared_env = [("KEY".to_owned(), secret(rng, made))]
        .into_iter()
        .collect::<std::collections::BTreeMap<_, _>>()
        .into();
    let kind = WatchKind::Key { key: "db/password".into(), dc: None };
    plan.watches = vec![Watch { name: "password".into(), interval: Duration::from_secs(1), kind }];
    plan
}

/// One of the inputs that have texts.
fn input(rng: &mut Rng, made: &mut Vec<String>, runs: &mut Vec<(RunId, bool)>) -> Input {
    match rng.below(8) {
        0 => Input::Watched {
            watch: WatchIx(0),
            answer: Ok(Answer::Value(secret(rng, made).into_bytes().into())),
        },
        1 => Input::Watched { watch: WatchIx(0), answer: Err(format!("dial {}", secret(rng, made))) },
        2 => {
            let variables = vec![("PASSWORD".to_owned(), Some(secret(rng, made)))];
            Input::Request { id: RequestId(1), request: Request::SetVariables(variables) }
        }
        3 if rng.percent(5) => {
            Input::Request { id: RequestId(2), request: Request::Reload(Box::new(plan(rng, made))) }
        }
        4 => Input::Request { id: RequestId(3), request: Request::Restart(JobIx(0)) },
        _ => match runs.pop() {
            None => Input::Tick,
            Some((run, false)) if rng.percent(30) => {
                let message = format!("app: {}", secret(rng, made));
                Input::StartFailed { run, why: StartError { kind: StartErrorKind::Other, message } }
            }
            Some((run, false)) => {
                runs.push((run, true));
                Input::Started { run, pid: 7 }
            }
            Some((run, true)) => {
                let remains = Remains::Group(format!("{} (8)", secret(rng, made)));
                Input::Exited { run, status: ExitStatus::Code(1), remains }
            }
        },
    }
}

#[test]
fn b1_a_recording_has_no_part_of_a_secret_and_can_be_played() {
    let (mut rng, mut made, mut runs) = (Rng::from_seed(1), Vec::new(), Vec::new());
    let mut core = Core::new(plan(&mut rng, &mut made));
    let redactor = Redactor::new(|bytes| {
        let mut hasher = DefaultHasher::new();
        ("the key", bytes).hash(&mut hasher);
        hasher.finish()
    });
    let mut recorder = StepRecorder::new(400_000, "1.2.3".to_owned(), redactor);
    let (mut now, mut kinds) = (Time::ZERO, Vec::new());
    for step in 0..30_000 {
        now = Time::from_nanos(now.as_nanos() + rng.below(40) * 1_000_000);
        let input = if step == 0 { Input::Ready } else { input(&mut rng, &mut made, &mut runs) };
        recorder.before_step(&core, now, || 0, &input).unwrap();
        let mut effects = Vec::new();
        core.step(now, input, &mut effects);
        recorder.after_step(&effects);
        for effect in &effects {
            match effect {
                Effect::Spawn { run, .. } => runs = vec![(*run, false)],
                Effect::CancelStart { run } | Effect::Abandon { run } => {
                    runs.retain(|(other, _)| other != run)
                }
                _ => {}
            }
        }
        kinds.push((now, effects.iter().map(std::mem::discriminant).collect::<Vec<_>>()));
    }
    assert_eq!(core.phase(), Phase::Running);
    assert!(made.len() > 1000, "{}", made.len());

    let bytes = recorder.to_bytes();
    let recording = Recording::read(&bytes).unwrap();
    let parts: HashSet<&[u8]> = made.iter().flat_map(|secret| secret.as_bytes().windows(PART)).collect();
    let search = |bytes: &[u8]| {
        let found = bytes.windows(PART).find(|part| parts.contains(part));
        assert_eq!(found.map(String::from_utf8_lossy), None);
    };
    search(&bytes);
    let blocks = recording.blocks().count();
    assert!(blocks > 2, "{blocks} blocks");
    for mut block in recording.blocks() {
        search(&postcard::to_allocvec(&block.checkpoint::<Core>().unwrap()).unwrap());
    }
    let (mut replay, mut played) = (Replay::new(&recording), Vec::new());
    while let Some(step) = replay.next(Core::step).unwrap() {
        search(&postcard::to_allocvec(&step.input).unwrap());
        played.push((step.now, step.effects.iter().map(std::mem::discriminant).collect::<Vec<_>>()));
    }
    search(&postcard::to_allocvec(replay.core().unwrap()).unwrap());
    assert!(kinds.ends_with(&played), "the replay does something else");
    assert!(played.len() > 20_000, "{}", played.len());
    let events = |core: &Core| core.journal().events().copied().collect::<Vec<_>>();
    assert_eq!(events(replay.core().unwrap()), events(&core));
}
