//! `exec`: a command with the environment of a job.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::{decode, run_ok, supervisor, wait};
use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::{Supervisor, child_pids, is_root, wait_until};

/// `exec JOB -- PROGRAM…` against that supervisor.
fn exec(it: &Supervisor, job: &str, program: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    command.args(["exec", job, "-socket"]).arg(it.file("socket")).arg("--").args(program);
    command.stdin(Stdio::null());
    command
}

fn run(it: &Supervisor, job: &str, program: &[&str]) -> (i32, String, String) {
    decode(&exec(it, job, program).output_in_time().unwrap())
}

fn lines(text: &str) -> BTreeSet<String> {
    // They belong to one process, or to a run of the job.
    let own = ["_=", "PWD=", "OLDPWD=", "SHLVL=", "TERM=", "CONTAINERPILOT_RUN=", "NOTIFY_SOCKET="];
    let shared = |line: &&str| !own.iter().any(|name| line.starts_with(name)) && !line.contains("_PID=");
    text.lines().filter(shared).map(str::to_owned).collect()
}

#[test]
fn x12_exec_has_the_environment_directory_and_limits_of_the_job() {
    let it = supervisor(
        "{ env: { EVERY: 'process' }, jobs: [{ name: 'web', exec: ['sh', '-c', 'env > @/env; exec sleep 1000'],
           cwd: '@/', env: { GREETING: 'two words' }, umask: '0027', limits: { nofile: [100, 200] }, nice: 5,
           secrets: { TOKEN: { file: '@/secret' } }, ready: 'notify', port: 80, interfaces: 'static:10.1.2.3',
           health: { exec: 'true', interval: 1, ttl: 5 },
           when: { source: 'gate', once: 'exitSuccess' } },
          { name: 'gate', exec: ['sh', '-c', 'until test -e @/secret; do sleep 0.1; done'] }] }",
    );
    fs::write(it.file("secret"), "hunter2\n").unwrap();
    wait(&it, "web", "running");
    wait_until("the job has written its environment", || it.read("env").contains("SHLVL"));
    let (code, shown, _) = run(&it, "web", &["env"]);
    assert_eq!((code, lines(&shown)), (0, lines(&it.read("env"))));
    let has = |line: &str| shown.lines().any(|shown| shown == line);
    assert!(has("GREETING=two words") && has("EVERY=process") && has("TOKEN=hunter2"), "{shown}");
    assert!(has("CONTAINERPILOT_JOB=web") && has("CONTAINERPILOT_WEB_IP=10.1.2.3"), "{shown}");
    // What it starts is not a process of the job's run, and cannot report for it.
    assert!(!shown.contains("CONTAINERPILOT_RUN=") && !shown.contains("NOTIFY_SOCKET="), "{shown}");
    let (_, shown, _) = run(&it, "web", &["sh", "-c", "pwd -P; umask; ulimit -Sn; ulimit -Hn; nice"]);
    let folder = fs::canonicalize(it.folder()).unwrap();
    assert_eq!(shown, format!("{}\n0027\n100\n200\n5\n", folder.display()));
    // The truth of the supervisor, not of the file.
    run_ok(&it, &["putenv", "GREETING=hidden", "LATER=added"]);
    let (_, shown, _) = run(&it, "web", &["sh", "-c", "echo $GREETING, $LATER"]);
    assert_eq!(shown, "two words, added\n");
    let log = it.log_so_far();
    assert!(!log.contains("hunter2") && !log.contains("two words"));
}

