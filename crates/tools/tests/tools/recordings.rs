//! Recordings of real supervisors, and their replays (B1–B4).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::deadline::InTime;
use crate::support::program::{code, command, containerpilot, err, out};
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};
use crate::tools;

const CONFIG: &str = "{ control: { socket: '@/socket' }, record: { RECORD }, jobs: [
    { name: 'app', exec: 'sleep 1000', health: { exec: 'true', interval: '50ms', ttl: 10 }, restarts: 'unlimited' },
    { name: 'late', exec: 'sleep 1000', when: { source: 'app', once: 'healthy' } },
    { name: 'bad', exec: ['sh', '-c', 'exit 3'], restarts: 1, restartBackoff: false }] }";

/// The source and the code of an event.
pub(crate) type Event = (String, String);

fn config(record: &str) -> String {
    CONFIG.replace("RECORD", record)
}

/// Runs a command against a supervisor.
pub(crate) fn ask(run: &Supervisor, words: &[&str]) -> std::process::Output {
    Command::new(containerpilot())
        .args(words)
        .env("CONTAINERPILOT_SOCKET", run.file("socket"))
        .output_in_time()
        .unwrap()
}

fn replay(file: &Path, words: &[&str]) -> std::process::Output {
    command(tools(), &["replay", file.to_str().unwrap()]).args(words).output_in_time().unwrap()
}

/// The events that a supervisor has in its journal.
pub(crate) fn events(run: &Supervisor) -> Vec<Event> {
    let output = ask(run, &["events", "--format", "json"]);
    let text = out(&output);
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.filter(|event| event["code"].is_string())
        .map(|event| (text(&event["source"]), text(&event["code"])))
        .collect()
}

/// The events in the timeline of a replay.
pub(crate) fn replayed_events(file: &Path) -> Vec<Event> {
    let output = replay(file, &["--format", "json"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    let timeline: Value = serde_json::from_str(&out(&output)).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = timeline["timeline"].as_array().unwrap().iter();
    all.map(|entry| (text(&entry["source"]), text(&entry["what"]))).collect()
}

/// The events, without what the timeline has besides.
pub(crate) fn only<'a>(all: &'a [Event], of: &[Event]) -> Vec<&'a Event> {
    all.iter().filter(|event| of.contains(event)).collect()
}

fn wait_for_start(run: &mut Supervisor) {
    run.wait_for_line("bad failed");
    wait_until("late runs", || out(&ask(run, &["status", "late"])).starts_with("late: running"));
}

#[test]
fn b3_b4_recording_of_a_real_supervisor_is_played_with_the_same_events_and_answers() {
    for mode in modes() {
        let mut run = Supervisor::start(mode, &config(""));
        wait_for_start(&mut run);
        for words in [&["restart", "app"][..], &["putenv", "NAME=hush-hush"], &["maintenance", "enable"]] {
            assert_eq!(code(&ask(&run, words)), 0);
        }
        wait_until("app runs again", || {
            events(&run).iter().filter(|event| event.1 == "exitFailed").count() >= 3
        });
        let happened = events(&run);
        let (file, again) = (run.file("incident.cprec"), run.file("again.cprec"));
        let written = ask(&run, &["record", "--out", file.to_str().unwrap()]);
        assert_eq!(code(&written), 0, "{}", err(&written));
        let redirected = ask(&run, &["record"]);
        fs::write(&again, &redirected.stdout).unwrap();
        for file in [&file, &again] {
            let played = replayed_events(file);
            let played = only(&played, &happened);
            let expected: Vec<_> = happened.iter().collect();
            assert_eq!(played[..expected.len()], expected);
        }
        let live = out(&ask(&run, &["explain", "late"]));
        let last = replay(&again, &["--at", "2100-01-01T00:00:00Z", "explain", "late"]);
        assert!(err(&last).contains("this is the last state in the recording"), "{}", err(&last));
        let played = out(&last);
        let state = |text: &str| text.split(" for ").next().unwrap_or_default().to_owned();
        assert_eq!(state(&played), state(&live));
        assert!(played.contains("app healthy"), "{played}");
        assert!(out(&replay(&again, &[])).contains("\nAT 20"), "a time of day");
        let graph = out(&replay(&again, &["--at", "2100-01-01T00:00:00Z", "graph"]));
        assert!(graph.starts_with("flowchart"), "{graph}");
        // The names of variables are in it, and no values.
        let all = out(&replay(&again, &[]));
        assert!(all.contains("putenv NAME") && !all.contains("hush"), "{all}");
    }
}

