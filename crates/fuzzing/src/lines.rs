//! Fuzz target: any bytes as the output and the name of a job. Each line is one entry in every format, and none can be
//! forged.

use containerpilot_core::plan::{Format, Level};
use containerpilot_log_format::{EntryFormatter, Labels, Stamp, StreamName, Writer, is_hidden};

const STAMP: &Stamp = b"2026-11-15T00:15:28.645445913Z";

/// The bytes are the names of a job and its check, each with a NUL, and the output.
pub(crate) fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut name = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (job, check) = (name(), name());
    let output = parts.next().unwrap_or_default();
    let writer = Writer::Process { pid: 17, check: Some(&check), stream: StreamName::Stderr };
    let labels = Labels { level: Level::Info, job: Some(&job), writer };
    for format in [Format::Default, Format::Text, Format::Json] {
        let mut form = EntryFormatter::new(format, false);
        form.label(STAMP, labels);
        for text in output.split(|byte| *byte == b'\n') {
            line(&form, format, text, &job, &check);
        }
        let message = String::from_utf8_lossy(output).into_owned();
        let mut out = Vec::new();
        form.entry(&message, &[message.clone(), job.clone()], &mut out);
        // The supervisor's own entries are escaped in every format.
        let entry = one_line(&out);
        assert!(
            !entry.contains(|character: char| character.is_control() || is_hidden(character)),
            "{entry:?}"
        );
    }
}

fn line(form: &EntryFormatter, format: Format, text: &[u8], job: &str, check: &str) {
    let mut out = Vec::new();
    form.line(text, &mut out);
    let mut pieces = Vec::new();
    form.open(&mut pieces);
    form.piece(text, &mut pieces);
    form.close(false, &mut pieces);
    for out in [&out, &pieces] {
        match format {
            Format::Default => {
                assert!(out.starts_with(STAMP) && out.ends_with(&[text, b"\n"].concat()));
                assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
            }
            Format::Text => {
                let line = one_line(out);
                assert!(
                    !line.contains(|character: char| character.is_control() || is_hidden(character)),
                    "{line:?}"
                );
                assert_eq!(keys(&line), ["time", "level", "msg", "job", "pid", "check", "stream"], "{line}");
            }
            Format::Json => {
                let line = one_line(out);
                assert!(
                    !line.contains(|character: char| character.is_control() || is_hidden(character)),
                    "{line:?}"
                );
                let entry: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert_eq!(entry.len(), 7, "{line}");
                assert_eq!(entry["msg"], *String::from_utf8_lossy(text));
                assert!(entry["job"] == job && entry["check"] == check && entry["pid"] == 17, "{line}");
            }
        }
    }
}

/// The entry without its newline.
fn one_line(out: &[u8]) -> String {
    let line = String::from_utf8(out.to_vec()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(line.matches('\n').count(), 1, "{line:?}");
    line.strip_suffix('\n').map(str::to_owned).unwrap_or_else(|| panic!("{line:?}"))
}

/// The keys of a logfmt line, as a parser finds them.
fn keys(line: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut letters = line.chars().peekable();
    while letters.peek().is_some() {
        let mut key = String::new();
        for letter in letters.by_ref().take_while(|letter| *letter != '=') {
            key.push(letter);
        }
        keys.push(key.trim_start().to_owned());
        if letters.next_if_eq(&'"').is_some() {
            while let Some(letter) = letters.next() {
                match letter {
                    '\\' => drop(letters.next()),
                    '"' => break,
                    _ => {}
                }
            }
        } else {
            while letters.next_if(|letter| *letter != ' ').is_some() {}
        }
    }
    keys
}
