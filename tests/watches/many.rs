//! A thousand watches of each kind: what they cost.

use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use crate::support::deadline::InTime;
use crate::support::idle::wait_until_idle_for;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

/// A number of `/proc/PID/status`.
fn status(pid: u32, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn d13_a_thousand_watches_of_each_kind_are_small_and_wake_up_only_when_they_are_due() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream);
        }
    });
    let config = |count: usize| {
        let mut watches = String::new();
        for nth in 0..count {
            // Localhost is known without a look-up, so no name server is needed.
            let _ = write!(
                watches,
                "{{ name: 't{nth}', tcp: '{address}', interval: 600 }}, {{ name: 'h{nth}', http: 'http://{address}/{nth}', interval: 600 }},
                 {{ name: 'd{nth}', dns: 'localhost', interval: 600 }}, {{ name: 'f{nth}', file: '@/file-{nth}' }},"
            );
        }
        format!(
            "{{ control: {{ socket: '@/control' }}, watches: [{watches} {{ name: 'last', tcp: '{address}', interval: 600 }}],
                jobs: [{{ name: 'main', exec: 'sleep 1000' }},
                       {{ name: 'told', exec: 'touch @/told', when: {{ source: 'watch.last', once: 'healthy' }} }}] }}"
        )
    };
    let settled = |count: usize| {
        let run = Supervisor::start(Mode::Plain, &config(count));
        wait_until("all watches were polled", || {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_containerpilot"));
            command.args(["status", "--format", "json"]).env("CONTAINERPILOT_SOCKET", run.file("control"));
            let text = String::from_utf8(command.output_in_time().unwrap().stdout).unwrap();
            text.contains("\"watches\"") && !text.contains("\"healthy\":null,\"state\"")
        });
        run
    };
    let (few, many) = (settled(1), settled(1000));
    let memory = |run: &Supervisor| status(run.pid(), "RssAnon:");
    let cost = memory(&many).saturating_sub(memory(&few));
    println!("4,000 watches cost {cost} KiB");
    assert!(cost < 40 * 1024, "4,000 watches cost {cost} KiB");
    // Nothing is due for ten minutes. The test's own commands and the release of memory after the start are over.
    wait_until_idle_for(Duration::from_secs(3), many.pid());
}
