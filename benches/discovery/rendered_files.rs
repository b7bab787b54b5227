//! From a change of a key in Consul to a rendered file, to SIGHUP, and to the answer of nginx (D15).

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::support::consul::{self, Agent};
use crate::support::supervisor::{Mode, Supervisor, wait_until};
use crate::{QUIET, monotonic, report};

const KEY: &str = "/v1/kv/text";

/// A process that writes the time of every SIGHUP.
pub(crate) fn receive(file: &Path) {
    let mut hangup = SigSet::empty();
    hangup.add(Signal::SIGHUP);
    hangup.thread_block().unwrap();
    let mut file = File::options().create(true).append(true).open(file).unwrap();
    println!("ready");
    loop {
        hangup.wait().unwrap();
        writeln!(file, "{}", monotonic()).unwrap();
    }
}

/// Measures our supervisor, without and with a test of the file, and a loop that polls every second.
pub(crate) fn compare(rounds: usize) {
    let agent = Agent::dev();
    agent.put(KEY, &0.into());
    supervised(&agent, "rendered file", "", rounds);
    let test = "test: ['sh', '-c', 'exec NGINX -t -q -e stderr -c $CONTAINERPILOT_FILE'],";
    let test = test.replace("NGINX", nginx().to_str().unwrap());
    supervised(&agent, "rendered file with `nginx -t`", &test, rounds);
    polled(&agent, rounds / 5 * 2);
}

fn supervised(agent: &Agent, what: &str, test: &str, rounds: usize) {
    let ip = consul::own_address();
    let template = format!(
        "daemon off; pid @/pid; error_log stderr notice; events {{}} http {{ access_log off; \
         client_body_temp_path @/a; proxy_temp_path @/b; fastcgi_temp_path @/c; uwsgi_temp_path @/d; scgi_temp_path @/e; \
         server {{ listen {ip}:8080; return 200 \\\"is {{{{`{{{{ watch \"text\" }}}}`}}}};\\\"; }} }}"
    );
    let action = |to: &str| {
        format!(
            "{{ name: 'tell-{to}', do: {{ signal: 'HUP', to: '{to}' }}, when: {{ source: 'file.conf', each: 'changed' }},
                requires: ['{to}'] }}"
        )
    };
    let config = format!(
        "{{ consul: '{}', stopTimeout: 5, control: {{ socket: '@/control' }},
            watches: [{{ name: 'text', key: 'text', interval: 1 }}],
            files: [{{ name: 'conf', {test} template: '{template}', to: '@/nginx.conf' }}],
            jobs: [{{ name: 'receiver', exec: ['{}', '--receive', '@/times'], ready: {{ line: '^ready$' }} }},
                   {{ name: 'nginx', exec: ['{}', '-c', '@/nginx.conf', '-e', 'stderr'], requires: ['file.conf'],
                      ready: {{ line: 'start worker process(es)?$' }} }}, {}, {}] }}",
        agent.address(),
        std::env::current_exe().unwrap().display(),
        nginx().display(),
        action("receiver"),
        action("nginx"),
    );
    let run = Supervisor::start(Mode::Plain, &config);
    let served = |text: &str| {
        let answer = consul::http(&format!("{ip}:8080"), "GET", "/", None, "");
        answer.is_ok_and(|(_, body)| body == format!("is {text};"))
    };
    let current = || agent.get(&format!("{KEY}?raw=1")).to_string();
    wait_until("nginx answers", || served(&current()));
    let mut answered = Vec::new();
    let times = changes(agent, &run.file("times"), rounds, 0, |text, started| {
        wait_until("nginx answers with the new text", || served(text));
        answered.push(monotonic() - started);
    });
    print(what, times);
    report(&format!("{what}, nginx answers with the new text"), answered.split_off(1));
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

/// The same without a supervisor: a loop that queries every second, writes the file and sends SIGHUP, as a job of ContainerPilot 3.8
/// does with its shortest interval.
fn polled(agent: &Agent, rounds: usize) {
    let folder = consul::folder();
    let (times, file) = (folder.join("times"), folder.join("file"));
    let mut receiver = Command::new(std::env::current_exe().unwrap())
        .args(["--receive".as_ref(), times.as_os_str()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(receiver.id()).unwrap());
    wait_until("the receiver is ready", || times.exists());
    let (stop, stopped) = mpsc::channel::<()>();
    let address = agent.address();
    let poller = std::thread::spawn(move || {
        let query = || consul::http(&address, "GET", &format!("{KEY}?raw=1"), None, "").unwrap().1;
        let mut known = query();
        while stopped.recv_timeout(Duration::from_secs(1)).is_err() {
            let found = query();
            if found != known {
                fs::write(file.with_extension("new"), &found).unwrap();
                fs::rename(file.with_extension("new"), &file).unwrap();
                kill(pid, Signal::SIGHUP).unwrap();
                known = found;
            }
        }
    });
    let found = changes(agent, &times, rounds, 370, |_, _| {});
    print("file written by polling at 1 s", found);
    stop.send(()).unwrap();
    poller.join().unwrap();
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    fs::remove_dir_all(folder).unwrap();
}

/// Changes the key, and waits for SIGHUP after each change. Returns pairs: the time until a blocking query of this process was
/// answered, which is the floor, and until SIGHUP was received.
fn changes(
    agent: &Agent,
    file: &Path,
    rounds: usize,
    spread: u64,
    mut after: impl FnMut(&str, f64),
) -> Vec<(f64, f64)> {
    let stamps = || -> Vec<f64> {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let mut times = Vec::new();
    for round in 0..=rounds {
        let before = stamps().len();
        let answered = blocking_query(agent);
        // A varying pause, so that it does not coincide with a poll. The query is waiting by then, after a quiet
        // interval.
        std::thread::sleep(QUIET + Duration::from_millis(spread * (round as u64 % 7)));
        let text = format!("{}", std::process::id() as usize * 1_000 + round);
        let started = monotonic();
        agent.put(KEY, &text.parse::<u64>().unwrap().into());
        wait_until("SIGHUP is received", || stamps().len() > before);
        let floor = answered.recv_timeout(Duration::from_secs(10)).unwrap() - started;
        after(&text, started);
        // The first change is not counted: everything is cold.
        if round > 0 {
            times.push((floor, stamps()[before] - started));
        }
    }
    times
}

/// Sends a blocking query for the next change; receives when it was answered.
fn blocking_query(agent: &Agent) -> Receiver<f64> {
    let index = agent.get(KEY)[0]["ModifyIndex"].as_u64().unwrap();
    let (address, (sender, receiver)) = (agent.address(), mpsc::channel());
    std::thread::spawn(move || {
        consul::http(&address, "GET", &format!("{KEY}?index={index}&wait=60s"), None, "").unwrap();
        sender.send(monotonic())
    });
    receiver
}

fn print(what: &str, times: Vec<(f64, f64)>) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[(values.len() - 1) / 2]
    };
    let (floor, signal): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
    println!("{what}, SIGHUP: {:.1} times the floor", median(signal.clone()) / median(floor.clone()));
    report(&format!("{what}, floor: answer to a blocking query"), floor);
    report(&format!("{what}, SIGHUP"), signal);
}

fn nginx() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/nginx");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../nginx");
    let output = Command::new(script).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}
