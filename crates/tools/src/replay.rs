//! `replay`: plays a recording on the core that this program has (B4). Nothing is started.

mod clock;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use containerpilot_api::SubjectKind;
use containerpilot_api::job_names::unknown_name_hint;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::output;
use containerpilot_command_line::terminal::stdout_screen;
use containerpilot_command_line::version::VERSION;
use containerpilot_core::ids::{FileIx, JobIx, LockIx, WatchIx};
use containerpilot_core::{Core, Effect, Input, Phase, Time};
use containerpilot_drawing::graph::mermaid;
use containerpilot_drawing::graph::model::Graph;
use containerpilot_drawing::simulation::{json, svg, timeline};
use containerpilot_recording::{Damage, DamageKind, Recording, Replay, Step};
use containerpilot_simulation::timeline_writer::TimelineWriter;
use containerpilot_text::screen::{Screen, sanitized};

use self::clock::Clock;

/// The most bytes of a recording.
const MAX_BYTES: u64 = 1 << 30;

pub(crate) fn replay(args: &Arguments) -> Result<(), Failure> {
    let path = args.rest.first().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = read(&path)?;
    let invalid = |why: String| Failure::InvalidInput(format!("{path}: {why}"));
    let recording = Recording::read(&bytes).map_err(|error| invalid(error.to_string()))?;
    if recording.version != VERSION {
        let version = recording.version;
        return Err(invalid(format!(
            "it was recorded by containerpilot {version}, and only containerpilot-tools {version} can play it; this is {VERSION}"
        )));
    }
    if let Some(Damage { offset, kind }) = recording.damage {
        let why = match kind {
            DamageKind::Torn => "it ends in the middle, as after a crash",
            DamageKind::Checksum => "the rest is broken",
            DamageKind::Order => "a part is missing",
        };
        note(&format!("warning: {path} can be read up to byte {offset}: {why}"));
    }
    let clock = Clock::new(&recording);
    let question = Question::new(args)?;
    match (args.value("at"), question) {
        (None, None) => show_timeline(args, &recording, &clock),
        (None, Some(_)) => {
            let why = "explain and graph need --at TIME, such as `--at 03:12:07`";
            Err(Failure::Usage(why.to_owned()))
        }
        (Some(_), None) => {
            let why = "--at needs what to show: explain JOB or graph";
            Err(Failure::Usage(why.to_owned()))
        }
        (Some(at), Some(question)) => question.answer(args, &recording, &clock, clock.read("at", at)?),
    }
}

fn read(path: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |why: &dyn std::fmt::Display| Failure::InvalidInput(format!("cannot read {path}: {why}"));
    let found = std::fs::metadata(path).map_err(|error| cannot(&error))?;
    if !found.is_file() {
        return Err(cannot(&"it is not a file"));
    }
    if found.len() > MAX_BYTES {
        return Err(cannot(&"it is larger than 1 GiB, which no recording is"));
    }
    std::fs::read(path).map_err(|error| cannot(&error))
}

/// What is asked about a time.
enum Question {
    Explain(String),
    Graph,
}

impl Question {
    fn new(args: &Arguments) -> Result<Option<Self>, Failure> {
        let mut words = args.rest.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        let (what, name) = (words.next(), words.next());
        Ok(Some(match (what.as_deref(), name) {
            (None, _) => return Ok(None),
            (Some("explain"), Some(name)) => Self::Explain(name),
            (Some("explain"), None) => {
                return Err(Failure::Usage("explain needs the name of a job".to_owned()));
            }
            (Some("graph"), None) => Self::Graph,
            (Some("graph"), Some(name)) => {
                return Err(Failure::Usage(format!("unexpected argument `{name}` for graph")));
            }
            (Some(other), _) => {
                let why = format!("unknown question `{other}`: it is explain JOB or graph");
                return Err(Failure::Usage(why));
            }
        }))
    }

    fn answer(
        self,
        args: &Arguments,
        recording: &Recording<'_>,
        clock: &Clock,
        at: SystemTime,
    ) -> Result<(), Failure> {
        let format = args.text("format");
        if !matches!(format, "" | "human") {
            return Err(unknown_format(format, "`human`, for a question"));
        }
        let core = state_at(recording, clock, at)?;
        let text = match self {
            Self::Explain(name) => {
                explanation(&core, &name)?.iter().map(|line| sanitized(line) + "\n").collect()
            }
            Self::Graph => mermaid::text(&Graph::of(core.plan())),
        };
        output::write(args.text("out"), text.as_bytes())
    }
}

