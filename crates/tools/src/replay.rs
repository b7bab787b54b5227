//! `replay`: plays a recording on the core that this program has (B4), and what its world did on others (B5). Nothing is started.

mod catalog;
mod clock;
mod incident;
mod moment;
mod page;
mod player;
mod printing;
mod question;

use std::time::SystemTime;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::output;
use containerpilot_command_line::version::VERSION;
use containerpilot_drawing::simulation::{json, svg, timeline};
use containerpilot_recording::{Damage, DamageKind, Recording, Replay};
use containerpilot_simulation::timeline_writer::TimelineWriter;

use self::clock::Clock;
use self::incident::Task;
use self::player::play;
use self::printing::{note, screen, unknown_format};
use self::question::Question;

/// The most bytes of a recording.
const MAX_BYTES: u64 = 1 << 30;

pub(crate) fn replay(args: &Arguments) -> Result<(), Failure> {
    let path = args.rest.first().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let task = Task::new(args)?;
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
    if let Some(task) = task {
        return task.run(args, &recording, &clock);
    }
    let question = Question::new(args)?;
    if let Some(out) = args.value("page") {
        if args.value("at").is_some() || question.is_some() {
            let why = "--page is for the whole recording, or for what --from and --to say: not with --at";
            return Err(Failure::Usage(why.to_owned()));
        }
        if let Some(other) = ["format", "out"].into_iter().find(|name| !args.text(name).is_empty()) {
            return Err(Failure::Usage(format!("--page writes a file of its own: not with --{other}")));
        }
        return write_page(args, out, &recording, &clock);
    }
    match (args.value("at"), question) {
        (None, None) => show_timeline(args, &recording, &clock),
        (None, Some(_)) => {
            let why = "status, explain and graph need --at TIME, such as `--at 03:12:07`";
            Err(Failure::Usage(why.to_owned()))
        }
        (Some(_), None) => {
            let why = "--at needs what to show: status, explain JOB or graph";
            Err(Failure::Usage(why.to_owned()))
        }
        (Some(at), Some(question)) => {
            question.as_json(args)?;
            let at = clock.read("at", at, || end(&recording, &clock))?;
            question.answer(args, &recording, &clock, at)
        }
    }
}

/// When the recording ends, as far as it can be played.
fn end(recording: &Recording<'_>, clock: &Clock) -> SystemTime {
    let (mut replay, mut last) = (Replay::new(recording), clock.start());
    while let Ok(Some(step)) = play(&mut replay, clock, |core, now, input, effects| {
        core.step(now, input, effects);
    }) {
        last = clock.at(step.now);
    }
    last
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

/// --from and --to.
fn times(
    args: &Arguments,
    recording: &Recording<'_>,
    clock: &Clock,
) -> Result<(Option<SystemTime>, Option<SystemTime>), Failure> {
    let time =
        |flag| args.value(flag).map(|text| clock.read(flag, text, || end(recording, clock))).transpose();
    Ok((time("from")?, time("to")?))
}

/// Writes the page.
fn write_page(args: &Arguments, out: &str, recording: &Recording<'_>, clock: &Clock) -> Result<(), Failure> {
    let page = page::page(recording, clock, times(args, recording, clock)?)?;
    output::write(out, page.html.as_bytes())?;
    if let Some(text) = &page.note {
        note(text);
    }
    page.failure.map_or(Ok(()), Err)
}

/// Prints what happened.
fn show_timeline(args: &Arguments, recording: &Recording<'_>, clock: &Clock) -> Result<(), Failure> {
    let (from, to) = times(args, recording, clock)?;
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
    let run = writer.run;
    let text = match format {
        "json" => json::timeline(&run, &[]),
        "svg" => svg::timeline(&run, &[]),
        _ => {
            let time = |time| clock.text(clock.at(time));
            let times = timeline::Times { row: &time, moment: &time };
            timeline::human(screen(args), &run, &[], args.is_on("full"), &times)
        }
    };
    output::write(args.text("out"), text.as_bytes())?;
    failure.map_or(Ok(()), Err)
}
