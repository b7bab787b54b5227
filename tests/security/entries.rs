//! What others say stays inside the entry that says it (L1, L3).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::support::{As, Supervisor, until};

/// Lines that look like entries, end lines in unusual ways, steer a terminal, are no text or are very long.
fn hostile() -> Vec<Vec<u8>> {
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

/// What the supervisor writes when a job writes those lines.
fn logged(format: &str) -> Vec<String> {
    let (folder, number) = (std::env::temp_dir(), std::process::id());
    let file = folder.join(format!("containerpilot-hostile-{number}-{format}"));
    std::fs::write(&file, hostile().join(&b'\n')).unwrap();
    let config = format!(
        "{{ logging: {{ format: '{format}' }}, jobs: [{{ name: 'evil', exec: ['cat', '{}'] }}] }}",
        file.display()
    );
    let (code, log) = Supervisor::start(As::Plain, &config).end();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(code, 0);
    log.split('\n').map(str::to_owned).collect()
}

/// Whether something could end a line or steer a terminal.
fn is_visible(line: &str) -> bool {
    !line.contains(|letter: char| {
        letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
    })
}

#[test]
fn l3_no_line_of_a_job_can_forge_an_entry_in_json() {
    let lines = logged("json");
    let mut said = Vec::new();
    for line in &lines {
        assert!(is_visible(line), "{line:?}");
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let keys: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(
            entry["level"] == "info"
                && keys.iter().all(|key| ["time", "level", "job", "pid", "msg"].contains(key))
        );
        if entry["pid"].is_u64() {
            assert_eq!(entry["job"], "evil");
            said.push(entry["msg"].as_str().unwrap().to_owned());
        }
    }
    let written: Vec<String> =
        hostile().iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    assert_eq!(said, written, "each line is one entry, and says what was written");
}

#[test]
fn l3_no_line_of_a_job_can_forge_an_entry_in_text() {
    let lines = logged("text");
    let said = lines.iter().filter(|line| line.contains(" pid="));
    assert_eq!(said.count(), hostile().len(), "each line is one entry");
    for line in &lines {
        assert!(is_visible(line), "{line:?}");
        // Where a value is quoted, only its own end is not escaped: what is left has no other value.
        let mut rest = String::new();
        for (nth, part) in line.replace("\\\\", "").replace("\\\"", "").split('"').enumerate() {
            rest += if nth % 2 == 0 { part } else { "" };
        }
        let keys: Vec<&str> = rest.split_whitespace().map(|word| word.split('=').next().unwrap()).collect();
        assert!(
            matches!(
                keys.as_slice(),
                ["time", "level", "msg"]
                    | ["time", "level", "msg", "job"]
                    | ["time", "level", "msg", "job", "pid"]
            ),
            "{line}"
        );
        assert!(rest.contains(" level=info "), "{line}");
    }
}

#[test]
fn l3_in_the_default_form_every_line_has_its_own_head_and_the_bytes_as_they_were() {
    let lines = logged("default");
    let said: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split_once("Z evil ")?.1.split_once(' '))
        .filter(|(pid, _)| pid.parse::<u32>().is_ok())
        .map(|(_, text)| text)
        .collect();
    let written: Vec<String> =
        hostile().iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    assert_eq!(said, written);
    for line in &lines {
        let time = line.split(' ').next().unwrap();
        assert!(time.len() == 30 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{line:?}");
    }
}

#[test]
fn l3_what_a_client_or_consul_says_stays_inside_the_entry_that_tells_of_it() {
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
        let mut run = Supervisor::start(As::Plain, &config);
        let line = run.line("forged by consul");
        assert!(is_visible(&line), "{line:?}");
        let socket = run.file("socket");
        until("there is no socket", || UnixStream::connect(&socket).is_ok());
        let mut client = UnixStream::connect(&socket).unwrap();
        write!(client, "POST /v3/jobs/x%0A2026-11-15T00%3A00%3A00Z%20main%1B%5B2J%C2%85forged-by-client/start HTTP/1.0\r\n\r\n").unwrap();
        let line = run.line("forged-by-client");
        assert!(is_visible(&line) && line.contains("start of x"), "{line:?}");
        run.signal("-TERM");
        assert_eq!(run.end().0, 0);
    }
}
