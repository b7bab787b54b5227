//! Jobs: the environment of a process, when it starts, and when it restarts (P2, P5–P7, P9, W).

use std::fs;
use std::time::{Duration, Instant};

use crate::support::skip::skip;
use crate::support::supervisor::{Supervisor, is_root, modes, wait_until};

/// Runs a configuration whose jobs all complete; returns the exit code and the log.
fn run(config: &str) -> (i32, String) {
    Supervisor::start(modes()[0], config).wait()
}

/// The number of log lines that contain `text`.
fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

/// The number of the first log line that contains `text`.
fn line_number(log: &str, text: &str) -> usize {
    log.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no `{text}`"))
}

#[test]
fn p2_process_has_its_own_group_dev_null_stdin_default_signals_and_no_extra_descriptors() {
    let config = "{ jobs: [
        { name: 'fds', exec: 'ls /proc/self/fd' },
        { name: 'group', exec: ['cut', '-d', ' ', '-f', '1,5', '/proc/self/stat'] },
        { name: 'stdin', exec: 'readlink /proc/self/fd/0' },
        { name: 'signals', exec: 'grep -E ^Sig(Blk|Ign) /proc/self/status' } ] }";
    for mode in modes() {
        // The supervisor itself inherits open files and ignored signals.
        let (code, log) = Supervisor::with_setup(
            mode,
            "exec 7</etc/passwd 9>/dev/null; trap '' HUP PIPE USR2 QUIT",
            config,
        )
        .wait();
        assert_eq!(code, 0);
        let output_of = |job: &str| -> Vec<String> {
            let own = |line: &&str| line.split(' ').nth(1) == Some(job);
            let words = log.lines().filter(own).map(|line| line.splitn(4, ' ').skip(2).collect::<Vec<_>>());
            // The supervisor's own entries have no pid.
            words.filter(|words| words[0].parse::<u32>().is_ok()).map(|words| words[1].to_owned()).collect()
        };
        // The fourth is the directory that `ls` reads.
        assert_eq!(output_of("fds"), ["0", "1", "2", "3"]);
        let group = output_of("group");
        let (pid, group) = group[0].split_once(' ').unwrap();
        assert_eq!(pid, group);
        assert_eq!(output_of("stdin"), ["/dev/null"]);
        for line in output_of("signals") {
            assert!(line.ends_with("\t0000000000000000"), "{line}");
        }
    }
}

#[test]
fn p5_run_that_exceeds_its_timeout_is_killed_with_its_process_group() {
    let config = "{ jobs: [
        { name: 'slow', exec: ['sh', '-c', 'trap \"\" TERM; sleep 1000 & sleep 1000'], timeout: '200ms' },
        { name: 'after', exec: 'echo it failed', when: { source: 'slow', once: 'exitFailed' } } ] }";
    for mode in modes() {
        let (code, log) = Supervisor::start(mode, config).wait();
        assert!(log.contains("slow timeout after 200ms"));
        assert!(log.contains("it failed"));
        assert_eq!(code, 137);
    }
}

#[test]
fn p5_w4_timeout_of_a_periodic_job_is_its_interval_unless_never() {
    let (_, log) =
        run("{ jobs: [{ name: 'slow', exec: 'sleep 1000', when: { interval: '200ms' }, restarts: 2 }] }");
    assert_eq!(count(&log, "slow timeout after 200ms"), 3);
    assert_eq!(count(&log, "slow started"), 3);

    let (code, log) =
        run("{ jobs: [{ name: 'slow', exec: 'sleep 0.5', when: { interval: '200ms' }, restarts: 1,
        timeout: 'never' }] }");
    assert_eq!((count(&log, "timeout"), count(&log, "slow started"), code), (0, 2, 0));
}

#[test]
fn p6_w7_events_during_a_run_cause_one_more_run_and_never_two_at_once() {
    let config = "{ jobs: [
        { name: 'rest', exec: 'sleep 1000' },
        { name: 'each', when: { source: 'SIGHUP' }, exec: ['sh', '-c',
          'mkdir @/lock || echo two at once; echo run; while [ ! -e @/go ]; do sleep 0.01; done; rmdir @/lock; echo done'] } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("rest started");
        run.signal("-HUP");
        run.wait_for_line(" run");
        for _ in 0..20 {
            run.signal("-HUP");
        }
        // All signals are sent, and therefore handled, before the job exits.
        fs::write(run.file("go"), "").unwrap();
        run.wait_for_line(" run");
        run.wait_for_line(" done");
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!((code, count(&log, " run"), count(&log, "two at once")), (0, 2, 0));
    }
}

