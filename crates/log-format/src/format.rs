//! The format of an entry (L1).
//!
//! An entry is a prefix, the text and a suffix. Prefix and suffix depend on the time and the source; they are formatted once for all
//! lines of one read, so a line costs three copies.
//!
//! ```text
//! default  2026-11-15T00:15:28.645445913Z main 17 text        a check: main/check; the supervisor: no pid
//! text     time="2026-…" level=info msg="text" job=main pid=17 check=web stream=stdout
//! json     {"time":"2026-…","level":"info","job":"main","pid":17,"check":"web","stream":"stdout","msg":"text"}
//! ```
//!
//! Entries of the supervisor have no `stream`, but the fields of the core (L7): `event`, `code`, `signal`, `duration` (seconds) and
//! `cause`, in the formats `text` and `json`.
//!
//! `default` copies the bytes of a job unchanged; the other two escape everything that could forge an entry. The supervisor's
//! own messages are escaped in all three.

use std::fmt;
use std::io::Write;

use containerpilot_core::log_entry::Fields;
use containerpilot_core::plan::{Format, Level};

use super::escape;
use super::timestamp::Stamp;

/// The length of a time without its fraction, as in the format `text` of 3.8.
const SECONDS: usize = "2026-11-15T00:15:28".len();

/// The source and level of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The level.
    pub level: Level,
    /// The job it is about.
    pub job: Option<&'a str>,
    /// What wrote it.
    pub writer: Writer<'a>,
}

/// What wrote an entry.
#[derive(Clone, Copy, Debug)]
pub enum Writer<'a> {
    /// A process of the job.
    Process {
        /// Its pid.
        pid: u32,
        /// The check of the job that it belongs to.
        check: Option<&'a str>,
        /// What it wrote to.
        stream: StreamName,
    },
    /// The supervisor. Entries of the core have fields.
    Supervisor(Option<&'a Fields>),
}

/// Which of its two output streams a process wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the usual streams")]
pub enum StreamName {
    Stdout,
    Stderr,
}

impl StreamName {
    const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Formats entries, with the current prefix and suffix.
#[derive(Clone, Debug)]
pub struct EntryFormatter {
    format: Format,
    /// Whether the level has a colour in the format `text`.
    colour: bool,
    prefix: Vec<u8>,
    suffix: Vec<u8>,
}

impl EntryFormatter {
    /// Without labels; call [`EntryFormatter::label`] first. With `colour`, the level has one in the format `text`.
    pub fn new(format: Format, colour: bool) -> Self {
        Self { format, colour, prefix: Vec::new(), suffix: Vec::new() }
    }

    /// Changes the format. Call [`EntryFormatter::label`] afterwards.
    pub fn set_format(&mut self, format: Format, colour: bool) {
        (self.format, self.colour) = (format, colour);
    }

    /// Sets prefix and suffix of the following entries.
    pub fn label(&mut self, stamp: &Stamp, labels: Labels<'_>) {
        let Self { format, colour, prefix, suffix } = self;
        prefix.clear();
        suffix.clear();
        // Writes to a vector cannot fail.
        match format {
            Format::Default => {
                prefix.extend_from_slice(stamp);
                prefix.push(b' ');
                if let Some(job) = labels.job {
                    escape::plain(job.as_bytes(), prefix);
                    if let Writer::Process { check: Some(check), .. } = labels.writer {
                        prefix.push(b'/');
                        escape::plain(check.as_bytes(), prefix);
                    }
                    prefix.push(b' ');
                }
                if let Writer::Process { pid, .. } = labels.writer {
                    let _ = write!(prefix, "{pid} ");
                }
            }
            Format::Text => {
                let (time, level) = (stamp.get(..SECONDS).unwrap_or_default(), level_name(labels.level));
                let (begin, end): (&[u8], &[u8]) =
                    if *colour { (level_colour(labels.level), b"\x1b[0m msg=") } else { (b"", b" msg=") };
                append([b"time=\"", time, b"Z\" level=", begin, level, end], prefix);
                for_each_field(labels, |key, value| {
                    let _ = write!(suffix, " {key}=");
                    match value {
                        Value::Text(text) => logfmt_value(text.as_bytes(), suffix),
                        Value::Number(number) => drop(write!(suffix, "{number}")),
                    }
                });
            }
            Format::Json => {
                let level = level_name(labels.level);
                append([b"{\"time\":\"", stamp, b"\",\"level\":\"", level, b"\",", b""], prefix);
                for_each_field(labels, |key, value| {
                    let _ = write!(prefix, "\"{key}\":");
                    match value {
                        Value::Text(text) => {
                            prefix.push(b'"');
                            escape::json(text.as_bytes(), prefix);
                            prefix.push(b'"');
                        }
                        Value::Number(number) => drop(write!(prefix, "{number}")),
                    }
                    prefix.push(b',');
                });
                prefix.extend_from_slice(b"\"msg\":\"");
            }
        }
    }

