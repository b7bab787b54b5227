//! Stopping jobs and the supervisor (S1–S7, S11).

use std::time::{Duration, Instant};

use crate::support::program::programs;
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

#[test]
fn s11_a_drain_program_runs_as_its_job_before_the_stop_signal() {
    let config = "{ stopTimeout: 30, jobs: [
        { name: 'web', exec: ['sh', '-c', 'trap \"echo got TERM; exit 0\" TERM; touch @/up; while :; do sleep 0.05; done'],
          env: { GREETING: 'hello' }, cwd: '@/', drain: { exec: ['sh', '-c', 'echo draining $GREETING $CONTAINERPILOT_JOB $PWD; test -e up'] } } ] }";
    for mode in modes() {
        let run = Supervisor::start(mode, config);
        wait_until("it runs", || run.file("up").exists());
        let folder = run.folder().to_owned();
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        let place = |text: &str| log.find(text).unwrap_or_else(|| panic!("{text}"));
        let drained = place(&format!("draining hello web {}", folder.trim_end_matches('/')));
        assert!(place("running its drain program, for at most 30s") < drained);
        assert!(drained < place("stopping: sent SIGTERM"));
        place("got TERM");
        assert!(!log.contains("drain program failed"));
    }
}

#[test]
fn s11_a_drain_program_that_fails_hangs_or_is_missing_does_not_hold_up_the_stop() {
    // The grandchild of `hangs` ignores every signal but SIGKILL.
    let config = "{ stopTimeout: 60, jobs: [
        { name: 'fails', exec: 'sleep 1000', drain: { exec: ['sh', '-c', 'exit 3'] } },
        { name: 'missing', exec: 'sleep 1000', drain: { exec: '/no/such/program' } },
        { name: 'hangs', exec: 'sleep 1000', drain: { timeout: '1s',
          exec: ['sh', '-c', 'trap \"\" TERM; sleep 1000 & echo $! > @/pid; wait'] } } ] }";
    let run = Supervisor::start(modes()[0], config);
    wait_until("the jobs run", || crate::support::supervisor::child_pids(run.pid()).len() == 3);
    let began = Instant::now();
    run.signal("-TERM");
    wait_until("the drain program runs", || run.size("pid") > 0);
    let pid = run.read("pid").trim().to_owned();
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(began.elapsed() < Duration::from_secs(40));
    assert!(log.contains("fails drain program failed: exited with code 3; stopping"));
    assert!(log.contains("missing drain program failed: ") && log.contains("/no/such/program"));
    assert!(log.contains("hangs drain program timeout after 1s, stopping"));
    assert!(!std::path::Path::new("/proc").join(&pid).join("cmdline").exists(), "{pid} is left behind");
}

#[test]
fn s1_s4_sigterm_and_sigint_stop_everything_at_once_with_exit_code_0() {
    for mode in modes() {
        for signal in ["-TERM", "-INT"] {
            let mut run =
                Supervisor::start(mode, "{ stopTimeout: 50, jobs: [{ name: 'a', exec: 'sleep 1000' }] }");
            run.wait_for_line(" a started");
            let began = Instant::now();
            run.signal(signal);
            assert_eq!(run.wait().0, 0);
            assert!(began.elapsed() < Duration::from_secs(40), "it waited for the whole stop timeout");
        }
    }
}