#[test]
fn p7_environment_names_the_jobs_and_the_trigger() {
    let config = "{ jobs: [
        { name: 'helper.sh', exec: 'sleep 1000', health: { interval: 1, ttl: 5 } },
        { name: 'my-db', exec: 'sleep 1000', port: 5000, interfaces: 'static:10.1.2.3',
          health: { interval: 1, ttl: 5 }, when: { source: 'helper.sh', once: 'healthy' } },
        { name: 'fails', exec: ['sh', '-c', 'exit 7'], when: { source: 'my-db', once: 'healthy' } },
        { name: 'rendered', exec: 'echo rendered by {{ .CONTAINERPILOT_PID }}' },
        { name: 'shows', exec: 'env', when: { source: 'fails', once: 'exitFailed' } } ] }";
    for mode in modes() {
        // A supervisor in a job of another one has a pid of its own.
        let setup = "export OF_OURS=kept CONTAINERPILOT_PID=17";
        let mut run = Supervisor::with_setup(mode, setup, config);
        run.wait_for_lines("rendered by ", 1);
        run.wait_for_lines("shows exited with code 0", 1);
        let log = run.log_so_far();
        let own = if mode == crate::support::supervisor::Mode::Pid1 { 1 } else { run.pid() };
        let pid_of = |job: &str| {
            let started = format!("{job} started (pid ");
            let after = log.lines().find_map(|line| line.split_once(&started)).unwrap().1;
            after.split(')').next().unwrap().to_owned()
        };
        for word in [
            "OF_OURS=kept".to_owned(),
            format!("CONTAINERPILOT_PID={own}"),
            format!("rendered by {own}"),
            format!("CONTAINERPILOT_MY_DB_PID={}", pid_of("my-db")),
            format!("CONTAINERPILOT_HELPER_PID={}", pid_of("helper.sh")),
            "CONTAINERPILOT_MY_DB_IP=10.1.2.3".to_owned(),
            "CONTAINERPILOT_JOB=shows".to_owned(),
            "CONTAINERPILOT_EVENT=exitFailed".to_owned(),
            "CONTAINERPILOT_EVENT_SOURCE=fails".to_owned(),
            "CONTAINERPILOT_EXIT_CODE=7".to_owned(),
            "CONTAINERPILOT_RESTARTS=0".to_owned(),
        ] {
            assert!(log.lines().any(|line| line.ends_with(&format!(" {word}"))), "{word}");
        }
        assert!(!log.contains("CONTAINERPILOT_FAILS_PID"), "the pid of a job that does not run is set");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn p9_limits_umask_user_groups_and_no_new_privileges() {
    let config = "{ jobs: [
        { name: 'limits', exec: ['sh', '-c', 'echo files $(ulimit -n) core $(ulimit -c) mask $(umask)'],
          limits: { nofile: 77, core: 0 }, umask: '027' },
        { name: 'privileges', exec: 'grep NoNewPrivs /proc/self/status', noNewPrivileges: true },
        { name: 'place', exec: 'pwd', cwd: '/no/such/place' } ] }";
    let (_, log) = run(config);
    assert!(log.contains("files 77 core 0 mask 0027"));
    assert!(log.contains("NoNewPrivs:\t1"));
    assert!(
        log.contains(
            "place failed to start: pwd: cannot change to its directory /no/such/place: No such file"
        )
    );
    if is_root() {
        let (_, log) = run("{ jobs: [
            { name: 'a', exec: ['sh', '-c', 'echo a $(id -u) $(id -g) $(id -G)'], user: 'daemon', group: 'mail' },
            { name: 'b', exec: ['sh', '-c', 'echo b $(id -u) $(id -g)'], user: 4711, group: 4712 } ] }");
        assert!(log.contains("a 1 8 8"));
        assert!(log.contains("b 4711 4712"));
        let bad =
            Supervisor::start(modes()[0], "{ jobs: [{ name: 'a', exec: 'true', user: 'nobody-here' }] }");
        let stderr = bad.file("stderr");
        wait_until("the error names the user", || {
            fs::read_to_string(&stderr).is_ok_and(|text| text.contains("nobody-here"))
        });
        assert_eq!(bad.wait().0, 1);
    } else {
        skip("only root can start a job as another user");
    }
}