    /// Removes prefix and suffix: in the format `default`, the following lines are written as they are.
    pub fn clear_labels(&mut self) {
        self.prefix.clear();
        self.suffix.clear();
    }

    /// Appends the entry of several lines of a job that belong together (L8). In the format `default`, all but the first are
    /// indented, so that none of them can look like an entry.
    pub fn joined(&self, text: &[u8], out: &mut Vec<u8>) {
        if self.format == Format::Default {
            out.extend_from_slice(&self.prefix);
            self.indented(text, out);
            out.push(b'\n');
        } else {
            self.line(text, out);
        }
    }

    fn indented(&self, text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text;
        if !self.prefix.is_empty() {
            while let Some((line, others)) =
                memchr::memchr(b'\n', rest).and_then(|end| rest.split_at_checked(end + 1))
            {
                out.extend_from_slice(line);
                out.push(b'\t');
                rest = others;
            }
        }
        out.extend_from_slice(rest);
    }

    /// Appends the entry of one line of a job.
    pub fn line(&self, text: &[u8], out: &mut Vec<u8>) {
        match self.format {
            Format::Default => {
                out.extend_from_slice(&self.prefix);
                out.extend_from_slice(text);
                out.push(b'\n');
            }
            Format::Text => {
                out.extend_from_slice(&self.prefix);
                logfmt_value(text, out);
                out.extend_from_slice(&self.suffix);
                out.push(b'\n');
            }
            Format::Json => {
                out.extend_from_slice(&self.prefix);
                escape::json(text, out);
                out.extend_from_slice(b"\"}\n");
            }
        }
    }

    /// Appends the entries of complete lines, until `out` has `full` bytes or a line is longer than `long`. Returns how many
    /// bytes of the lines were taken.
    pub fn lines(&self, lines: &[u8], full: usize, long: usize, out: &mut Vec<u8>) -> usize {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', lines) {
            let Some(line) = lines.get(start..end).filter(|line| line.len() <= long) else { break };
            self.line(line, out);
            start = end + 1;
            if out.len() >= full {
                break;
            }
        }
        start
    }

    /// Starts an entry whose text comes in pieces.
    pub fn open(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        if self.format == Format::Text {
            out.push(b'"');
        }
    }

    /// Appends a piece of the text. A piece must not end inside a character.
    pub fn piece(&self, text: &[u8], out: &mut Vec<u8>) {
        match self.format {
            Format::Default => self.indented(text, out),
            Format::Text => escape::quoted(text, out),
            Format::Json => escape::json(text, out),
        }
    }

    /// Ends an entry whose text came in pieces; `continued` if the line continues in the next entry.
    pub fn close(&self, continued: bool, out: &mut Vec<u8>) {
        match self.format {
            Format::Default if continued => out.extend_from_slice(b" [...]"),
            Format::Default => {}
            Format::Text => {
                out.push(b'"');
                out.extend_from_slice(&self.suffix);
                if continued {
                    out.extend_from_slice(b" partial=true");
                }
            }
            Format::Json if continued => out.extend_from_slice(b"\",\"partial\":true}"),
            Format::Json => out.extend_from_slice(b"\"}"),
        }
        out.push(b'\n');
    }