#[test]
fn s1_second_signal_kills_all_jobs_at_once() {
    for mode in modes() {
        let config = "{ stopTimeout: 300, jobs: [{ name: 'a', exec: ['@programs/on-signal.sh', 'TERM', 'echo no'] }] }";
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("ready");
        run.signal("-TERM");
        run.wait_for_line("no");
        // A second SIGTERM might be merged with the first.
        run.signal("-INT");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn s5_s7_exit_code_of_the_main_program_is_the_supervisors() {
    for mode in modes() {
        for (script, code) in [("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137)] {
            assert_eq!(
                Supervisor::with_args(mode, &["--", "sh", "-c", script]).wait(),
                (code, String::new())
            );
        }
        assert_eq!(Supervisor::with_args(mode, &["--", "/no/such"]).wait().0, 127);
        assert_eq!(Supervisor::with_args(mode, &["--", "/etc"]).wait().0, 126);
    }
}

#[test]
fn s7_without_a_file_every_signal_is_forwarded_to_the_program() {
    for mode in modes() {
        let signals = ["HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "WINCH", "TERM", "PIPE", "RTMIN"];
        let program = format!("{}/on-signal.sh", programs());
        // Other shells do not know SIGRTMIN.
        let start = ["--", "bash", &program, "CONT", "echo got CONT; exit 3"].map(str::to_owned);
        let traps = signals.iter().flat_map(|signal| [(*signal).to_owned(), format!("echo got {signal}")]);
        let args: Vec<String> = start.into_iter().chain(traps).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut run = Supervisor::with_args(mode, &args);
        run.wait_for_line("ready");
        for signal in signals {
            run.signal(&format!("-{signal}"));
            run.wait_for_line(&format!("got {signal}"));
        }
        run.signal("-CONT");
        assert_eq!(run.wait().0, 3);
    }
}

#[test]
fn s7_with_a_file_the_exit_of_the_program_stops_the_other_jobs() {
    for mode in modes() {
        let file = std::env::temp_dir().join(format!("containerpilot-s7-{}.json5", std::process::id()));
        std::fs::write(&file, "{ jobs: [{ name: 'side', exec: 'sleep 1000' }] }").unwrap();
        let args = ["-config", file.to_str().unwrap(), "--", "sh", "-c", "echo here; exit 4"];
        let mut run = Supervisor::with_args(mode, &args);
        run.wait_for_line("here");
        assert!(run.folder().contains("containerpilot-run"));
        assert_eq!(run.wait().0, 4);
        std::fs::remove_file(file).unwrap();
    }
}

/// Sends SIGTERM when a job has printed `ready`. Returns the log of an exit with code 0.
pub(crate) fn stop_when_ready(mode: Mode, config: &str) -> String {
    let mut run = Supervisor::start(mode, config);
    run.wait_for_line("ready");
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    log
}

fn assert_order(log: &str, order: &[&str]) {
    let positions: Vec<usize> = order.iter().map(|text| line_number(log, text)).collect();
    assert!(positions.is_sorted(), "{positions:?}");
}

fn line_number(log: &str, text: &str) -> usize {
    log.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no `{text}`"))
}

#[test]
fn s2_job_waits_for_all_its_hooks_then_drains_then_gets_its_stop_signal() {
    let config = "{ stopTimeout: 15, jobs: [
        { name: 'server', stopSignal: 'SIGINT', drain: '300ms', exec: ['@programs/on-signal.sh', 'INT', 'echo got INT; exit 0', 'TERM', 'echo got TERM; exit 1'] },
        { name: 'hook1', exec: ['sh', '-c', 'sleep 0.3; echo first hook'], when: { source: 'server', once: 'stopping' } },
        { name: 'hook2', exec: 'echo second hook', when: { source: 'server', each: 'stopping' } },
        { name: 'after', exec: 'echo all over', when: { source: 'server', once: 'stopped' } } ] }";
    for mode in modes() {
        let log = stop_when_ready(mode, config);
        let order = [
            "first hook",
            "server draining for 300ms",
            "server stopping: sent SIGINT",
            "got INT",
            "server exited with code 0",
            "all over",
        ];
        assert_order(&log, &order);
        assert!(line_number(&log, "second hook") < line_number(&log, "server draining"));
        assert!(!log.contains("got TERM"));
        assert_eq!(log.matches("hook2 started").count(), 1, "S3: the hook must run once");
    }
}

#[test]
fn s2_s15_hanging_hook_delays_a_job_by_its_stop_timeout_and_is_killed() {
    let config = "{ stopTimeout: 2, jobs: [
        { name: 'server', exec: 'sleep 1000', stopTimeout: '200ms' },
        { name: 'hook', exec: ['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.05; done'], timeout: '2s', when: { source: 'server', once: 'stopping' } } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("server started");
        run.signal("-TERM");
        // S15: the hook is killed at its own timeout, long after the job has stopped to wait. The times are those of the
        // core (`s2_a_job_waits_for_its_hooks_at_most_its_stop_timeout`).
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        let order = ["server stop hooks not complete", "server exited on SIGTERM", "hook exited on SIGKILL"];
        assert_order(&log, &order);
    }
}

#[test]
fn s4_s15_slow_hook_does_not_cost_the_process_its_sigterm() {
    let config = "{ stopTimeout: 1, jobs: [
        { name: 'db', exec: ['@programs/on-signal.sh', 'TERM', 'echo flushed; exit 0'] },
        { name: 'hook', exec: ['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.05; done'], timeout: '1s', when: { source: 'db', once: 'stopping' } } ] }";
    for mode in modes() {
        let log = stop_when_ready(mode, config);
        let order = ["hook timeout after 1s", "hook exited on SIGKILL", "db stopping: sent SIGTERM"];
        assert_order(&log, &order);
        assert!(log.contains(" flushed"));
    }
}

#[test]
fn s2_hooks_also_run_when_a_job_exits_by_itself() {
    let (code, log) = Supervisor::start(
        modes()[0],
        "{ jobs: [
        { name: 'work', exec: ['sh', '-c', 'exit 3'] },
        { name: 'before', exec: 'echo one', when: { source: 'work', once: 'stopping' } },
        { name: 'after', exec: 'echo two', when: { source: 'work', once: 'stopped' } } ] }",
    )
    .wait();
    assert_eq!(code, 3);
    assert!(line_number(&log, "before exited") < line_number(&log, "after started"));
}