#[test]
fn w2_once_runs_at_the_first_event_and_each_at_every_one() {
    let (code, log) = run("{ jobs: [
        { name: 'source', exec: 'true', restarts: 3, restartBackoff: false },
        { name: 'once', exec: 'true', when: { source: 'source', once: 'exitSuccess' } },
        { name: 'each', exec: 'true', when: { source: 'source', each: 'exitSuccess' } },
        { name: 'seed', exec: 'true', when: { event: 'startup' } } ] }");
    assert_eq!(code, 0);
    assert_eq!(count(&log, "source started"), 4);
    assert_eq!((count(&log, "once started"), count(&log, "seed started")), (1, 1));
    // Of the events that arrive during a run, one is kept (W7).
    assert!((2..=4).contains(&count(&log, "each started")));
}

#[test]
fn w3_every_signal_starts_its_job() {
    let config = "{ jobs: [ { name: 'rest', exec: 'sleep 1000' },
        { name: 'hup', exec: 'echo got hup', when: { source: 'SIGHUP' } },
        { name: 'usr2', exec: 'echo got usr2', when: { source: 'SIGUSR2' } } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("rest started");
        for _ in 0..3 {
            for (signal, words) in [("-HUP", "hup"), ("-USR2", "usr2")] {
                run.signal(signal);
                run.wait_for_line(&format!("got {words}"));
                run.wait_for_line(&format!("{words} exited with code 0"));
            }
        }
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn w4_ticks_come_at_every_interval_and_not_earlier() {
    let config = "{ jobs: [{ name: 'tick', exec: ['sh', '-c', 'sleep 0.03'], when: { interval: '100ms' },
        timeout: 'never', restarts: 15 }] }";
    let began = Instant::now();
    let (code, log) = run(config);
    let took = began.elapsed();
    assert_eq!((code, count(&log, "tick started")), (0, 16));
    // That a run takes none of the time until the next tick is shown in virtual time, by
    // `w4_a_periodic_job_runs_at_startup_and_at_every_interval_without_drift`.
    assert!(took >= Duration::from_millis(1500), "{took:?}");
}

#[test]
fn w5_job_not_started_before_its_when_timeout_gives_up() {
    let (code, log) = run("{ jobs: [
        { name: 'slow', exec: 'sleep 0.6' },
        { name: 'late', exec: 'true', when: { source: 'slow', once: 'exitSuccess', timeout: '100ms' } },
        { name: 'soon', exec: 'sleep 0.4', when: { once: 'startup', timeout: '100ms' } },
        { name: 'told', exec: 'echo told', when: { source: 'late', once: 'timerExpired' } } ] }");
    assert_eq!(code, 0);
    assert_eq!(
        (count(&log, "late started"), count(&log, "told exited with code 0"), count(&log, "giving up")),
        (0, 1, 1)
    );
    assert!(log.contains("soon exited with code 0"));
}

#[test]
fn w6_restarts_are_counted_after_success_and_failure() {
    for (script, code) in [("true", 0), ("false", 1)] {
        for restarts in ["2", "'2'"] {
            let (found, log) = run(&format!(
                "{{ jobs: [{{ name: 'a', exec: '{script}', restarts: {restarts}, restartBackoff: false }}] }}"
            ));
            assert_eq!((found, count(&log, "a started")), (code, 3));
        }
    }
}

#[test]
fn w8_restarts_back_off_unless_back_off_is_false() {
    let began = Instant::now();
    let (_, log) = run("{ jobs: [{ name: 'a', exec: 'false', restarts: 4 }] }");
    let took = began.elapsed();
    // The first restart has no delay, the next ones 100, 200 and 400 ms.
    for delay in ["a restarting in 100ms", "a restarting in 200ms", "a restarting in 400ms"] {
        assert_eq!(count(&log, delay), 1, "{delay}");
    }
    assert!(took >= Duration::from_millis(700), "{took:?}");
    let (_, log) = run(
        "{ jobs: [{ name: 'a', exec: 'false', restarts: 4, restartBackoff: { initial: '10ms', max: '15ms' } }] }",
    );
    assert_eq!((count(&log, "in 10ms"), count(&log, "in 15ms")), (1, 2));
    let (_, log) = run("{ jobs: [{ name: 'a', exec: 'false', restarts: 200, restartBackoff: false }] }");
    assert_eq!((count(&log, "a started"), count(&log, "restarted in")), (201, 0));
}

