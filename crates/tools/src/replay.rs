//! `replay`: plays a recording on the core that this program has (B4), and what its world did on others (B5). Nothing
//! is started.

mod catalog;
mod clock;
mod incident;
mod moment;
mod page;
mod player;
mod printing;
mod question;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::output;
use containerpilot_command_line::version::VERSION;
use containerpilot_drawing::simulation::{json, svg, timeline};
use containerpilot_recording::{Damage, DamageKind, Recording, Replay};
use containerpilot_simulation::timeline_writer::TimelineWriter;

use self::clock::Clock;
use self::incident::Task;
use self::player::{end, play, times};
use self::printing::{note, screen, unknown_format};
use self::question::Question;

/// The most bytes of a recording.
const MAX_BYTES: u64 = 1 << 30;

pub(crate) fn replay(args: &Arguments) -> Result<(), Failure> {
    let path = args.rest.first().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let (task, question) = (Task::new(args)?, Question::new(args)?);
    if task.is_none() {
        refuse_what_is_ignored(args, question.is_some())?;
    }
    keep_the_recording(args, &path)?;
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
    if let Some(out) = args.value("page") {
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

/// A page and a question do not have all options.
fn refuse_what_is_ignored(args: &Arguments, asks: bool) -> Result<(), Failure> {
    let given = |names: &[&'static str]| {
        names.iter().copied().find(|name| args.value(name).is_some() || args.is_on(name))
    };
    let why = if args.value("page") == Some("") {
        "--page needs the name of a file".to_owned()
    } else if args.value("page").is_some() && (asks || args.value("at").is_some()) {
        "--page is for the whole recording, or for what --from and --to say: not with --at".to_owned()
    } else if args.value("page").is_some()
        && let Some(other) = given(&["format", "out", "full"])
    {
        format!("--page writes a file of its own: not with --{other}")
    } else if args.value("at").is_some()
        && let Some(other) = given(&["from", "to", "full"])
    {
        format!("--at is about one time: not with --{other}")
    } else {
        return Ok(());
    };
    Err(Failure::Usage(why))
}

/// Refuses to write over the recording.
fn keep_the_recording(args: &Arguments, path: &str) -> Result<(), Failure> {
    let file = |path: &str| std::fs::canonicalize(path).ok();
    for flag in ["page", "out"] {
        if let Some(own) = file(path)
            && file(args.text(flag)) == Some(own)
        {
            return Err(Failure::Usage(format!("--{flag} names the recording: name another file")));
        }
    }
    Ok(())
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