#[test]
fn b2_file_survives_sigkill_and_each_start_begins_a_new_one() {
    let folder = crate::support::supervisor::folder();
    let file = folder.join("box/rec");
    let config = config(&format!("file: '{}', keep: 2", file.display()));
    let mut run = Supervisor::start(Mode::Plain, &config);
    wait_for_start(&mut run);
    run.wait_for_line(&format!("bad what led to this is recorded in {}", file.display()));
    let happened = events(&run);
    let has_all = |played: Vec<Event>| only(&played, &happened).len() >= happened.len();
    wait_until("everything is in the file", || file.exists() && played_so_far(&file).is_some_and(has_all));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // What comes later is a part of its own.
    let size = || fs::metadata(&file).unwrap().len();
    let before = size();
    assert_eq!(code(&ask(&run, &["putenv", "A=b"])), 0);
    wait_until("the file grows", || size() > before);
    run.signal("-KILL");
    run.wait();
    assert!(has_all(replayed_events(&file)));
    // A torn end is read up to the tear.
    let bytes = fs::read(&file).unwrap();
    let torn = folder.join("torn");
    fs::write(&torn, &bytes[..bytes.len() - 3]).unwrap();
    let output = replay(&torn, &[]);
    assert!(err(&output).contains("it ends in the middle, as after a crash"), "{}", err(&output));
    assert!(out(&output).contains("startup"));
    for _ in 0..3 {
        let mut run = Supervisor::start(Mode::Plain, &config);
        wait_for_start(&mut run);
        run.signal("-TERM");
        let (code, _) = run.wait();
        assert_eq!(code, 0);
        // The end is in it, too.
        assert!(replayed_events(&file).iter().any(|(_, what)| what == "exit"));
    }
    let mut names: Vec<_> =
        fs::read_dir(folder.join("box")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["rec", "rec.1", "rec.2"]);
}

/// The events that a file has so far, if it can be read already.
pub(crate) fn played_so_far(file: &Path) -> Option<Vec<Event>> {
    (code(&replay(file, &[])) == 0).then(|| replayed_events(file))
}

#[test]
fn b1_nothing_is_recorded_with_memory_0() {
    let mut run = Supervisor::start(Mode::Plain, &config("memory: 0"));
    wait_for_start(&mut run);
    let output = ask(&run, &["record"]);
    assert_eq!((code(&output), err(&output).contains("nothing is recorded")), (1, true), "{}", err(&output));
}

#[test]
fn b2_a_file_that_cannot_be_written_costs_one_warning() {
    let config = config("file: '/proc/self/rec'");
    let mut run = Supervisor::start(Mode::Plain, &config);
    wait_for_start(&mut run);
    run.wait_for_line("cannot write the recording to /proc/self/rec");
    // It is still in memory.
    let file = run.file("incident.cprec");
    assert_eq!(code(&ask(&run, &["record", "--out", file.to_str().unwrap()])), 0);
    assert_eq!(code(&replay(&file, &[])), 0);
    run.signal("-TERM");
    let (_, log) = run.wait();
    assert_eq!(log.matches("cannot write the recording").count(), 1, "{log}");
}

