//! Stopping (S1–S7).

use std::time::{Duration, Instant};

use crate::support::{Supervisor, ways};

#[test]
fn s1_s4_a_signal_stops_everything_at_once_and_exits_with_0() {
    for how in ways() {
        for signal in ["-TERM", "-INT"] {
            let mut run =
                Supervisor::start(how, "{ stopTimeout: 15, jobs: [{ name: 'a', exec: 'sleep 1000' }] }");
            run.line(" a started");
            let began = Instant::now();
            run.signal(signal);
            assert_eq!(run.end().0, 0);
            assert!(began.elapsed() < Duration::from_secs(5), "the stop time is not sat out");
        }
    }
}

#[test]
fn s1_a_second_signal_cuts_the_wait_short() {
    for how in ways() {
        let config = "{ stopTimeout: 300, jobs: [{ name: 'a', exec: ['sh', '-c',
            'trap \"echo no\" TERM; echo ready; while :; do sleep 0.05; done'] }] }";
        let mut run = Supervisor::start(how, config);
        run.line("ready");
        run.signal("-TERM");
        run.line("no");
        // The same one might come so soon that it counts as one.
        run.signal("-INT");
        assert_eq!(run.end().0, 0);
    }
}

#[test]
fn s5_s7_the_main_programs_end_is_our_own() {
    for how in ways() {
        for (script, code) in [("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137)] {
            assert_eq!(Supervisor::with(how, &["--", "sh", "-c", script]).end(), (code, String::new()));
        }
        assert_eq!(Supervisor::with(how, &["--", "/no/such"]).end().0, 127);
        assert_eq!(Supervisor::with(how, &["--", "/etc"]).end().0, 126);
    }
}

#[test]
fn s7_alone_every_signal_goes_on_to_the_program() {
    for how in ways() {
        let script =
            "for s in HUP INT QUIT USR1 USR2 ALRM WINCH TERM PIPE RTMIN; do trap \"echo got $s\" $s; done
            trap 'echo got CONT; exit 3' CONT; echo ready; while :; do sleep 0.02; done";
        let mut run = Supervisor::with(how, &["--", "bash", "-c", script]);
        run.line("ready");
        for signal in ["HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "WINCH", "TERM", "PIPE", "RTMIN"] {
            run.signal(&format!("-{signal}"));
            run.line(&format!("got {signal}"));
        }
        run.signal("-CONT");
        assert_eq!(run.end().0, 3);
    }
}

#[test]
fn s7_beside_a_configuration_the_program_is_stopped_as_a_job() {
    for how in ways() {
        let file = std::env::temp_dir().join(format!("containerpilot-s7-{}.json5", std::process::id()));
        std::fs::write(&file, "{ jobs: [{ name: 'side', exec: 'sleep 1000' }] }").unwrap();
        let args = ["-config", file.to_str().unwrap(), "--", "sh", "-c", "echo here; exit 4"];
        let mut run = Supervisor::with(how, &args);
        run.line("here");
        assert!(run.folder().contains("containerpilot-run"));
        let (code, log) = run.end();
        assert_eq!(code, 4, "{log}");
        std::fs::remove_file(file).unwrap();
    }
}

fn place(log: &str, text: &str) -> usize {
    log.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no `{text}` in\n{log}"))
}

#[test]
fn s2_a_job_waits_for_all_its_hooks_then_drains_and_then_gets_its_signal() {
    let config = "{ stopTimeout: 15, jobs: [
        { name: 'server', stopSignal: 'SIGINT', drain: '300ms', exec: ['sh', '-c',
          'trap \"echo got INT; exit 0\" INT; trap \"echo got TERM; exit 1\" TERM; echo ready; while :; do sleep 0.02; done'] },
        { name: 'hook1', exec: ['sh', '-c', 'sleep 0.3; echo first hook'], when: { source: 'server', once: 'stopping' } },
        { name: 'hook2', exec: 'echo second hook', when: { source: 'server', each: 'stopping' } },
        { name: 'after', exec: 'echo all over', when: { source: 'server', once: 'stopped' } } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("ready");
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!(code, 0, "{log}");
        let order = [
            "first hook",
            "server draining for 300ms",
            "server stopping: sent SIGINT",
            "got INT",
            "server exited with code 0",
            "all over",
        ];
        let places: Vec<usize> = order.iter().map(|text| place(&log, text)).collect();
        assert!(places.is_sorted(), "{places:?}\n{log}");
        assert!(place(&log, "second hook") < place(&log, "server draining"), "{log}");
        assert!(!log.contains("got TERM"), "{log}");
        assert_eq!(log.matches("hook2 started").count(), 1, "S3: once\n{log}");
    }
}

