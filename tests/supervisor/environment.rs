//! The environment, the secrets and the privileges of processes (P10–P13).

use std::fs;

use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, is_root, modes, wait_until};

const PILOT: &str = env!("CARGO_BIN_EXE_containerpilot");

/// Runs a configuration whose jobs all complete, after a shell script; returns the log.
fn run(setup: &str, config: &str) -> String {
    Supervisor::with_setup(Mode::Plain, setup, config).wait().1
}

fn assert_lines(log: &str, lines: &[&str]) {
    for line in lines {
        assert!(log.lines().any(|found| found.ends_with(&format!(" {line}"))), "no `{line}`");
    }
}

#[test]
fn p10_job_wins_over_putenv_and_putenv_over_the_top_level() {
    let setup = "export OWN=own A=own; printf 'A=file\\nB=file\\nC=file\\nexport D=\"two words\" # x\\n' > @/top.env; \
                 printf 'E=job file\\nF=job file\\n' > @/job.env";
    let config = "{ envFile: '@/top.env', env: { B: 'top', C: 'top', E: 'top' }, jobs: [
        { name: 'set', exec: ['%BIN%', 'putenv', 'C=putenv', 'E=putenv'] },
        { name: 'show', exec: ['sh', '-c', 'for name in OWN A B C D E F; do eval echo $name=\\\\$$name; done'],
          envFile: ['@/job.env', { path: '@/missing.env', optional: true }], env: { F: 'job' },
          when: { source: 'set', once: 'exitSuccess' } } ] }";
    let log = run(setup, &config.replace("%BIN%", PILOT));
    assert_lines(&log, &["OWN=own", "A=file", "B=top", "C=putenv", "D=two words", "E=job file", "F=job"]);
}

#[test]
fn p10_reload_restarts_the_jobs_whose_file_has_changed() {
    let setup = "echo A=1 > @/a.env; echo B=1 > @/b.env";
    let config = "{ jobs: [
        { name: 'a', exec: ['sh', '-c', 'echo a is $A; exec sleep 1000'], envFile: '@/a.env' },
        { name: 'b', exec: ['sh', '-c', 'echo b is $B; exec sleep 1000'], envFile: '@/b.env' } ] }";
    let mut run = Supervisor::with_setup(Mode::Plain, setup, config);
    run.wait_for_lines("a is 1", 1);
    run.wait_for_lines("b is 1", 1);
    fs::write(run.file("a.env"), "A=2\n").unwrap();
    run.signal("-HUP");
    run.wait_for_line("a is 2");
    fs::write(run.file("a.env"), "hunter2\n").unwrap();
    run.signal("-HUP");
    let error = run.wait_for_line("a.env:1: expected NAME=value");
    assert!(!error.contains("hunter2"), "{error}");
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!((code, log.matches("b is ").count()), (0, 1));
    assert!(!log.contains("hunter2"));
}

#[test]
fn p11_secret_is_passed_and_never_shown() {
    let setup = "printf 'hunter2-hunter2\\n' > @/one; printf 'first line\\nsecond line\\n\\n' > @/two; chmod 600 @/one";
    let config = "{ secrets: { ONE: { file: '@/one' } }, jobs: [
        { name: 'length', exec: ['sh', '-c', 'echo ${#ONE} ${#TWO}'], secrets: { TWO: { file: '@/two' } } },
        { name: 'prints', exec: ['sh', '-c', 'echo \"a $ONE b\"; printf hunter2; printf -- -hunter; echo 2 c; echo \"$TWO\" >&2; exit 3'],
          secrets: { TWO: { file: '@/two' } } },
        { name: 'checked', exec: 'sleep 1000',
          health: { exec: ['sh', '-c', 'echo checked $ONE; exit 1'], interval: 1, ttl: 5 } },
        { name: 'user', exec: ['sh', '-c', 'echo user $ONE'] } ] }";
    for mode in modes() {
        let mut run = Supervisor::with_setup(mode, setup, config);
        run.wait_for_lines("checked ***", 1);
        run.wait_for_lines("user ***", 1);
        run.wait_for_lines("exited with code 3", 1);
        let socket = run.file("socket");
        let ask = |command: &[&str]| {
            let output = std::process::Command::new(PILOT)
                .args(command)
                .env("CONTAINERPILOT_SOCKET", &socket)
                .output_in_time()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let kept = ask(&["logs", "prints"]);
        assert!(kept.contains("a *** b") && kept.contains("*** c"), "{kept}");
        let shown = [kept, ask(&["status", "--format", "json"]), ask(&["explain", "prints"])].concat();
        run.signal("-TERM");
        let (_, log) = run.wait();
        assert_lines(&log, &["15 23", "a *** b", "*** c", "***"]);
        for secret in ["hunter2-", "first line", "second line"] {
            assert!(!log.contains(secret) && !shown.contains(secret), "{secret} in the log, or in\n{shown}");
        }
    }
}