#[test]
fn w10_supervisor_exits_when_every_job_that_does_work_is_complete() {
    for mode in modes() {
        let (code, log) = Supervisor::start(
            mode,
            "{ jobs: [
            { name: 'work', exec: 'true' },
            { name: 'hup', exec: 'true', when: { source: 'SIGHUP' } },
            { name: 'mend', exec: 'true', when: { each: 'enterMaintenance' } },
            { name: 'bye', exec: 'echo goodbye', when: { once: 'shutdown' } } ] }",
        )
        .wait();
        assert_eq!(code, 0);
        assert!(line_number(&log, "all jobs that do work have ended") < line_number(&log, "goodbye"));
    }
}

#[test]
fn s5_container_whose_work_never_ran_exits_with_1() {
    for (when, why) in [
        ("{ source: 'ghost', once: 'healthy' }", "its event can no longer happen"),
        ("{ source: 'watch.db', once: 'healthy', timeout: '50ms' }", "not started within its `when.timeout`"),
    ] {
        let config = format!(
            "{{ consul: '127.0.0.1:1', watches: [{{ name: 'db', interval: 1 }}], jobs: [
               {{ name: 'web', exec: 'sleep 1000', when: {when} }}, {{ name: 'bye', exec: 'true', when: {{ once: 'shutdown' }} }}] }}"
        );
        for mode in modes() {
            let (code, log) = Supervisor::start(mode, &config).wait();
            assert_eq!(code, 1);
            let last = format!("exiting with code 1: no job has run: web was skipped: {why}");
            assert!(log.lines().last().is_some_and(|line| line.ends_with(&last)), "{last}");
        }
    }
}

#[test]
fn w10_job_whose_event_can_never_come_is_completed_with_a_warning() {
    let (code, log) = run("{ jobs: [
        { name: 'fails', exec: 'false' },
        { name: 'waits', exec: 'true', when: { source: 'fails', once: 'exitSuccess' } },
        { name: 'waits-too', exec: 'true', when: { source: 'waits', once: 'exitSuccess' } } ] }");
    assert_eq!(code, 1);
    assert!(log.contains("waits will never run: `fails exitSuccess`"));
    assert!(log.contains("waits-too will never run"));
    assert_eq!(count(&log, "waits started"), 0);
}

#[test]
fn w11_job_without_exec_is_checked_and_never_complete() {
    let config = "{ jobs: [
        { name: 'elsewhere', port: 5432, interfaces: 'static:10.0.0.1', health: { exec: 'test -e @/up', interval: 1, ttl: 5 } },
        { name: 'then', exec: 'echo it is up', when: { source: 'elsewhere', once: 'healthy' } },
        { name: 'work', exec: ['sh', '-c', 'echo worked > @/up'] } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("it is up");
        run.wait_for_line("then complete");
        let completed = Instant::now();
        wait_until("200 ms have passed", || completed.elapsed() > Duration::from_millis(200));
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!((code, count(&log, "all jobs that do work have ended")), (0, 0));
    }
}

#[test]
fn w12_all_waits_for_every_event_and_any_for_one() {
    let (code, log) = run("{ jobs: [
        { name: 'a', exec: 'true' },
        { name: 'b', exec: 'sleep 0.2' },
        { name: 'all', exec: 'echo both', when: { all: [{ source: 'a', event: 'exitSuccess' }, { source: 'b', event: 'exitSuccess' }] } },
        { name: 'any', exec: 'echo one', when: { any: [{ source: 'a', event: 'exitSuccess' }, { source: 'b', event: 'exitSuccess' }] } },
        { name: 'every', exec: 'true', when: { each: true, any: [{ source: 'a', event: 'exitSuccess' }, { source: 'b', event: 'exitSuccess' }] } } ] }");
    assert_eq!(code, 0);
    assert!(line_number(&log, "b exited") < line_number(&log, "all started"));
    assert!(line_number(&log, "any started") < line_number(&log, "b exited"));
    assert_eq!(
        (count(&log, "all started"), count(&log, "any started"), count(&log, "every started")),
        (1, 1, 2)
    );
}

#[test]
fn w14_a_job_that_triggers_itself_is_delayed_like_a_restart() {
    let config = "{ jobs: [{ name: 'again', exec: 'false', when: {
        any: [{ source: 'global', event: 'startup' }, { source: 'again', event: 'exitFailed' }], each: true } }] }";
    let mut run = Supervisor::start(modes()[0], config);
    run.wait_for_line("again triggered by its own events, starting in 400ms");
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(log.matches("again started").count() <= 7);
}