#[test]
fn s2_a_hook_that_hangs_is_waited_for_as_long_as_the_job_says() {
    let config = "{ stopTimeout: 2, jobs: [
        { name: 'server', exec: 'sleep 1000', stopTimeout: '200ms' },
        { name: 'hook', exec: ['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.05; done'], when: { source: 'server', once: 'stopping' } } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("server started");
        let began = Instant::now();
        run.signal("-TERM");
        run.line("server stop hooks not complete");
        run.line("server exited on SIGTERM");
        assert!(began.elapsed() < Duration::from_millis(1900), "{:?}", began.elapsed());
        // S4: and the hook does not hold everything for ever.
        let (code, log) = run.end();
        assert_eq!(code, 0, "{log}");
        assert!(log.contains("hook exited on SIGKILL"), "{log}");
        assert!(began.elapsed() < Duration::from_secs(6), "{log}");
    }
}

#[test]
fn s2_the_hooks_of_a_job_that_ends_by_itself_run_too() {
    let (code, log) = Supervisor::start(
        ways()[0],
        "{ jobs: [
        { name: 'work', exec: ['sh', '-c', 'exit 3'] },
        { name: 'before', exec: 'echo one', when: { source: 'work', once: 'stopping' } },
        { name: 'after', exec: 'echo two', when: { source: 'work', once: 'stopped' } } ] }",
    )
    .end();
    assert_eq!(code, 3, "{log}");
    assert!(place(&log, "before exited") < place(&log, "after started"), "{log}");
}

#[test]
fn s3_nothing_but_farewells_is_started_during_a_shutdown() {
    let config = "{ stopTimeout: 10, jobs: [
        { name: 'server', exec: 'sleep 1000', restarts: 'unlimited', restartBackoff: false },
        { name: 'tick', exec: 'true', when: { interval: '30ms' } },
        { name: 'failed', exec: 'true', when: { source: 'server', each: 'exitFailed' } },
        { name: 'bye', exec: ['sh', '-c', 'echo bye; sleep 0.3'], when: { once: 'shutdown' } } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("tick exited");
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!(code, 0, "{log}");
        let end = place(&log, "received SIGTERM, shutting down");
        let late: Vec<&str> = log.lines().skip(end).filter(|line| line.contains(" started (pid ")).collect();
        assert!(late.iter().all(|line| line.contains("bye started")), "{late:?}\n{log}");
        assert_eq!(late.len(), 1, "{log}");
    }
}

#[test]
fn s5_the_exit_code_is_that_of_the_first_that_failed_for_good() {
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
        // It failed, and then it did not.
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
    for how in ways() {
        for (jobs, code) in cases {
            let (found, log) = Supervisor::start(how, &format!("{{ jobs: [{jobs}] }}")).end();
            assert_eq!(found, code, "{jobs}\n{log}");
        }
        for config in ["{ jobs: [", "{ jobs: [{ name: 'a' }], nonsense: 1 }"] {
            assert_eq!(Supervisor::start(how, config).end().0, 1, "a mistake of the configuration");
        }
    }
}

#[test]
fn s5_what_fails_because_it_was_asked_to_end_is_no_failure() {
    let config = "{ jobs: [{ name: 'a', exec: ['sh', '-c', 'trap \"exit 9\" TERM; echo ready; while :; do sleep 0.02; done'] }] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("ready");
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!(code, 0, "{log}");
        assert!(log.contains("a exited with code 9"), "{log}");
    }
}

#[test]
fn s6_the_whole_log_is_written_before_it_leaves() {
    for how in ways() {
        let (code, log) = Supervisor::start(how, "{ jobs: [{ name: 'a', exec: 'seq 100000' }] }").end();
        assert_eq!(code, 0);
        let all =
            log.lines().filter(|line| line.split(' ').nth(2).is_some_and(|pid| pid.parse::<u32>().is_ok()));
        let numbers: Vec<&str> = all.filter_map(|line| line.split(' ').nth(3)).collect();
        assert_eq!(numbers.len(), 100_000);
        assert!(numbers.iter().zip(1..).all(|(number, nth)| number.parse() == Ok(nth)));
    }
}

#[test]
fn s7_alone_the_program_has_our_input_and_output() {
    for how in ways() {
        // The test's own input is /dev/null; a file shows that it is passed on.
        let script = "read line; echo \"it reads $line\"; exit 11";
        let run = Supervisor::fed(how, "a line\n", &["--", "sh", "-c", script]);
        assert_eq!(run.end(), (11, "it reads a line".to_owned()));
    }
}