#[test]
fn b3_b4_other_files_and_versions_are_refused() {
    let folder = crate::support::supervisor::folder();
    let refused = |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        fs::write(&file, bytes).unwrap();
        let output = replay(&file, &[]);
        assert_eq!(code(&output), 2, "{}", err(&output));
        err(&output)
    };
    assert!(refused("text", b"{ jobs: [] }").contains("this is no recording of containerpilot"));
    assert!(refused("newer", b"CPREC\x002").contains("version 2 of the format"));
    assert!(refused("empty", b"").contains("no recording"));
    assert!(refused("header", b"CPREC\x001\x05\x00a").contains("ends in its header"));
    let mut run = Supervisor::start(Mode::Plain, &config(""));
    wait_for_start(&mut run);
    let recording = ask(&run, &["record"]).stdout;
    let version = env!("CARGO_PKG_VERSION");
    let other = "9".repeat(version.len());
    let at = 8 + 1;
    assert_eq!(&recording[at..at + version.len()], version.as_bytes());
    let changed = [&recording[..at], other.as_bytes(), &recording[at + version.len()..]].concat();
    let message = refused("version", &changed);
    assert!(message.contains(&format!("only containerpilot-tools {other} can play it")), "{message}");
    let missing = replay(Path::new("/nowhere"), &[]);
    assert_eq!((code(&missing), err(&missing).contains("cannot read /nowhere")), (2, true));
    let file = folder.join("good");
    fs::write(&file, &recording).unwrap();
    for (words, message) in [
        (&["graph"][..], "need --at TIME"),
        (&["--at", "12:00"], "--at needs what to show"),
        (&["--at", "25:00", "graph"], "invalid --at `25:00`"),
        (&["--at", "12:00", "explain"], "explain needs the name of a job"),
        (&["--at", "12:00", "sleep"], "unknown question `sleep`"),
        (&["--from", "yesterday"], "invalid --from `yesterday`"),
        (&["--format", "mp3"], "unknown format `mp3`"),
        (&["--page", "x.html", "--at", "12:00", "status"], "--page is for the whole recording"),
        (&["--page", "x.html", "graph"], "--page is for the whole recording"),
        (&["--page", "x.html", "--format", "json"], "not with --format"),
        (&["--page", "x.html", "--out", "y.html"], "not with --out"),
        (&["--page", "x.html", "--full"], "not with --full"),
        (&["--page", ""], "--page needs the name of a file"),
        (&["--at", "end", "status", "--from", "12:00"], "--at is about one time: not with --from"),
        (&["--at", "end", "status", "--full"], "not with --full"),
        (&["--from", "end", "--to", "2000-01-01T00:00:00Z"], "--from is after --to"),
        (&["--page", "/nonexistent/x.html"], "cannot write /nonexistent/x.html"),
        (&["--page", "x.html", "--to", "2000-01-01T00:00:00Z"], "nothing was recorded then"),
        (&["--at", "12:00", "graph", "--format", "json"], "unknown format `json`"),
        (&["--at", "12:00", "graph", "web"], "unexpected argument `web`"),
        (&["--at", "2000-01-01T00:00:00Z", "graph"], "the recording begins later, at "),
        (&["--at", "2100-01-01T00:00:00Z", "explain", "ap"], "there is no job `ap`"),
    ] {
        let output = replay(&file, words);
        assert!(code(&output) != 0 && err(&output).contains(message), "{words:?}: {}", err(&output));
    }
    for flag in ["--page", "--out"] {
        let output = replay(&file, &[flag, file.to_str().unwrap()]);
        assert!(err(&output).contains("names the recording"), "{flag}: {}", err(&output));
    }
    assert_eq!(fs::read(&file).unwrap(), recording);
    // The first midnight after it began is not in it, unless it began at midnight.
    let begin = err(&replay(&file, &["--at", "2000-01-01T00:00:00Z", "graph"]));
    if begin.contains("T00:00:0") {
        return;
    }
    assert_eq!(code(&replay(&file, &["--from", "00:00"])), 0, "from the beginning on");
    for words in [&["--to", "00:00"][..], &["--at", "00:00", "status"]] {
        let output = replay(&file, words);
        let message = "nothing was recorded at 00:00: the recording is from 20";
        assert!(code(&output) == 1 && err(&output).contains(message), "{words:?}: {}", err(&output));
    }
}

/// Everything that `status` shows.
const EVERYTHING: &str = "{ control: { socket: '@/socket' }, jobs: [
    { name: 'app', exec: 'sleep 1000', port: 8000, interfaces: 'lo', groups: ['front'],
      health: { exec: 'true', interval: '1h', ttl: '2h' } },
    { name: 'ill', exec: 'sleep 1000', groups: ['front'],
      // Its second check does not end.
      health: { exec: ['sh', '-c', 'test -e @/once && sleep 1000; touch @/once; exit 1'], interval: '1h', timeout: '1h',
                ttl: '2h' } },
    { name: 'late', exec: 'sleep 1000', when: { source: 'app', once: 'unhealthy' } },
    { name: 'bad', exec: ['sh', '-c', 'echo out; exit 3'], restarts: 1, restartBackoff: false },
    { name: 'lost', exec: '/nonexistent/program', restarts: 'never' },
    { name: 'many', exec: 'sleep 1000', replicas: 2, requires: ['lock.turn'] },
    { name: 'by-hand', exec: 'true', when: 'manual' },
    { name: 'nightly', exec: 'true', when: { cron: '0 3 1 1 *' } }],
  locks: [{ name: 'turn' }],
  watches: [{ name: 'conf', file: '@/config.json5', interval: '1h' },
            { name: 'none', tcp: '127.0.0.1:1', interval: '1h' }] }";

/// The texts in the state of [`EVERYTHING`] that are a hash in a recording.
const HIDDEN: [&str; 3] = [
    "exited with code 1",
    "/nonexistent/program: No such file or directory",
    "127.0.0.1:1: connection refused",
];