#[test]
fn x12_exec_passes_streams_and_exit_code_and_says_what_is_wrong() {
    let it = supervisor(
        "{ jobs: [{ name: 'web', exec: 'sleep 1000', replicas: 2 }, { name: 'late', when: 'manual', exec: 'true' }] }",
    );
    wait(&it, "web-1", "running");
    let mut cat = exec(&it, "late", &["sh", "-c", "cat; echo to stderr >&2; exit 7"]);
    fs::write(it.file("input"), "to stdin\n").unwrap();
    let output = cat.stdin(fs::File::open(it.file("input")).unwrap()).output_in_time().unwrap();
    assert_eq!(decode(&output), (7, "to stdin\n".to_owned(), "to stderr\n".to_owned()));
    assert_eq!(run(&it, "web-2", &["sh", "-c", "echo $CONTAINERPILOT_REPLICA"]).1, "2\n");
    let refused = |job: &str, program: &[&str], code: i32, why: &str| {
        let expected = (code, String::new(), format!("containerpilot: {why}\n"));
        assert_eq!(run(&it, job, program), expected, "{job} {program:?}");
    };
    refused("lat", &["true"], 125, "there is no job `lat`; did you mean `late`?");
    refused("web", &["true"], 125, "`web` has 2 replicas: use `web-1` or `web-2`");
    refused("late", &["no-such-program"], 127, "no-such-program: not found in PATH");
    refused("late", &["/no/such"], 127, "/no/such: No such file or directory");
    let input = it.file("input");
    let input = input.to_str().unwrap();
    let why = format!("{input}: Permission denied: it is not executable; chmod +x {input}");
    refused("late", &[input], 126, &why);
    let usage = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_containerpilot")).args(args).output_in_time().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    };
    usage(&["exec", "late"]);
    usage(&["exec", "late", "true"]);
    usage(&["exec", "--", "true"]);
    usage(&["exec", "late", "web-1", "--", "true"]);
}

#[test]
fn x12_exec_has_the_terminal_of_the_caller_and_outlives_the_job() {
    let it =
        supervisor("{ jobs: [{ name: 'web', exec: 'sleep 1000' }, { name: 'other', exec: 'sleep 1000' }] }");
    wait(&it, "web", "running");
    let pilot = env!("CARGO_BIN_EXE_containerpilot");
    let socket = it.file("socket");
    let script = "test -t 0 && stty size && echo $TERM";
    let line =
        format!("stty rows 11 cols 77; {pilot} exec web -socket {} -- sh -c '{script}'", socket.display());
    let mut on_terminal = Command::new("script");
    on_terminal.args(["-qec", &line, "/dev/null"]).env("TERM", "vt220").stdin(Stdio::null());
    let (_, shown, _) = decode(&on_terminal.output_in_time().unwrap());
    assert_eq!(shown.lines().collect::<Vec<_>>(), ["11 77", "vt220"]);
    let mut left = exec(&it, "web", &["sh", "-c", "echo up; read line; echo $line"]);
    left.stdin(Stdio::piped()).stdout(fs::File::create(it.file("out")).unwrap());
    let mut left = left.spawn().unwrap();
    wait_until("the command runs", || it.read("out") == "up\n");
    run_ok(&it, &["stop", "web"]);
    wait(&it, "web", "stopped");
    std::io::Write::write_all(&mut left.stdin.take().unwrap(), b"still there\n").unwrap();
    assert!(left.status_in_time().unwrap().success());
    assert_eq!(it.read("out"), "up\nstill there\n");
}