#[test]
fn s3_only_stop_hooks_are_started_during_shutdown() {
    let config = "{ stopTimeout: 10, jobs: [
        { name: 'server', exec: 'sleep 1000', restarts: 'unlimited', restartBackoff: false },
        { name: 'tick', exec: 'true', when: { interval: '30ms' } },
        { name: 'failed', exec: 'true', when: { source: 'server', each: 'exitFailed' } },
        { name: 'bye', exec: ['sh', '-c', 'echo bye; sleep 0.3'], when: { once: 'shutdown' } } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("tick exited");
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        let end = line_number(&log, "received SIGTERM, shutting down");
        let mut late: Vec<&str> =
            log.lines().skip(end).filter(|line| line.contains(" started (pid ")).collect();
        // It was being started when the signal came: it is stopped, and its start is logged when it is known.
        if log.contains("tick stopping: sent SIGTERM") {
            late.retain(|line| !line.contains("tick started"));
        }
        assert!(late.iter().all(|line| line.contains("bye started")), "{late:?}");
        assert_eq!(late.len(), 1);
    }
}

#[test]
fn s5_exit_code_is_that_of_the_first_job_that_failed() {
    let cases = [
        ("{ name: 'a', exec: 'true' }, { name: 'b', exec: 'true' }", 0),
        (
            "{ name: 'a', exec: ['sh', '-c', 'exit 3'] }, { name: 'b', exec: ['sh', '-c', 'sleep 0.3; exit 4'] }",
            3,
        ),
        ("{ name: 'a', exec: ['sh', '-c', 'kill -ABRT $$'] }", 134),
        ("{ name: 'a', exec: ['sh', '-c', 'kill -KILL $$'] }", 137),
        ("{ name: 'a', exec: ['sh', '-c', 'exit 255'] }", 255),
        ("{ name: 'a', exec: 'no-such-thing' }", 127),
        ("{ name: 'a', exec: '/etc' }", 126),
        // The first run fails and the restart succeeds.
        ("{ name: 'a', exec: ['sh', '-c', 'test -e @/x || { touch @/x; exit 9; }'], restarts: 1 }", 0),
        (
            "{ name: 'a', exec: ['sh', '-c', 'exit 5'], onFailure: 'shutdown' }, { name: 'b', exec: 'sleep 1000' }",
            5,
        ),
        ("{ name: 'a', exec: 'true', onSuccess: 'shutdown' }, { name: 'b', exec: 'sleep 1000' }", 0),
        (
            "{ name: 'a', exec: 'false', onSuccess: 'shutdown' }, { name: 'b', exec: ['sh', '-c', 'sleep 0.2; exit 6'], onFailure: 'shutdown' }",
            6,
        ),
    ];
    for mode in modes() {
        for (jobs, code) in cases {
            let (found, _) = Supervisor::start(mode, &format!("{{ jobs: [{jobs}] }}")).wait();
            assert_eq!(found, code, "{jobs}");
        }
        for config in ["{ jobs: [", "{ jobs: [{ name: 'a' }], nonsense: 1 }"] {
            assert_eq!(Supervisor::start(mode, config).wait().0, 1, "a configuration error");
        }
    }
}

#[test]
fn s5_nonzero_exit_after_the_stop_signal_is_not_a_failure() {
    let config = "{ jobs: [{ name: 'a', exec: ['@programs/on-signal.sh', 'TERM', 'exit 9'] }] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("ready");
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        assert!(log.contains("a exited with code 9"));
    }
}

#[test]
fn s6_all_logs_are_flushed_before_exit() {
    for mode in modes() {
        let (code, log) = Supervisor::start(mode, "{ jobs: [{ name: 'a', exec: 'seq 100000' }] }").wait();
        assert_eq!(code, 0);
        let all =
            log.lines().filter(|line| line.split(' ').nth(2).is_some_and(|pid| pid.parse::<u32>().is_ok()));
        let numbers: Vec<&str> = all.filter_map(|line| line.split(' ').nth(3)).collect();
        assert_eq!(numbers.len(), 100_000);
        assert!(numbers.iter().zip(1..).all(|(number, nth)| number.parse() == Ok(nth)));
    }
}

#[test]
fn s7_without_a_file_the_program_inherits_stdin_and_stdout() {
    for mode in modes() {
        // Standard input is a file here, because the default of these tests, /dev/null, would prove nothing.
        let script = "read line; echo \"it reads $line\"; exit 11";
        let run = Supervisor::with_stdin(mode, "a line\n", &["--", "sh", "-c", script]);
        assert_eq!(run.wait(), (11, "it reads a line".to_owned()));
    }
}

#[test]
fn s13_a_server_that_starts_after_a_stop_keeps_running_and_gets_its_sigterm() {
    let config = "{ stopTimeout: 50, jobs: [
        { name: 'migrate', exec: 'true' },
        { name: 'server', restarts: 'unlimited', when: { source: 'migrate', once: 'stopped' }, exec: ['@programs/on-signal.sh', 'TERM', 'echo flushed; exit 0'] } ] }";
    for mode in modes() {
        let began = Instant::now();
        let log = stop_when_ready(mode, config);
        let order = [
            "migrate complete",
            "server started",
            "received SIGTERM",
            "server stopping: sent SIGTERM",
            " flushed",
        ];
        assert_order(&log, &order);
        assert!(!log.contains("have ended, shutting down") && !log.contains("SIGKILL"));
        assert!(began.elapsed() < Duration::from_secs(40), "it waited as for a hook");
    }
}