    /// Appends an entry of the supervisor, with the last lines of a job if there are any (L6).
    pub fn entry(&self, message: &str, output: &[String], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        match self.format {
            Format::Default => {
                escape::plain(message.as_bytes(), out);
                for (nth, line) in output.iter().enumerate() {
                    out.extend_from_slice(if nth == 0 { b"; last output: " } else { b" | " });
                    escape::plain(line.as_bytes(), out);
                }
            }
            Format::Text => {
                logfmt_value(message.as_bytes(), out);
                out.extend_from_slice(&self.suffix);
                if !output.is_empty() {
                    out.extend_from_slice(b" output=");
                    logfmt_value(output.join("\n").as_bytes(), out);
                }
            }
            Format::Json => {
                escape::json(message.as_bytes(), out);
                if !output.is_empty() {
                    out.extend_from_slice(b"\",\"output\":\"");
                    escape::json(output.join("\n").as_bytes(), out);
                }
                out.extend_from_slice(b"\"}");
            }
        }
        out.push(b'\n');
    }
}

/// Appends a logfmt value, quoted if necessary.
fn logfmt_value(text: &[u8], out: &mut Vec<u8>) {
    if escape::is_bare(text) {
        out.extend_from_slice(text);
    } else {
        out.push(b'"');
        escape::quoted(text, out);
        out.push(b'"');
    }
}

fn append(parts: [&[u8]; 6], prefix: &mut Vec<u8>) {
    parts.into_iter().for_each(|part| prefix.extend_from_slice(part));
}

/// The value of a field.
enum Value<'a> {
    Text(&'a str),
    Number(fmt::Arguments<'a>),
}

/// Calls `write` with every field that an entry has in the formats `text` and `json`.
fn for_each_field(labels: Labels<'_>, mut write: impl FnMut(&str, Value<'_>)) {
    if let Some(job) = labels.job {
        write("job", Value::Text(job));
    }
    let fields = match labels.writer {
        Writer::Process { pid, check, stream } => {
            write("pid", Value::Number(format_args!("{pid}")));
            if let Some(check) = check {
                write("check", Value::Text(check));
            }
            return write("stream", Value::Text(stream.name()));
        }
        Writer::Supervisor(None) => return,
        Writer::Supervisor(Some(fields)) => fields,
    };
    let Fields { event, pid, check, code, signal, duration, cause } = fields;
    if let Some(pid) = pid {
        write("pid", Value::Number(format_args!("{pid}")));
    }
    if let Some(check) = check {
        write("check", Value::Text(check));
    }
    write("event", Value::Text(event.name()));
    if let Some(code) = code {
        write("code", Value::Number(format_args!("{code}")));
    }
    if let Some(signal) = signal {
        write("signal", Value::Text(&signal.to_string()));
    }
    if let Some(duration) = duration {
        write(
            "duration",
            Value::Number(format_args!("{}.{:03}", duration.as_secs(), duration.subsec_millis())),
        );
    }
    if let Some(cause) = cause {
        write("cause", Value::Text(cause));
    }
}

/// The name of a level in logrus.
/// The colours of 3.8 on a terminal.
fn level_colour(level: Level) -> &'static [u8] {
    match level {
        Level::Debug => b"\x1b[37m",
        Level::Info => b"\x1b[36m",
        Level::Warn => b"\x1b[33m",
        Level::Error | Level::Fatal | Level::Panic => b"\x1b[31m",
    }
}