/// What `explain` says of a job, or of `watch.NAME`, `file.NAME` or `lock.NAME`.
fn explanation(core: &Core, name: &str) -> Result<Vec<String>, Failure> {
    let (prefix, own) = name.split_once('.').unwrap_or_default();
    let plan = core.plan();
    let position = |kind: SubjectKind, known: Vec<&str>, name: &str| {
        let place = known.iter().position(|other| *other == name);
        let hint = || unknown_name_hint(kind, name, &known);
        place.ok_or_else(|| Failure::Failed(format!("there is no {} `{name}`{}", kind.word(), hint())))
    };
    let sentences = if prefix == SubjectKind::Watch.word() {
        let known = plan.watches.iter().map(|watch| watch.name.as_str()).collect();
        let watch = WatchIx::at(position(SubjectKind::Watch, known, own)?);
        core.explain_watch(watch, None).map(|explained| explained.sentences)
    } else if prefix == SubjectKind::File.word() {
        let known = plan.files.iter().map(|file| file.name.as_str()).collect();
        let file = FileIx::at(position(SubjectKind::File, known, own)?);
        core.explain_file(file).map(|explained| explained.sentences)
    } else if prefix == SubjectKind::Lock.word() {
        let known = plan.locks.iter().map(|lock| lock.name.as_str()).collect();
        let lock = LockIx::at(position(SubjectKind::Lock, known, own)?);
        core.explain_lock(lock, None).map(|explained| explained.sentences)
    } else {
        let known = plan.jobs.iter().map(|job| job.name.as_str()).collect();
        Some(core.explain(JobIx::at(position(SubjectKind::Job, known, name)?), None).sentences())
    };
    Ok(sentences.unwrap_or_default())
}

/// The state at this time.
fn state_at(recording: &Recording<'_>, clock: &Clock, at: SystemTime) -> Result<Core, Failure> {
    let (mut replay, mut last, mut later) = (Replay::new(recording), None, None);
    while later.is_none() {
        let step = play(&mut replay, clock, |core, now, input, effects| {
            if clock.at(now) > at {
                later = Some(core.clone());
            } else {
                last = Some(now);
                core.step(now, input, effects);
            }
        })?;
        if step.is_none() {
            break;
        }
    }
    if later.is_none()
        && let Some(last) = last.map(|last| clock.at(last)).filter(|last| *last < at)
    {
        note(&format!("note: this is the last state in the recording, of {}", clock.text(last)));
    }
    let Some((mut core, last)) = later.or_else(|| replay.core().cloned()).zip(last) else {
        let begin = clock.text(clock.start());
        return Err(Failure::Failed(format!("the recording begins later, at {begin}")));
    };
    // As before every answer of a supervisor: what has passed since then counts.
    let now = last + at.duration_since(clock.at(last)).unwrap_or_default();
    if core.phase() != Phase::Exited {
        core.step(now, Input::Tick, &mut Vec::new());
    }
    Ok(core)
}

/// Prints to standard error. If that is closed, the command still works.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn unknown_format(given: &str, known: &str) -> Failure {
    Failure::Usage(format!("unknown format `{given}`: the formats are {known}"))
}

/// Makes the next step.
fn play(
    replay: &mut Replay<'_>,
    clock: &Clock,
    step: impl FnOnce(&mut Core, Time, Input, &mut Vec<Effect>),
) -> Result<Option<Step>, Failure> {
    let mut at = None;
    let next = catch_unwind(AssertUnwindSafe(|| {
        replay.next(|core, now, input, effects| {
            at = Some(now);
            step(core, now, input, effects);
        })
    }));
    match next {
        Ok(next) => {
            next.map_err(|error| Failure::Failed(format!("the recording cannot be played further: {error}")))
        }
        Err(_) => {
            let at = at.map_or_else(String::new, |at| format!(" at {}", clock.text(clock.at(at))));
            Err(Failure::Failed(format!(
                "internal error in the step{at}, please report it with the recording"
            )))
        }
    }
}

/// Prints what happened.
fn show_timeline(args: &Arguments, recording: &Recording<'_>, clock: &Clock) -> Result<(), Failure> {
    let from = args.value("from").map(|text| clock.read("from", text)).transpose()?;
    let to = args.value("to").map(|text| clock.read("to", text)).transpose()?;
    let format = args.text("format");
    if !matches!(format, "" | "human" | "json" | "svg") {
        return Err(unknown_format(format, "`human`, `json` and `svg`"));
    }
    let (mut replay, mut writer, mut failure) = (Replay::new(recording), None::<TimelineWriter>, None);
    let mut last = clock.start();
    loop {
        let step = play(&mut replay, clock, |core, now, input, effects| {
            let at = clock.at(now);
            if from.is_some_and(|from| at < from) || to.is_some_and(|to| at > to) {
                return core.step(now, input, effects);
            }
            let writer = writer.get_or_insert_with(|| {
                let mut writer = TimelineWriter::new(core);
                writer.begin(core, now);
                writer
            });
            writer.replay(core, now, input, effects);
        });
        match step {
            Ok(Some(step)) if to.is_some_and(|to| clock.at(step.now) > to) => break,
            Ok(Some(step)) => last = clock.at(step.now),
            Ok(None) => break,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    let Some(mut writer) = writer else {
        let (start, last) = (clock.text(clock.start()), clock.text(last));
        let why = format!("nothing was recorded then: what was played is from {start} to {last}");
        return Err(failure.unwrap_or(Failure::Failed(why)));
    };
    if let Some(core) = replay.core() {
        writer.end(core);
    }
    let out = args.text("out");
    let screen = if matches!(out, "" | "-") { stdout_screen() } else { Screen::default() };
    let run = writer.run;
    let text = match format {
        "json" => json::timeline(&run, &[]),
        "svg" => svg::timeline(&run, &[]),
        _ => timeline::human(screen, &run, &[], args.is_on("full"), |time| clock.text(clock.at(time))),
    };
    output::write(out, text.as_bytes())?;
    failure.map_or(Ok(()), Err)
}
