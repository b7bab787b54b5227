//! Output of jobs, clients and Consul cannot forge or break log entries (L1, L3).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::support::supervisor::{Mode, Supervisor, wait_until};

/// Lines that imitate log entries, contain unusual line breaks, terminal control codes or invalid UTF-8, or are very
/// long.
fn hostile_lines() -> Vec<Vec<u8>> {
    let time = "2026-11-15T00:00:00.000000000Z";
    let mut lines: Vec<Vec<u8>> = [
        format!("\r{time} main 1 forged"),
        format!("\",\"level\":\"fatal\",\"msg\":\"forged\"}}\r{{\"time\":\"{time}\",\"msg\":\"forged\"}}"),
        format!("x\" level=fatal msg=\"forged\" job=main\rtime=\"{time}\" level=fatal msg=forged"),
        format!("a\u{85}{time} main 1 forged\u{2028}forged\u{2029}forged\u{b}forged\u{c}forged"),
        "\u{1b}[2J\u{1b}]0;forged\u{7}\u{9b}31m\u{202e}degrof\u{8}\u{8}\u{7f}".to_owned(),
    ]
    .map(String::into_bytes)
    .into();
    lines.push((0..=255).filter(|byte| *byte != b'\n').collect());
    lines.push(vec![b'x'; 200_000]);
    lines.push(b"\xff\xfe\xc3\xf0\x9f".to_vec());
    lines
}

/// The log of a job that writes these lines.
fn log_of_hostile_job(format: &str) -> Vec<String> {
    let (folder, number) = (std::env::temp_dir(), std::process::id());
    let file = folder.join(format!("containerpilot-hostile-{number}-{format}"));
    std::fs::write(&file, hostile_lines().join(&b'\n')).unwrap();
    let config = format!(
        "{{ logging: {{ format: '{format}' }}, jobs: [{{ name: 'evil', exec: ['cat', '{}'] }}] }}",
        file.display()
    );
    let (code, log) = Supervisor::start(Mode::Plain, &config).wait();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(code, 0);
    let mut lines = log.split('\n').map(str::to_owned);
    assert!(lines.next().is_some_and(|first| first.contains("control: serving at ")));
    lines.collect()
}

/// Whether a line contains no character that ends a line or controls a terminal.
fn is_printable(line: &str) -> bool {
    !line.contains(|letter: char| {
        letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
    })
}

#[test]
fn l3_job_output_cannot_forge_an_entry_in_the_json_format() {
    let lines = log_of_hostile_job("json");
    let mut messages = Vec::new();
    for line in &lines {
        assert!(is_printable(line), "{line:?}");
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let keys: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(entry["level"], "info", "{line}");
        if entry["event"].is_string() {
            let fields = ["time", "level", "job", "pid", "event", "code", "duration", "cause", "msg"];
            assert!(keys.iter().all(|key| fields.contains(key)), "{line}");
        } else {
            assert_eq!(keys, ["job", "level", "msg", "pid", "stream", "time"]);
            assert!(entry["job"] == "evil" && entry["pid"].is_u64(), "{line}");
            messages.push(entry["msg"].as_str().unwrap().to_owned());
        }
    }
    let written: Vec<String> =
        hostile_lines().iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    assert_eq!(messages, written, "each line must be one entry with its text unchanged");
}

#[test]
fn l3_job_output_cannot_forge_an_entry_in_the_text_format() {
    let lines = log_of_hostile_job("text");
    let mut messages = 0;
    for line in &lines {
        assert!(is_printable(line), "{line:?}");
        // Removes quoted values, whose only unescaped quote is the closing one; keys remain.
        let mut rest = String::new();
        for (nth, part) in line.replace("\\\\", "").replace("\\\"", "").split('"').enumerate() {
            rest += if nth % 2 == 0 { part } else { "" };
        }
        let keys: Vec<&str> = rest.split_whitespace().map(|word| word.split('=').next().unwrap()).collect();
        match keys.as_slice() {
            ["time", "level", "msg", "job", "pid", "stream"] => messages += 1,
            ["time", "level", "msg", own @ ..] => {
                let fields = ["job", "pid", "event", "code", "duration", "cause"];
                assert!(own.contains(&"event") && own.iter().all(|key| fields.contains(key)), "{line}");
            }
            _ => panic!("{line}"),
        }
        assert!(rest.contains(" level=info "), "{line}");
    }
    assert_eq!(messages, hostile_lines().len(), "each line must be one entry");
}

#[test]
fn l3_every_line_of_the_default_format_has_a_prefix_and_unchanged_bytes() {
    let lines = log_of_hostile_job("default");
    let messages: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split_once("Z evil ")?.1.split_once(' '))
        .filter(|(pid, _)| pid.parse::<u32>().is_ok())
        .map(|(_, text)| text)
        .collect();
    let written: Vec<String> =
        hostile_lines().iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    assert_eq!(messages, written);
    for line in &lines {
        let time = line.split(' ').next().unwrap();
        assert!(time.len() == 30 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{line:?}");
    }
}

#[test]
fn l3_input_of_clients_and_consul_cannot_forge_log_entries() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let body = "no\x1b[2J\r\u{85}\u{9b}1mforged by consul";
            let _ = write!(
                stream,
                "HTTP/1.1 500 No\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    for format in ["default", "text", "json"] {
        let config = format!(
            "{{ consul: '{address}', watches: [{{ name: 'db', interval: 1 }}], logging: {{ format: '{format}' }},
                jobs: [{{ name: 'main', exec: 'sleep 1000' }}] }}"
        );
        let mut run = Supervisor::start(Mode::Plain, &config);
        let line = run.wait_for_line("forged by consul");
        assert!(is_printable(&line), "{line:?}");
        let socket = run.file("socket");
        wait_until("the control socket accepts connections", || UnixStream::connect(&socket).is_ok());
        let mut client = UnixStream::connect(&socket).unwrap();
        write!(client, "POST /v3/jobs/x%0A2026-11-15T00%3A00%3A00Z%20main%1B%5B2J%C2%85forged-by-client/start HTTP/1.0\r\n\r\n").unwrap();
        let line = run.wait_for_line("forged-by-client");
        assert!(is_printable(&line) && line.contains("start of x"), "{line:?}");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}
