//! Watches that need no catalog, with real files, servers and a real name server (D12, D13).

mod dns;
mod example;
mod files;
mod many;
mod peers;

use std::net::{SocketAddr, TcpListener};

use crate::support::deadline::InTime;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

/// Listens again at an address whose listener was dropped.
fn listen_again(address: SocketAddr) -> TcpListener {
    let mut listener = None;
    wait_until("the port is free again", || {
        listener = TcpListener::bind(address).ok();
        listener.is_some()
    });
    listener.unwrap()
}

/// A supervisor with one watch `it`, whose events and variable are recorded in the file `seen`.
struct Watching {
    run: Supervisor,
}

/// A configuration with the watch `it`. In it, `@/` stands for the directory of the test.
fn config(watch: &str) -> String {
    let job = |code: &str| {
        format!(
            "{{ name: 'on-{code}', exec: ['sh', '-c', 'printf \"%s\\n\" \"{code} $CONTAINERPILOT_WATCH_IT\" >> @/seen'],
                when: {{ source: 'watch.it', each: '{code}' }} }}"
        )
    };
    format!(
        "{{ control: {{ socket: '@/control' }}, stopTimeout: 20, watches: [{{ name: 'it', {watch} }}],
            jobs: [{{ name: 'main', exec: 'sleep 1000' }}, {}, {}, {}] }}",
        job("changed"),
        job("healthy"),
        job("unhealthy")
    )
}

impl Watching {
    fn start(watch: &str) -> Self {
        Self { run: Supervisor::start(Mode::Plain, &config(watch)) }
    }

    /// What was recorded: `CODE VALUE`. The jobs of different codes run at the same time, so the order between them is
    /// not certain.
    fn seen(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.run.file("seen")).unwrap_or_default();
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until these lines were recorded since the last call, in any order, and nothing else.
    fn wait_for(&self, expected: &[&str]) {
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        let sorted = || {
            let mut seen = self.seen();
            seen.sort_unstable();
            seen
        };
        wait_until(&format!("{expected:?} are recorded, not {:?}", sorted()), || sorted() == expected);
        std::fs::write(self.run.file("seen"), "").unwrap();
    }

    fn command(&self, args: &[&str]) -> String {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_containerpilot"));
        let output = command
            .args(args)
            .env("CONTAINERPILOT_SOCKET", self.run.file("control"))
            .output_in_time()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until `explain` begins with a sentence.
    fn wait_for_explanation(&self, text: &str) {
        wait_until(&format!("`{text}` is explained"), || {
            self.command(&["explain", "watch.it"]).starts_with(text)
        });
    }
}