#[test]
fn p11_secret_that_cannot_be_read_is_a_failed_start() {
    let setup = "head -c 70000 /dev/zero | tr '\\0' x > @/large; printf 'a\\0b' > @/binary; mkfifo @/fifo";
    let config = "{ jobs: [
        { name: 'missing', exec: 'true', secrets: { NAME: { file: '@/none' } } },
        { name: 'large', exec: 'true', secrets: { NAME: { file: '@/large' } } },
        { name: 'binary', exec: 'true', secrets: { A: { file: '/dev/null' }, NAME: { file: '@/binary' } } },
        { name: 'fifo', exec: 'true', secrets: { NAME: { file: '@/fifo' } } } ] }";
    let run = Supervisor::with_setup(Mode::Plain, setup, config);
    let folder = run.folder().to_owned();
    let log = run.wait().1;
    for (job, file, why) in [
        ("missing", "none", "no such file or directory"),
        ("large", "large", "larger than 64 KiB"),
        ("fifo", "fifo", "not a regular file"),
    ] {
        let message =
            format!("{job} failed to start: true: cannot read the secret NAME from {folder}/{file}: {why}");
        assert!(log.contains(&message), "no `{message}`");
    }
    assert!(log.contains("cannot read the secret A from /dev/null: not a regular file"));
}

#[test]
fn p11_idle_supervisor_has_no_thread_for_secrets() {
    let setup = "echo hunter2 > @/one";
    let config = "{ jobs: [ { name: 'main', exec: 'sleep 1000', secrets: { ONE: { file: '@/one' } } } ] }";
    let mut run = Supervisor::with_setup(Mode::Plain, setup, config);
    run.wait_for_line("main started");
    let names = || -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", run.pid())).unwrap();
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).collect()
    };
    wait_until("the thread ends", || !names().iter().any(|name| name.contains("secrets")));
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn p12_every_process_gets_the_path_of_the_control_socket() {
    let config = "{ control: { socket: '@/other' }, jobs: [
        { name: 'job', exec: ['sh', '-c', 'echo job $CONTAINERPILOT_SOCKET; exec sleep 1000'],
          health: { exec: ['sh', '-c', 'echo check $CONTAINERPILOT_SOCKET'], interval: 1, ttl: 5 } },
        { name: 'ping', exec: ['%BIN%', 'ping'] } ] }";
    let mut run = Supervisor::with_setup(
        Mode::Plain,
        "export CONTAINERPILOT_SOCKET=@/inherited",
        &config.replace("%BIN%", PILOT),
    );
    let path = run.file("other").display().to_string();
    run.wait_for_lines(&format!("job {path}"), 1);
    run.wait_for_lines(&format!("check {path}"), 1);
    run.wait_for_lines("ping exited with code 0", 1);
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
    // A single program has no control socket.
    let single = Supervisor::with_args(Mode::Plain, &["--", "sh", "-c", "echo \"[$CONTAINERPILOT_SOCKET]\""]);
    assert_eq!(single.wait(), (0, "[]".to_owned()));
}

#[test]
fn p12_nested_supervisor_runs_beside_the_socket_of_the_outer_one() {
    let config = "{ jobs: [
        { name: 'inner', exec: ['%BIN%', '-config', '@/inner.json5'] } ] }";
    let setup = "echo \"{ jobs: [{ name: 'nested', exec: 'echo it runs' }] }\" > @/inner.json5";
    let log = run(setup, &config.replace("%BIN%", PILOT));
    assert!(log.contains("no control socket") && log.contains("it runs"));
}

#[test]
fn p13_nice_value_oom_score_and_capabilities() {
    let config = "{ jobs: [
        { name: 'a', exec: ['sh', '-c', 'echo nice $(nice) oom $(cat /proc/self/oom_score_adj)'], nice: 7, oomScoreAdj: 300 },
        { name: 'b', exec: 'sleep 1000' } ] }";
    let mut run = Supervisor::start(Mode::Plain, config);
    run.wait_for_line("nice 7 oom 300");
    let own = |pid: &str| fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    assert_eq!(own(&run.pid().to_string()), own("self"), "the supervisor keeps its own score");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
    if !is_root() {
        skip("needs root");
        return;
    }
    let show = "[\"grep\", \"^Cap\", \"/proc/self/status\"]";
    let config = format!(
        "{{ jobs: [ {{ name: 'user', exec: {show}, user: 'daemon', capabilities: ['NET_BIND_SERVICE', 'cap_chown'], noNewPrivileges: true }},
            {{ name: 'root', exec: {show}, capabilities: ['NET_BIND_SERVICE', 'CHOWN'] }},
            {{ name: 'none', exec: {show}, capabilities: [] }},
            {{ name: 'daemon', exec: {show}, user: 'daemon', group: 'mail', capabilities: [], nice: 1, oomScoreAdj: 1 }} ] }}"
    );
    let (code, log) = Supervisor::start(Mode::Plain, &config).wait();
    assert_eq!(code, 0);
    for (job, value) in [
        ("user", "0000000000000401"),
        ("root", "0000000000000401"),
        ("none", "0000000000000000"),
        ("daemon", "0000000000000000"),
    ] {
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            let found = log.lines().any(|line| {
                line.split(' ').nth(1) == Some(job) && line.ends_with(&format!("{set}:\t{value}"))
            });
            assert!(found, "{job} {set} {value}");
        }
    }
    // A capability that the supervisor does not have cannot be kept.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:\t")).unwrap();
    let permitted = u64::from_str_radix(permitted, 16).unwrap();
    let names = containerpilot_core::plan::Capabilities::NAMES;
    if let Some((_, name)) = names.iter().enumerate().find(|(number, _)| permitted & (1 << number) == 0) {
        let config = format!("{{ jobs: [{{ name: 'a', exec: 'true', capabilities: ['{name}'] }}] }}");
        let log = Supervisor::start(Mode::Plain, &config).wait().1;
        assert!(log.contains(&format!(
            "true: cannot keep capability {name}: EPERM (the supervisor does not have it"
        )));
    }
}
