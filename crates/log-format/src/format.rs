//! The form of an entry (L1).
//!
//! An entry is head, text and foot. Head and foot depend on the time and on who speaks; they are made once for all the
//! lines of one read, so that a line costs three copies and nothing else.
//!
//! ```text
//! default  2026-11-15T00:15:28.645445913Z main 17 text        a check: main/check; the supervisor's own: no pid
//! text     time="2026-…" level=info msg="text" job=main pid=17 check=web
//! json     {"time":"2026-…","level":"info","job":"main","pid":17,"check":"web","msg":"text"}
//! ```
//!
//! `default` passes a child's bytes on as they are; the other two escape whatever could forge an entry. The
//! supervisor's own messages are escaped in all three.

use std::io::Write;

use containerpilot_core::plan::{Format, Level};

use super::clock::Stamp;
use super::escape;

/// Who speaks, and how much it matters.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// How much it matters.
    pub level: Level,
    /// Which job it is about.
    pub job: Option<&'a str>,
    /// The process that has written it; the supervisor's own entries have none.
    pub pid: Option<u32>,
    /// Which of the job's checks has written it.
    pub check: Option<&'a str>,
}

/// Head and foot of the entries that are written just now.
#[derive(Clone, Debug)]
pub struct Form {
    format: Format,
    head: Vec<u8>,
    foot: Vec<u8>,
}

impl Form {
    /// Of this format, for nobody yet.
    pub fn new(format: Format) -> Self {
        Self { format, head: Vec::new(), foot: Vec::new() }
    }

    /// Goes on in another format; head and foot are to be made anew.
    pub fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    /// Makes head and foot for the entries to come.
    pub fn label(&mut self, stamp: &Stamp, labels: Labels<'_>) {
        let Self { format, head, foot } = self;
        head.clear();
        foot.clear();
        // Writes to a vector cannot fail.
        match format {
            Format::Default => {
                head.extend_from_slice(stamp);
                head.push(b' ');
                if let Some(job) = labels.job {
                    escape::plain(job.as_bytes(), head);
                    if let Some(check) = labels.check {
                        head.push(b'/');
                        escape::plain(check.as_bytes(), head);
                    }
                    head.push(b' ');
                }
                if let Some(pid) = labels.pid {
                    let _ = write!(head, "{pid} ");
                }
            }
            Format::Text => {
                begin([b"time=\"", stamp, b"\" level=", level_name(labels.level), b" msg="], head);
                for (key, value) in [("job", labels.job), ("check", labels.check)] {
                    let Some(value) = value else { continue };
                    let _ = write!(foot, " {key}=");
                    logfmt_value(value.as_bytes(), foot);
                    if let (Some(pid), "job") = (labels.pid, key) {
                        let _ = write!(foot, " pid={pid}");
                    }
                }
            }
            Format::Json => {
                let level = level_name(labels.level);
                begin([b"{\"time\":\"", stamp, b"\",\"level\":\"", level, b"\","], head);
                json_member("job", labels.job, head);
                if let Some(pid) = labels.pid {
                    let _ = write!(head, "\"pid\":{pid},");
                }
                json_member("check", labels.check, head);
                head.extend_from_slice(b"\"msg\":\"");
            }
        }
    }

    /// Appends the entry of one line of a child.
    pub fn line(&self, text: &[u8], out: &mut Vec<u8>) {
        match self.format {
            Format::Default => {
                out.extend_from_slice(&self.head);
                out.extend_from_slice(text);
                out.push(b'\n');
            }
            Format::Text => {
                out.extend_from_slice(&self.head);
                logfmt_value(text, out);
                out.extend_from_slice(&self.foot);
                out.push(b'\n');
            }
            Format::Json => {
                out.extend_from_slice(&self.head);
                escape::json(text, out);
                out.extend_from_slice(b"\"}\n");
            }
        }
    }

    /// Appends the entries of whole lines, each with its newline, until `out` has so many bytes, or up to a line that is
    /// longer than `long`. Returns how many bytes of the lines that were.
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

    /// Begins an entry whose text comes in pieces.
    pub fn open(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        if self.format == Format::Text {
            out.push(b'"');
        }
    }

    /// Appends a piece of the text; pieces end where letters end.
    pub fn piece(&self, text: &[u8], out: &mut Vec<u8>) {
        match self.format {
            Format::Default => out.extend_from_slice(text),
            Format::Text => escape::quoted(text, out),
            Format::Json => escape::json(text, out),
        }
    }

    /// Ends an entry whose text came in pieces; says so if the line itself goes on in the next entry.
    pub fn close(&self, goes_on: bool, out: &mut Vec<u8>) {
        match self.format {
            Format::Default if goes_on => out.extend_from_slice(b" [...]"),
            Format::Default => {}
            Format::Text => {
                out.push(b'"');
                out.extend_from_slice(&self.foot);
                if goes_on {
                    out.extend_from_slice(b" partial=true");
                }
            }
            Format::Json if goes_on => out.extend_from_slice(b"\",\"partial\":true}"),
            Format::Json => out.extend_from_slice(b"\"}"),
        }
        out.push(b'\n');
    }