#[test]
fn x12_exec_for_another_user_has_a_terminal_of_its_own() {
    if !is_root() {
        skip("only root can become another user");
        return;
    }
    let it = supervisor("{ jobs: [{ name: 'web', exec: 'sleep 1000', user: '65534', group: '65534' }] }");
    fs::set_permissions(it.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    wait(&it, "web", "running");
    let pilot = env!("CARGO_BIN_EXE_containerpilot");
    let (socket, ready) = (it.file("socket"), it.file("ready"));
    let exec = |script: &str| format!("{pilot} exec web -socket {} -- sh -c '{script}'", socket.display());
    let on_terminal = |line: &str| {
        let mut command = Command::new("script");
        command.args(["-qec", line, "/dev/null"]).env("TERM", "vt220");
        command
    };
    let line = format!(
        "stty rows 11 cols 77; tty; {}; echo $?; {} > {}; stty -a | grep -c -- -icanon",
        exec("tty; stty size; id -u; echo $TERM; (: > $(tty)) && exit 7"),
        exec("printf a; printf b >&2"),
        it.file("out").display()
    );
    // A pipe that stays open: at the end of its input, `script` types something.
    let (typed, _input) = std::io::pipe().unwrap();
    let (_, shown, _) = decode(&on_terminal(&line).stdin(typed).output_in_time().unwrap());
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[0].starts_with("/dev/pts/") && lines[1].starts_with("/dev/pts/") && lines[0] != lines[1],
        "{shown}"
    );
    // The output that is no terminal is that of the caller, and the terminal is as before.
    assert_eq!(lines[2..], ["11 77", "65534", "vt220", "7", "b0"], "{shown}");
    assert_eq!(it.read("out"), "a");

    // What is typed, signals and the size of the window are passed on.
    let script = format!(
        "trap \"echo typed\" INT; trap \"stty size\" WINCH; trap \"echo told; exit 9\" TERM; touch {}; while :; do sleep 0.05; done",
        ready.display()
    );
    let mut command = on_terminal(&format!("tty > {}; exec {}", it.file("tty").display(), exec(&script)));
    let shown = fs::File::create(it.file("shown")).unwrap();
    let mut child = command.stdin(Stdio::piped()).stdout(shown).spawn().unwrap();
    wait_until("the program runs", || ready.exists());
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"\x03").unwrap();
    wait_until("it is interrupted", || it.read("shown").contains("typed"));
    let terminal = it.read("tty");
    let resized =
        Command::new("stty").args(["-F", terminal.trim(), "rows", "33", "cols", "99"]).status_in_time();
    assert!(resized.unwrap().success());
    wait_until("the size is passed on", || it.read("shown").contains("33 99"));
    let ours = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(pilot.as_bytes()) && String::from_utf8_lossy(&line).contains("exec")
    };
    let client = child_pids(child.id()).into_iter().find(ours).unwrap();
    let client = nix::unistd::Pid::from_raw(i32::try_from(client).unwrap());
    nix::sys::signal::kill(client, nix::sys::signal::Signal::SIGTERM).unwrap();
    let status = child.status_in_time().unwrap();
    assert!(it.read("shown").contains("told"), "{}", it.read("shown"));
    assert_eq!(status.code(), Some(9), "{}", it.read("shown"));
}

#[test]
fn x12_exec_has_the_user_of_the_job_and_others_get_no_environment() {
    if !is_root() {
        skip("only root can become another user");
        return;
    }
    let it = supervisor(
        "{ jobs: [{ name: 'web', exec: 'sleep 1000', user: '65534', group: '65534', env: { TOKEN: 'hunter2' },
                    noNewPrivileges: true, capabilities: ['NET_BIND_SERVICE'] }] }",
    );
    wait(&it, "web", "running");
    let script = "id -u; id -g; id -G; grep -E '^(CapBnd|CapAmb|NoNewPrivs)' /proc/self/status";
    let (_, shown, _) = run(&it, "web", &["sh", "-c", script]);
    let words: Vec<&str> = shown.split_whitespace().collect();
    let capability = "0000000000000400";
    let expected =
        ["65534", "65534", "65534", "CapBnd:", capability, "CapAmb:", capability, "NoNewPrivs:", "1"];
    assert_eq!(words, expected);

    // Users whom the mode of the socket admits may control jobs, but do not learn their variables.
    let it = Supervisor::start(
        super::Mode::Plain,
        "{ control: { socket: '@/open', mode: '0666' }, jobs: [{ name: 'web', exec: 'sleep 1000', env: { TOKEN: 'hunter2' } }] }",
    );
    let socket = it.file("open");
    wait_until("the socket is open", || {
        fs::metadata(&socket).is_ok_and(|file| file.permissions().mode() & 0o777 == 0o666)
    });
    fs::set_permissions(it.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let as_nobody = |args: &[&str]| {
        let mut curl = Command::new("setpriv");
        curl.args(["--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-s", "--unix-socket"]);
        decode(&curl.arg(&socket).args(args).output_in_time().unwrap()).1
    };
    assert_eq!(as_nobody(&["http://x/v3/ping"]), "\n");
    let refused = as_nobody(&["http://x/v3/jobs/web/execution"]);
    assert!(
        refused.contains("only root and the supervisor's own user may run commands as a job"),
        "{refused}"
    );
    let shown = decode(
        &Command::new("curl")
            .args(["-s", "--unix-socket"])
            .arg(&socket)
            .arg("http://x/v3/jobs/web/execution")
            .output_in_time()
            .unwrap(),
    )
    .1;
    assert_eq!(super::json(&shown)["job"], "web");
}