fn level_name(level: Level) -> &'static [u8] {
    match level {
        Level::Debug => b"debug",
        Level::Info => b"info",
        Level::Warn => b"warning",
        Level::Error => b"error",
        Level::Fatal => b"fatal",
        Level::Panic => b"panic",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use containerpilot_core::event::Code;
    use containerpilot_core::log_entry::LogEvent;
    use containerpilot_core::signal::Signal;

    use super::*;

    const STAMP: &Stamp = b"2026-11-15T00:15:28.645445913Z";
    const CHILD: Labels<'_> = child(None);

    const fn child(check: Option<&str>) -> Labels<'_> {
        let writer = Writer::Process { pid: 17, check, stream: StreamName::Stdout };
        Labels { level: Level::Info, job: Some("main"), writer }
    }

    fn line(format: Format, labels: Labels<'_>, text: &[u8]) -> String {
        let mut form = EntryFormatter::new(format, false);
        form.label(STAMP, labels);
        let mut out = Vec::new();
        form.line(text, &mut out);
        let mut pieces = Vec::new();
        form.open(&mut pieces);
        form.piece(text, &mut pieces);
        form.close(false, &mut pieces);
        if format != Format::Text || out.contains(&b' ') && !escape::is_bare(text) {
            assert_eq!(out, pieces, "the same entry in one piece or several");
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn l3_lines_stop_at_the_limit_or_at_a_long_line() {
        let mut form = EntryFormatter::new(Format::Default, false);
        form.label(STAMP, CHILD);
        let mut out = Vec::new();
        let whole = b"a\nb\nlong line\nc\n";
        assert_eq!(form.lines(whole, 1000, 4, &mut out), 4, "up to the long one");
        assert_eq!(form.lines(b"long line\nc\n", 1000, 4, &mut out), 0);
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 2);
        out.clear();
        assert_eq!(form.lines(whole, 50, 100, &mut out), 4, "up to the limit");
        assert_eq!(form.lines(b"", 50, 100, &mut out), 0);
    }

    #[test]
    fn l8_joined_lines_are_one_entry_that_cannot_be_forged() {
        let text = b"panic: oh\n  at a\n2026-11-15T00:15:28.645445913Z other 18 forged";
        let write = |format| {
            let mut form = EntryFormatter::new(format, false);
            form.label(STAMP, CHILD);
            let (mut out, mut pieces) = (Vec::new(), Vec::new());
            form.joined(text, &mut out);
            form.open(&mut pieces);
            form.piece(text, &mut pieces);
            form.close(false, &mut pieces);
            assert_eq!(out, pieces);
            String::from_utf8(out).unwrap()
        };
        let time = "2026-11-15T00:15:28.645445913Z";
        assert_eq!(
            write(Format::Default),
            format!("{time} main 17 panic: oh\n\t  at a\n\t{time} other 18 forged\n")
        );
        assert_eq!(write(Format::Text).matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&write(Format::Json)).unwrap();
        assert_eq!(value["msg"], String::from_utf8_lossy(text).as_ref());
        let mut form = EntryFormatter::new(Format::Default, false);
        form.label(STAMP, CHILD);
        form.clear_labels();
        let mut out = Vec::new();
        form.joined(b"one\ntwo", &mut out);
        form.line(b"three", &mut out);
        assert_eq!(out, b"one\ntwo\nthree\n", "as it was written");
    }

    #[test]
    fn l1_default_is_time_job_pid_text() {
        let time = "2026-11-15T00:15:28.645445913Z";
        assert_eq!(line(Format::Default, CHILD, b"hello  you"), format!("{time} main 17 hello  you\n"));
        assert_eq!(line(Format::Default, child(Some("web")), b""), format!("{time} main/web 17 \n"));
        let forged = Labels { job: Some("a\nb"), ..CHILD };
        assert_eq!(line(Format::Default, forged, b"x"), format!("{time} a\\nb 17 x\n"));
    }

    #[test]
    fn l1_text_is_what_logrus_writes() {
        let time = "time=\"2026-11-15T00:15:28Z\"";
        assert_eq!(
            line(Format::Text, CHILD, b"hello"),
            format!("{time} level=info msg=hello job=main pid=17 stream=stdout\n")
        );
        let check = Labels { level: Level::Warn, ..child(Some("web one")) };
        assert_eq!(
            line(Format::Text, check, b"a=\"b\"\r\x1b"),
            format!(
                "{time} level=warning msg=\"a=\\\"b\\\"\\r\\x1b\" job=main pid=17 check=\"web one\" stream=stdout\n"
            )
        );
    }

    #[test]
    fn l1_json_is_one_object_per_line() {
        let text = line(Format::Json, child(Some("web")), b"say \"hi\"\0\xff");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "time": "2026-11-15T00:15:28.645445913Z", "level": "info", "job": "main", "pid": 17, "check": "web",
            "stream": "stdout", "msg": "say \"hi\"\0\u{fffd}",
        });
        assert_eq!(value, expected);
        assert_eq!(text.matches('\n').count(), 1);
    }

    #[test]
    fn l6_entry_contains_the_last_lines() {
        let own = Labels { level: Level::Error, job: Some("main"), writer: Writer::Supervisor(None) };
        let output = ["one".to_owned(), "two \"2\"".to_owned()];
        let write = |format| {
            let mut form = EntryFormatter::new(format, false);
            form.label(STAMP, own);
            let mut out = Vec::new();
            form.entry("exited with\ncode 1", &output, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            write(Format::Default),
            "2026-11-15T00:15:28.645445913Z main exited with\\ncode 1; last output: one | two \"2\"\n"
        );
        assert!(write(Format::Text).ends_with(" job=main output=\"one\\ntwo \\\"2\\\"\"\n"));
        let value: serde_json::Value = serde_json::from_str(&write(Format::Json)).unwrap();
        assert_eq!(value["output"], "one\ntwo \"2\"");
        assert_eq!(value["msg"], "exited with\ncode 1");
        assert_eq!(value["level"], "error");
    }
    #[test]
    fn l7_what_a_program_filters_on_is_a_field_in_text_and_json() {
        let fields = Fields {
            event: LogEvent::Event(Code::ExitFailed),
            pid: Some(17),
            check: None,
            code: Some(3),
            signal: Some(Signal::KILL),
            duration: Some(Duration::from_millis(5600)),
            cause: Some("out of \"memory\"".into()),
        };
        let own =
            Labels { level: Level::Error, job: Some("main"), writer: Writer::Supervisor(Some(&fields)) };
        let write = |format| {
            let mut form = EntryFormatter::new(format, false);
            form.label(STAMP, own);
            let mut out = Vec::new();
            form.entry("exited", &[], &mut out);
            String::from_utf8(out).unwrap()
        };
        let time = "2026-11-15T00:15:28.645445913Z";
        assert_eq!(write(Format::Default), format!("{time} main exited\n"), "only the sentence");
        assert_eq!(
            write(Format::Text),
            format!(
                "time=\"2026-11-15T00:15:28Z\" level=error msg=exited job=main pid=17 event=exitFailed code=3 signal=SIGKILL \
                 duration=5.600 cause=\"out of \\\"memory\\\"\"\n"
            )
        );
        let value: serde_json::Value = serde_json::from_str(&write(Format::Json)).unwrap();
        let expected = serde_json::json!({
            "time": time, "level": "error", "job": "main", "pid": 17, "event": "exitFailed", "code": 3,
            "signal": "SIGKILL", "duration": 5.6, "cause": "out of \"memory\"", "msg": "exited",
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn l1_the_level_has_a_colour_in_the_format_text_only() {
        let colours = [(Level::Debug, 37), (Level::Info, 36), (Level::Warn, 33), (Level::Error, 31)];
        for (level, colour) in colours {
            let labels = Labels { level, ..CHILD };
            let written = |format, colour| {
                let mut form = EntryFormatter::new(format, colour);
                form.label(STAMP, labels);
                let mut out = Vec::new();
                form.line(b"hello", &mut out);
                String::from_utf8(out).unwrap()
            };
            let name = String::from_utf8(level_name(level).to_vec()).unwrap();
            let coloured = written(Format::Text, true);
            assert!(
                coloured.contains(&format!(" level=\x1b[{colour}m{name}\x1b[0m msg=hello ")),
                "{coloured:?}"
            );
            assert!(!written(Format::Text, false).contains('\x1b'));
            for format in [Format::Default, Format::Json] {
                assert_eq!(written(format, true), written(format, false));
            }
        }
    }
}