    /// Appends an entry of the supervisor's own, with the last lines of a job if there are any (L6).
    pub fn entry(&self, message: &str, output: &[String], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
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
                out.extend_from_slice(&self.foot);
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

/// Appends a value of logfmt, between quotes if it needs them.
fn logfmt_value(text: &[u8], out: &mut Vec<u8>) {
    if escape::is_bare(text) {
        out.extend_from_slice(text);
    } else {
        out.push(b'"');
        escape::quoted(text, out);
        out.push(b'"');
    }
}

/// Appends what a head begins with.
fn begin(parts: [&[u8]; 5], head: &mut Vec<u8>) {
    parts.into_iter().for_each(|part| head.extend_from_slice(part));
}

/// Appends a member of a JSON object, if there is a value, and a comma behind it.
fn json_member(key: &str, value: Option<&str>, out: &mut Vec<u8>) {
    let Some(value) = value else { return };
    // Writes to a vector cannot fail.
    let _ = write!(out, "\"{key}\":\"");
    escape::json(value.as_bytes(), out);
    out.extend_from_slice(b"\",");
}

/// A level by the name that logrus has for it.
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
    use super::*;

    const STAMP: &Stamp = b"2026-11-15T00:15:28.645445913Z";
    const CHILD: Labels<'_> = Labels { level: Level::Info, job: Some("main"), pid: Some(17), check: None };

    fn line(format: Format, labels: Labels<'_>, text: &[u8]) -> String {
        let mut form = Form::new(format);
        form.label(STAMP, labels);
        let mut out = Vec::new();
        form.line(text, &mut out);
        let mut pieces = Vec::new();
        form.open(&mut pieces);
        form.piece(text, &mut pieces);
        form.close(false, &mut pieces);
        if format != Format::Text || out.contains(&b' ') && !escape::is_bare(text) {
            assert_eq!(out, pieces, "one form, however the text comes");
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn l3_lines_end_where_there_is_no_more_room_or_one_is_long() {
        let mut form = Form::new(Format::Default);
        form.label(STAMP, CHILD);
        let mut out = Vec::new();
        let whole = b"a\nb\nlong line\nc\n";
        assert_eq!(form.lines(whole, 1000, 4, &mut out), 4, "up to the long one");
        assert_eq!(form.lines(b"long line\nc\n", 1000, 4, &mut out), 0);
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 2);
        out.clear();
        assert_eq!(form.lines(whole, 50, 100, &mut out), 4, "no more than there is room for");
        assert_eq!(form.lines(b"", 50, 100, &mut out), 0);
    }

    #[test]
    fn l1_default_is_time_job_pid_text() {
        let time = "2026-11-15T00:15:28.645445913Z";
        assert_eq!(line(Format::Default, CHILD, b"hello  you"), format!("{time} main 17 hello  you\n"));
        let check = Labels { check: Some("web"), ..CHILD };
        assert_eq!(line(Format::Default, check, b""), format!("{time} main/web 17 \n"));
        let forged = Labels { job: Some("a\nb"), ..CHILD };
        assert_eq!(line(Format::Default, forged, b"x"), format!("{time} a\\nb 17 x\n"));
    }

    #[test]
    fn l1_text_is_what_logrus_writes() {
        let time = "time=\"2026-11-15T00:15:28.645445913Z\"";
        assert_eq!(
            line(Format::Text, CHILD, b"hello"),
            format!("{time} level=info msg=hello job=main pid=17\n")
        );
        let check = Labels { level: Level::Warn, check: Some("web one"), ..CHILD };
        assert_eq!(
            line(Format::Text, check, b"a=\"b\"\r\x1b"),
            format!("{time} level=warning msg=\"a=\\\"b\\\"\\r\\x1b\" job=main pid=17 check=\"web one\"\n")
        );
    }

    #[test]
    fn l1_json_is_one_object_a_line() {
        let check = Labels { check: Some("web"), ..CHILD };
        let text = line(Format::Json, check, b"say \"hi\"\0\xff");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "time": "2026-11-15T00:15:28.645445913Z", "level": "info", "job": "main", "pid": 17, "check": "web",
            "msg": "say \"hi\"\0\u{fffd}",
        });
        assert_eq!(value, expected);
        assert_eq!(text.matches('\n').count(), 1);
    }

    #[test]
    fn l6_an_entry_can_carry_the_last_lines() {
        let own = Labels { level: Level::Error, job: Some("main"), pid: None, check: None };
        let output = ["one".to_owned(), "two \"2\"".to_owned()];
        let write = |format| {
            let mut form = Form::new(format);
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
}