/// The text without what differs between two moments, durations and times of day, and without what is a hash in a
/// recording.
fn without_times(text: &str) -> String {
    let text = HIDDEN.iter().fold(text.to_owned(), |text, hidden| text.replace(hidden, "HIDDEN"));
    let is_hash = |word: &str| word.len() == 17 && word.starts_with('#');
    // The size of a watched file is that of the hash.
    let is_size = |word: &str, next: &str| word.parse::<u64>().is_ok() && next == "bytes";
    let is_time = |word: &str| {
        let word = word.trim_end_matches([',', ';', ')']);
        let is_unit = |part: &str| ["ms", "s", "m", "h", "d"].contains(&part);
        let digits = |letter: char| letter.is_ascii_digit() || letter == '.';
        let units = word.split(digits).filter(|part| !part.is_empty());
        let is_duration = word.starts_with(|letter: char| letter.is_ascii_digit())
            && units.clone().next().is_some()
            && units.clone().all(is_unit);
        is_duration || word.ends_with('Z') && word.contains('T') && word.contains(':')
    };
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let nexts = words.iter().skip(1).copied().chain([""]);
        let words = words.iter().zip(nexts).map(|(word, next)| match *word {
            word if is_time(word) => "TIME",
            word if is_hash(word) => "HIDDEN",
            word if is_size(word, next) => "SIZE",
            word => word,
        });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// JSON without what differs between two moments, and without what is not in a recording: the pid of the supervisor,
/// and the output of jobs.
fn json_without_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.contains_key("phase") {
                members.remove("pid");
            }
            if let Some(output) = members.get_mut("output").and_then(Value::as_array_mut) {
                let lines = std::mem::take(output).len();
                let sentences = members.get_mut("sentences").and_then(Value::as_array_mut).unwrap();
                sentences.truncate(sentences.len() - lines - usize::from(lines > 0));
            }
            for (name, value) in members {
                if name.ends_with("Seconds") && value.is_number() {
                    *value = "SECONDS".into();
                }
                json_without_times(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(json_without_times),
        Value::String(text) => *text = without_times(text),
        _ => {}
    }
}

#[test]
fn b4_status_and_explain_of_a_recording_are_those_of_the_supervisor() {
    for mode in modes() {
        let mut run = Supervisor::start(mode, EVERYTHING);
        run.wait_for_line("bad failed");
        let state = || out(&ask(&run, &["status"]));
        wait_until("everything is done", || {
            let text = state();
            let is = |words: &[&str]| text.lines().any(|line| words.iter().all(|word| line.contains(word)));
            is(&["app", "running", "healthy"])
                && is(&["ill", "failed"])
                && out(&ask(&run, &["status", "ill"])).contains("running now")
                && is(&["lost", "failed"])
                && (is(&["many-1", "running"]) || is(&["many-2", "running"]))
                && is(&["none", "tcp", "refused"])
                && is(&["conf", "file", "bytes"])
        });
        let questions: Vec<Vec<&str>> =
            ["", "app", "ill", "late", "bad", "lost", "many", "many-1", "by-hand"]
                .into_iter()
                .chain(["nightly", "@front", "watch.conf", "none", "lock.turn", "nothing"])
                .flat_map(|name| {
                    let status = ["status", name].into_iter().filter(|word| !word.is_empty()).collect();
                    let explain = (!name.is_empty() && name != "none").then(|| vec!["explain", name]);
                    [Some(status), explain].into_iter().flatten()
                })
                .collect();
        let now: Value = serde_json::from_str(&out(&ask(&run, &["status", "--format", "json"]))).unwrap();
        let at = now["now"].as_str().unwrap().to_owned();
        let pid = now["pid"].as_u64().unwrap();
        let live: Vec<_> = questions.iter().map(|words| ask(&run, words)).collect();
        let with_json = |words: &[&'static str]| [words, &["--format", "json"]].concat();
        let questions_json: Vec<_> = questions.iter().map(|words| with_json(words)).collect();
        let live_json: Vec<_> = questions_json.iter().map(|words| ask(&run, words)).collect();
        let file = run.file("incident.cprec");
        assert_eq!(code(&ask(&run, &["record", "--out", file.to_str().unwrap()])), 0);
        for (words, live) in questions.iter().zip(&live) {
            let played = replay(&file, &[&["--at", &at], words.as_slice()].concat());
            assert_eq!(code(&played), code(live), "{words:?}: {}", err(&played));
            // What is not in a recording: the supervisor's pid, and the output of jobs.
            let live_text = out(live).replace(&format!(", pid {pid}, up"), ", up");
            let live_text = live_text.split("last lines of its last run:").next().unwrap();
            assert_eq!(without_times(&out(&played)), without_times(live_text), "{words:?}");
            let reason = |text: String| text.split_once(": ").map(|(_, why)| why.to_owned());
            assert_eq!(reason(err(&played)), reason(err(live)), "{words:?}");
        }
        for (words, live) in questions_json.iter().zip(&live_json).filter(|(_, live)| code(live) == 0) {
            let played = replay(&file, &[&["--at", &at], words.as_slice()].concat());
            let read = |text: String| {
                let values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
                values
                    .map(|mut value| {
                        json_without_times(&mut value);
                        value
                    })
                    .collect::<Vec<_>>()
            };
            assert_eq!(read(out(&played)), read(out(live)), "{words:?}");
        }
    }
}
