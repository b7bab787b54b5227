//! Stopping (S1, S4, S5, S7).

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
        run.signal("-TERM");
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
